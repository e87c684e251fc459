"""All attacks on services of their own: `make attack`. Ends with what was tried, what was refused and what got through.

Each attack is a test as well, with its own bounds of memory, time and length; the exit code is 1 where one of them does
not hold.
"""

from __future__ import annotations

import sys

import pytest
from rich.console import Console
from rich.table import Table

from tests.attack.outcome import FINISHED

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
        strain = ("", "")
        if one.measured is not None:
            probe, growth = one.measured.slowest_probe_seconds, one.measured.memory_growth_bytes
            strain = (f"{probe:.2f} s", f"{growth / 2**20:+.0f} MiB")
        table.add_row(one.name, f"{one.tried:,}", f"{one.refused:,}", f"{one.got_through:,}", *strain)
    Console().print(table)
    refused, through = sum(one.refused for one in FINISHED), sum(one.got_through for one in FINISHED)
    print(f"tried {refused + through:,}, refused {refused:,}, got through {through:,}")
    return int(code)


if __name__ == "__main__":
    sys.exit(main())
