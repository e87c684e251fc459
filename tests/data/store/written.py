"""The content of the stored copies of old formats (`v*.sql` beside this file), each made by predrain of its time."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from predrain.data.cluster_event import ClusterEvent, ClusterEventKind, tell_drain, tell_outlook
from predrain.data.drain import Drain, DrainState, Intent, JournalEntry, Mechanic, Move, Plan, Progress
from predrain.data.ids import DeviceId, HostName, OsdId, PgId
from predrain.data.latency_windows import LatencySummary, LatencyWindows
from predrain.data.life_cycle import LifeChange, LifeEvidence, LifeSource, LifeState
from predrain.data.outcome import DriveFate, Outcome
from predrain.data.outlook import GRID_DAYS, Life, Outlook, Reason, Status, SurvivalCurve
from predrain.data.reading import Attribute, Counters, Identity, Protocol, Reading, Smart, Unreadable
from predrain.data.store.store_port import AUDIT, Checkpoint, Store
from tests.settings_by_text import by_setting

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)
DEVICE = DeviceId("ATA_ST4000NM0035_ZC1234")
SILENT = DeviceId("ATA_ST4000NM0035_ZC5678")

_SMART = Smart(
    Protocol.ATA,
    Identity("ATA", "ST4000NM0035", None, "ZC1234", "5000c500a1b2c3d4", "TN03", 4_000_787_030_016, 7200),
    True,
    Counters(reallocated=8, pending=0),
    {
        5: Attribute("Reallocated_Sector_Ct", 8, 100, 100, 10),
        197: Attribute("Current_Pending_Sector", 0, 100),
    },
    power_on_hours=20_000,
    temperature_c=31,
)
READINGS = tuple(
    Reading(DEVICE, HostName("ceph-1"), NOON + n * HOUR, NOON + n * HOUR + timedelta(seconds=2), _SMART)
    for n in range(3)
)
NO_ANSWER = replace(READINGS[0], device=SILENT, seen=Unreadable(NOON - HOUR, "no answer within 30 s"))
OUTLOOKS = tuple(
    Outlook(
        DEVICE, NOON + n * HOUR, status, "model:1", (Reason("reallocated", "8 sectors."),), "", 0.1, 0.2, 0.3,
        SurvivalCurve(1 / (1 + day / 100) for day in GRID_DAYS), Life(1.0, 2.0, None),
    )
    for n, status in enumerate((Status.WARNING, Status.BAD))
)  # fmt: skip
BARE_OUTLOOKS = tuple(replace(one, survival=None) for one in OUTLOOKS)
"""The outlooks as their history has them: only a device's newest one keeps its curve, apart from older histories."""
LATENCIES = tuple(
    LatencySummary(
        OsdId(3),
        HostName("ceph-1"),
        NOON + n * timedelta(minutes=1),
        60.0,
        900 + n,
        read_ms_p50=1.5,
        iops=15.0,
    )
    for n in range(3)
)
DRAIN = Drain(
    "d-1", DEVICE, (OsdId(3),), DrainState.DRAINING, Intent.REPLACE, "controller", "bad", NOON, NOON,
    plan=Plan(Mechanic.UPMAP_WALK, "default", 41, (Move(PgId("3.1f"), OsdId(3), OsdId(4), 10**12),),
              OsdId(4), 0.61, 0.4, 3.5),
    progress=Progress(1, 0, 10**12, 0), saved=by_setting({"osd.3/reweight": "1.0"}), revision=4,
)  # fmt: skip
JOURNAL = tuple(JournalEntry("d-1", NOON, f"line {n}", "step", "set", n) for n in range(3))
OUTCOME = Outcome(SILENT, NOON + HOUR, DriveFate.FAILED, "operator", "clicking")
LIFE_CHANGE = LifeChange(
    SILENT, NOON + HOUR, LifeState.FAILED, LifeSource.PERSON, LifeEvidence.STATEMENT, "operator",
    host=HostName("ceph-1"), osds=(OsdId(5),),
)  # fmt: skip
OSD_DOWN = ClusterEvent(
    "osd.5", NOON + HOUR, ClusterEventKind.OSD_DOWN, (OsdId(5),), HostName("ceph-1"), SILENT, epoch=42
)
TURNED = tell_outlook(ClusterEventKind.OUTLOOK_WORSE, replace(OUTLOOKS[-1], as_of=NOON + 2 * HOUR))
MIGRATED_EVENTS = (
    tell_drain(DRAIN),
    replace(tell_drain(DRAIN), state=DrainState.PROPOSED, why="bad", by="controller"),
)
"""The events of the drain in a store to which the table of events was added after the drain was saved."""
HALT = "network works"
CHECKPOINT = Checkpoint(DEVICE, "layout-1", NOON + 2 * HOUR, b"\x00state")


def fill(store: Store) -> None:
    """Put all of it into a store."""
    store.add_readings([*READINGS, NO_ANSWER])
    store.save_checkpoints([CHECKPOINT])
    store.add_latency(LatencyWindows.from_summaries(LATENCIES))
    store.save_outlooks(OUTLOOKS)
    store.save_drain(DRAIN)
    store.add_journal(JOURNAL)
    store.add_outcome(OUTCOME)
    store.add_life_changes([LIFE_CHANGE])
    store.add_cluster_events([OSD_DOWN, TURNED])
    store.set_halt(HALT)


def assert_whole(
    store: Store,
    *,
    checkpoint: bool = True,
    life_changes: bool = True,
    events: bool = True,
    outlook_events: bool = True,
) -> None:
    """All of it is there, and nothing else. The others: whether the format could hold them."""
    assert store.readings(DEVICE) == READINGS
    assert store.readings(SILENT) == (NO_ANSWER,)
    assert store.latest_readings() == {DEVICE: READINGS[-1], SILENT: NO_ANSWER}
    assert store.checkpoints([DEVICE]).get(DEVICE) == (CHECKPOINT if checkpoint else None)
    assert store.read_latency_summaries(3, NOON) == LATENCIES
    assert [replace(one, survival=None) for one in store.outlooks(DEVICE)] == [*BARE_OUTLOOKS]
    assert store.latest_outlooks() == {DEVICE: OUTLOOKS[-1]}
    assert store.drains() == (DRAIN,)
    # A migration by command stands in the audit.
    assert tuple(line for line in store.journal() if line.drain != AUDIT) == JOURNAL
    assert store.outcomes() == (OUTCOME,)
    assert store.read_life_changes() == ((LIFE_CHANGE,) if life_changes else ())
    if life_changes:
        assert store.read_life_changes(osd=OsdId(5)) == (LIFE_CHANGE,)
    told = (OSD_DOWN, tell_drain(DRAIN)) if events else MIGRATED_EVENTS
    assert store.read_cluster_events() == ((TURNED, *told) if outlook_events else told)
    assert store.halt_reason() == HALT
