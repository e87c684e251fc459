"""Prints pySMART's list of disks as JSON. It is a program apart from the collector, because pySMART has no deadlines.

Arguments: smartctl's path, and `sudo` if it is needed. Prints `{"lines": [...]}`, or `{"missing": WHY}`.
"""

from __future__ import annotations

import json
import sys


def main() -> None:
    """Print the disks that pySMART's wrapper of `smartctl --scan-open` lists; it does not ask the disks themselves."""
    program, *sudo = sys.argv[1:]
    try:
        from pySMART.smartctl import Smartctl
    except ImportError as error:
        print(json.dumps({"missing": str(error)}))
        return
    print(json.dumps({"lines": Smartctl(smartctl_path=program, sudo=["-n"] if sudo else False).scan()}))


if __name__ == "__main__":
    main()
