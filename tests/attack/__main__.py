"""All attacks on services of their own: `make attack`. Ends with what was tried, what was refused and what got through.

Each attack is a test as well, with its own bounds of memory, time and length; the exit code is 1 where one of them does
not hold.
"""

from __future__ import annotations

import sys

import pytest
from rich.console import Console
from rich.table import Table

from tests.attack.outcome import FINISHED, AttackOutcome

TESTS = (
    "tests/attack",
    "tests/service/access/test_exchanged_credentials.py",
    "tests/service/access/test_sender_addresses.py",
    "tests/service/test_signed_backups.py",
    "tests/service/test_forged_requests.py",
    "tests/service/test_text_from_outside.py",
    "tests/service/test_moved_disks.py",
)


def main() -> int:
    """Run the attacks and print the table."""
    code = pytest.main(["-q", "-p", "no:randomly", *TESTS])
    table = Table(title="What was attacked", title_justify="left")
    table.add_column("attack")
    for column in ("tried", "refused", "got through", "slowest probe", "memory"):
        table.add_column(column, justify="right")
    for one in FINISHED:
        measured = ("", "")
        if isinstance(one, AttackOutcome):
            measured = (f"{one.slowest_probe_seconds:.2f} s", f"{one.memory_growth_bytes / 2**20:+.0f} MiB")
        name = one.name if isinstance(one, AttackOutcome) else one.attack
        table.add_row(name, f"{one.tried:,}", f"{one.refused:,}", f"{one.got_through:,}", *measured)
    Console().print(table)
    tried, refused, through = (
        sum(int(getattr(one, name)) for one in FINISHED) for name in ("tried", "refused", "got_through")
    )
    print(f"tried {tried:,}, refused {refused:,}, got through {through:,}")
    return int(code)


if __name__ == "__main__":
    sys.exit(main())
