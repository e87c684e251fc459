"""The summary of an outlook that a worker remembers is all that the next outlook builds on."""

from __future__ import annotations

from datetime import timedelta

import pytest

from predrain.data.ids import DeviceId
from predrain.data.outlook import Outlook, Status, hold_severity, measure_status_persistence
from predrain.service.forecasting.newest_outlooks import NewestOutlookSummaries
from tests.service.conftest import NOON

DISK = DeviceId("ST4000DM000_A")


@pytest.mark.parametrize("held", [None, Status.WARNING, Status.BAD])
@pytest.mark.parametrize("status", Status)
def test_the_next_outlook_is_the_same_by_the_gist_as_by_the_whole_outlook(
    status: Status, held: Status | None
) -> None:
    whole = Outlook(
        DISK, NOON, status, "model:one", reasons=(), prescription="", readings=2, span_hours=1.0, held=held
    )
    gist = NewestOutlookSummaries()
    gist.update_newest((), [whole])
    for following in Status:
        found, expected = gist.outlook(DISK), whole
        by_gist, by_whole = (
            measure_status_persistence(following, NOON + timedelta(hours=1), one) for one in (found, expected)
        )
        assert by_gist == by_whole
        readings, _ = by_whole
        assert hold_severity(following, readings, found) is hold_severity(following, readings, expected)
