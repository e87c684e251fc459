"""Signs of events: self-tests that found the drive broken, and I/O errors that the kernel of its host logged.

They are the same for every kind of drive, and no forecast reads them.
"""

from __future__ import annotations

from collections.abc import Iterator

from predrain.data.outlook import Advice, Reason
from predrain.features.state import DriveState, Face, hour_of
from predrain.models.rules.evidence import WARNING, Sign
from predrain.models.rules.ramps import RAMPS

DAY, WEEK = 24, 7 * 24
"""Hours."""


def find_self_test_sign(_: DriveState, face: Face) -> Iterator[Sign]:
    """Self-tests that failed since the newest long one that the drive passed."""
    failed = face.failed_self_tests or 0
    if not failed:
        return
    many = "1 self-test has failed" if failed == 1 else f"{failed:,} self-tests have failed"
    reason = Reason("self-test-failed", f"{many} since the newest long one that the drive passed.")
    yield Sign(
        "self-test",
        RAMPS["self-test"](failed),
        "self-test",
        reason,
        Advice.REPLACE_SOON,
        "Clears when a long self-test passes.",
    )


def find_io_error_signs(state: DriveState, _: Face) -> Iterator[Sign]:
    """I/O errors of the last day, else of the last week; those that came to several disks at once are the host's."""
    if not state.io_errors:
        return  # nearly always
    now = hour_of(state.taken_at)
    hours = {span: [one for one in state.io_errors if one.hour > now - span] for span in (1, DAY, WEEK)}
    own = {span: sum(one.own for one in many) for span, many in hours.items()}
    shared = sum(one.shared for one in hours[DAY])
    if own[DAY]:
        told = f"The kernel logged {own[DAY]:,} I/O errors of it in the last 24 hours, {own[1]:,} of them in this hour."
        degree = RAMPS["io-errors"](own[DAY])
        yield Sign(
            "io-errors",
            degree,
            "io-errors",
            Reason("io-errors", told),
            Advice.SELF_TEST,
            "Clears when the kernel logs no I/O error of it for 24 hours.",
            noted=True,
        )
    elif own[WEEK]:
        told = (
            f"The kernel logged {own[WEEK]:,} I/O errors of it in the last 7 days, none in the last 24 hours."
        )
        degree = RAMPS["io-errors-old"](own[WEEK])
        clears = "Clears when the kernel logs no I/O error of it for 7 days."
        yield Sign("io-errors", degree, "io-errors", Reason("io-errors-old", told), Advice.SELF_TEST, clears)
    if shared:
        told = (
            f"The kernel logged {shared:,} I/O errors of it in the last 24 hours while other disks of its host had "
            "some, too: controller, backplane or host."
        )
        clears = "Clears when the kernel logs no such error for 24 hours."
        yield Sign(
            "io-errors-shared",
            WARNING,
            "cable",
            Reason("io-errors-shared", told),
            Advice.CHECK_CABLE,
            clears,
            noted=True,
        )
