"""Run as a program, apart from the collector: pySMART has no deadlines. Prints its list of disks as JSON.

Arguments: smartctl's path, and `sudo` where it is needed. Prints `{"lines": [...]}`, or `{"missing": WHY}`.
"""

from __future__ import annotations

import json
import sys


def main() -> None:
    """List the disks by pySMART's wrapper of `smartctl --scan-open`; it does not ask the disks themselves."""
    program, *sudo = sys.argv[1:]
    try:
        from pySMART.smartctl import Smartctl
    except ImportError as error:
        print(json.dumps({"missing": str(error)}))
        return
    print(json.dumps({"lines": Smartctl(smartctl_path=program, sudo=["-n"] if sudo else False).scan()}))


if __name__ == "__main__":
    main()
