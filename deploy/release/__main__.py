"""`python -m deploy.release VERSION` (`make release`): one commit and one annotated tag; nothing is pushed.

The tests are not run. `make test-all` is to be green before, as docs/how-to/release.md says.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from datetime import date
from pathlib import Path

from deploy.release.changelog import STORE
from deploy.release.git_checkout import GitCheckout
from deploy.release.version_places import ReleaseVersion
from deploy.release.version_release import carry_out_release, iterate_changed_lines, plan_release
from predrain.data.refusal import Refusal
from predrain.data.store import store_schema
from predrain.data.wire import list_wire_versions

ROOT = Path(__file__).resolve().parents[2]


def main(arguments: Sequence[str] | None = None, folder: Path = ROOT) -> int:
    """Release the checkout at `folder`, or print what a release would do; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m deploy.release", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("version", help="the new version, three numbers")
    parser.add_argument(
        "--date", type=date.fromisoformat, help="the day of the release; that of the last commit"
    )
    parser.add_argument("--dry-run", action="store_true", help="print what would change, and change nothing")
    options = parser.parse_args(arguments)
    checkout = GitCheckout(folder)
    try:
        planned = plan_release(
            checkout, ReleaseVersion.parse_version(options.version), read_code_formats(), options.date
        )
        if options.dry_run:
            print("\n".join(iterate_changed_lines(folder, planned)))
            print(
                f"\nwould commit these files and tag the commit {planned.tag_name} with:\n\n{planned.message}",
                end="",
            )
            return 0
        carry_out_release(checkout, planned)
    except Refusal as refused:
        print(f"release: {refused}", file=sys.stderr)
        return 1
    print(f"committed and tagged {planned.tag_name}; nothing is pushed. Next: make release-artefacts, then")
    print(f"  git push --atomic origin main {planned.tag_name}")
    return 0


def read_code_formats() -> dict[str, int]:
    """Return the version of each format that the code writes, by its name."""
    return {STORE: store_schema.VERSION, **list_wire_versions()}


if __name__ == "__main__":
    sys.exit(main())
