"""Signs from events: self-tests that found the drive broken, and I/O errors that the kernel of its host logged.

These signs are the same for every kind of drive, and no forecast reads them.
"""

from __future__ import annotations

from collections.abc import Iterator

from predrain.data.outlook import Advice, Reason
from predrain.features.drive_state import DriveState, Face, hour_of
from predrain.models.forecast.rules.fuzzy_evidence import WARNING, DefectSign
from predrain.models.forecast.rules.membership_functions import RAMPS

DAY, WEEK = 24, 7 * 24
"""Lengths in hours."""


def find_self_test_sign(_: DriveState, face: Face) -> Iterator[DefectSign]:
    """Yield a sign for self-tests that failed since the newest long self-test that the drive passed."""
    failed = face.failed_self_tests or 0
    if not failed:
        return
    many = "1 self-test has failed" if failed == 1 else f"{failed:,} self-tests have failed"
    reason = Reason("self-test-failed", f"{many} since the newest long one that the drive passed.")
    yield DefectSign(
        "self-test",
        RAMPS["self-test"](failed),
        "self-test",
        reason,
        Advice.REPLACE_SOON,
        "Clears when a long self-test passes.",
    )


def find_io_error_signs(state: DriveState, _: Face) -> Iterator[DefectSign]:
    """Yield signs for I/O errors of the last day, else of the last week. Errors of several disks at once are the
    host's."""
    if not state.io_errors:
        return  # the usual case
    now = hour_of(state.taken_at)
    hours = {span: [one for one in state.io_errors if one.hour > now - span] for span in (1, DAY, WEEK)}
    own = {span: sum(one.own for one in many) for span, many in hours.items()}
    shared = sum(one.shared for one in hours[DAY])
    if own[DAY]:
        told = f"The kernel logged {own[DAY]:,} I/O errors of it in the last 24 hours, {own[1]:,} of them in this hour."
        degree = RAMPS["io-errors"](own[DAY])
        yield DefectSign(
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
        yield DefectSign(
            "io-errors", degree, "io-errors", Reason("io-errors-old", told), Advice.SELF_TEST, clears
        )
    if shared:
        told = (
            f"The kernel logged {shared:,} I/O errors of it in the last 24 hours while other disks of its host had "
            "some, too: controller, backplane or host."
        )
        clears = "Clears when the kernel logs no such error for 24 hours."
        yield DefectSign(
            "io-errors-shared",
            WARNING,
            "cable",
            Reason("io-errors-shared", told),
            Advice.CHECK_CABLE,
            clears,
            noted=True,
        )
