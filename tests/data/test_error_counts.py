"""Which counts speak against a disk, and which of them rose."""

from __future__ import annotations

from predrain.data.error_counts import count_errors, find_risen
from predrain.data.reading import Attribute, Counters, Identity, Protocol, Smart


def told(pending: int | None = None, attribute: int | None = None, hours: int = 10) -> Smart:
    rows = {} if attribute is None else {197: Attribute("Current_Pending_Sector", attribute)}
    counters = Counters(pending=pending, bytes_read=hours)
    return Smart(Protocol.ATA, Identity("Seagate", "ST4000DM000"), True, counters, rows, power_on_hours=hours)


def test_error_counts_are_told_by_counter_and_by_attribute() -> None:
    assert count_errors(told(3, 4)) == {"pending": 3, "197": 4}


def test_a_count_that_is_higher_has_risen_and_hours_or_bytes_are_no_errors() -> None:
    assert find_risen(told(3, 4, 10), told(5, 4, 11)) == ("pending",)
    assert find_risen(told(3, 4, 10), told(2, 4, 11)) == ()


def test_a_count_that_was_not_told_before_has_not_risen() -> None:
    assert find_risen(told(), told(7, 7)) == ()
