"""Publish life expectancies in the cluster, if that moves no data.

While `mgr/devicehealth/self_heal` is on, the mgr outs a disk with a short life in one step and sets its primary
affinity to 0 (ceph.md e). Then nothing is published, predrain's own entries are withdrawn, and the command that a
person may run is reported. Entries of others are never changed: predrain's own are those in its record in the
config-key store, which is written before a command is sent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from predrain.actions.cluster.cluster_port import (
    ClusterUnreachable,
    ConfigKeyStore,
    PublishLife,
    WithdrawLife,
)
from predrain.actions.cluster.cluster_view import ClusterView
from predrain.actions.cluster.osd_layout import find_osd_layout
from predrain.actions.core.drain_policy import Mode, Policy
from predrain.data.clock import is_within_last
from predrain.data.drain import Drain, DrainState
from predrain.data.ids import DeviceId
from predrain.data.outlook import Outlook, Status

Span = tuple[datetime, datetime]
Ledger = Mapping[DeviceId, tuple[Span, ...]]

DAYS: Mapping[Status, tuple[int, int]] = {Status.BAD: (0, 14), Status.WARNING: (14, 42)}
"""The life expectancy in days that stands for a status in Ceph (design 4): from, to."""
AT_ONCE = 5
"""The most commands per poll: if many disks change their status, publishing takes minutes."""
_STALE_DAYS = 7
_SHOWS_WITHIN = timedelta(minutes=3)
_NAME = "lives"


@dataclass(frozen=True, slots=True)
class LifeExpectancyUpdate:
    """The commands, the record that must be stored before they are sent, and the advice to a person."""

    commands: tuple[PublishLife | WithdrawLife, ...]
    ledger: Ledger
    advice: str = ""


def plan_life_expectancy_updates(
    view: ClusterView,
    outlooks: Mapping[DeviceId, Outlook],
    drains: Iterable[Drain],
    ledger: Ledger,
    policy: Policy,
    now: datetime,
    waiting: frozenset[DeviceId] = frozenset(),
) -> LifeExpectancyUpdate:
    """Plan the changes, at most AT_ONCE. `waiting`: devices whose last command need not show in the view yet."""
    plugged = find_osd_layout(view.osds).models
    told = {device: outlook for device, outlook in outlooks.items() if device in plugged}
    resting = _find_excluded_devices(drains, policy, now)
    worth = {device for device, outlook in told.items() if outlook.severity in DAYS and device not in resting}
    silent = view.self_heal is not False
    kept: dict[DeviceId, tuple[Span, ...]] = {}
    commands: list[PublishLife | WithdrawLife] = []
    for device in sorted(worth | ledger.keys()):
        standing, spans = view.lives.get(device), ledger.get(device, ())
        ours = standing is not None and any(_is_same_span(standing, span) for span in spans)
        room = len(commands) < AT_ONCE and device not in waiting
        if standing is not None and not ours and device not in waiting:
            continue  # an entry of another writer
        outlook = told.get(device)
        fresh = outlook is not None and now - outlook.as_of <= policy.outlook_age_max
        if silent or device not in worth:
            unsure = outlook is not None and (not fresh or outlook.severity is Status.UNKNOWN)
            if ours and room and (silent or device in resting or not unsure):
                commands.append(WithdrawLife(device))
            if standing is not None or device in waiting:
                kept[device] = spans
            continue
        assert outlook is not None
        span = _compute_life_span(outlook.severity, now)
        if (
            room
            and fresh
            and not (ours and standing is not None and _is_still_current(standing, outlook.severity, now))
        ):
            commands.append(PublishLife(device, *span))
            spans = (*(one for one in spans if standing is not None and _is_same_span(standing, one)), span)
        if spans:
            kept[device] = spans
    return LifeExpectancyUpdate(
        tuple(commands), kept, _explain_not_published(view) if silent and worth else ""
    )


@dataclass(slots=True)
class LifeExpectancyPublisher:
    """Publishes changes at each poll. The record is in the config-key store under `lives`."""

    keep: ConfigKeyStore
    _ledger: Ledger | None = None
    _sent: dict[DeviceId, datetime] = field(default_factory=dict)

    def publish_changes(
        self,
        view: ClusterView,
        outlooks: Mapping[DeviceId, Outlook],
        drains: Iterable[Drain],
        policy: Policy,
        now: datetime,
        send: Callable[[PublishLife | WithdrawLife], bool],
    ) -> str:
        """Send what has changed. Return advice to a person, or "". `send`: returns whether it sent the command; if
        not, stop.

        Raises ClusterUnreachable if the record cannot be read or stored; nothing was sent then.
        """
        if policy.mode is Mode.OBSERVE:
            return ""
        if self._ledger is None:
            self._ledger = read_ledger(self.keep.read(_NAME) or "")
        self._sent = {
            device: at for device, at in self._sent.items() if is_within_last(at, now, _SHOWS_WITHIN)
        }
        due = plan_life_expectancy_updates(
            view, outlooks, drains, self._ledger, policy, now, frozenset(self._sent)
        )
        if due.ledger != self._ledger:
            self._keep(due.ledger)
        for command in due.commands:
            if not send(command):
                break
            self._sent[command.device] = now
        return due.advice

    def forget(self) -> None:
        """Read the record again at the next poll, because another controller may have published."""
        self._ledger = None

    def _keep(self, ledger: Ledger) -> None:
        self._ledger = None  # unknown until it is stored
        if ledger:
            self.keep.write(_NAME, write_ledger(ledger))
        else:
            self.keep.remove(_NAME)
        self._ledger = ledger


def write_ledger(ledger: Ledger) -> str:
    """Encode the record: one line per device with its id, then each span that may be predrain's own, separated by
    tabs.
    """
    return "\n".join(
        "\t".join([device, *(f"{start:%Y-%m-%d}..{end:%Y-%m-%d}" for start, end in spans)])
        for device, spans in sorted(ledger.items())
    )


def read_ledger(text: str) -> dict[DeviceId, tuple[Span, ...]]:
    """Decode a text of `write_ledger`. Raises ClusterUnreachable for any other text, since the owner of each entry
    must be known.
    """
    ledger: dict[DeviceId, tuple[Span, ...]] = {}
    for line in text.splitlines():
        device, *spans = line.split("\t")
        try:
            ledger[DeviceId(device)] = tuple(_read_span(span) for span in spans)
        except ValueError as error:
            raise ClusterUnreachable(
                f"the list of published lives cannot be read ({error}); look at it with "
                f"`ceph config-key get predrain/{_NAME}`"
            ) from error
    return ledger


def _read_span(text: str) -> Span:
    start, _, end = text.partition("..")
    return _parse_day(start), _parse_day(end)


def _parse_day(text: str) -> datetime:
    return datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC)


def _compute_life_span(status: Status, now: datetime) -> Span:
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    first, last = DAYS[status]
    return today + timedelta(days=first), today + timedelta(days=last)


def _is_still_current(standing: tuple[datetime, datetime | None], status: Status, now: datetime) -> bool:
    """Return whether the published entry has the span of this status and is at most _STALE_DAYS days old."""
    start, end = _compute_life_span(status, now)
    is_, until = standing
    width = None if until is None else until - is_
    return width == end - start and start - is_ < timedelta(days=_STALE_DAYS)


def _is_same_span(standing: tuple[datetime, datetime | None], span: Span) -> bool:
    return standing == span


def _find_excluded_devices(drains: Iterable[Drain], policy: Policy, now: datetime) -> frozenset[DeviceId]:
    """Return devices that are not published: handed over, or with a drain that a person cancelled lately."""
    newest: dict[DeviceId, Drain] = {}
    for drain in drains:
        if drain.device is not None and (
            drain.device not in newest or drain.created_at > newest[drain.device].created_at
        ):
            newest[drain.device] = drain
    return frozenset(device for device, drain in newest.items() if _should_exclude_device(drain, policy, now))


def _should_exclude_device(drain: Drain, policy: Policy, now: datetime) -> bool:
    if drain.state is DrainState.CANCELLED:
        return bool(drain.cancelled_by) and now - drain.updated_at < policy.proposal_cooldown
    return drain.state in (DrainState.CANCELLING, DrainState.HANDED_OVER)


def _explain_not_published(view: ClusterView) -> str:
    why = "is on" if view.self_heal else "is not known"
    return (
        f"Life expectancies are not published: mgr/devicehealth/self_heal {why}, and with it the mgr outs a disk in "
        "one step for a short one. To have them published: `ceph config set mgr mgr/devicehealth/self_heal false`."
    )
