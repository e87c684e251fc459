"""Life expectancy told to the cluster, where telling it moves nothing.

While `mgr/devicehealth/self_heal` is on, the mgr outs a disk in one step and takes its primary affinity for a short
life (ceph.md e); then nothing is published, ours is withdrawn, and the command that a person may run is said. What
somebody else published is never touched: ours is what the ledger in the keep names, written there before it is sent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from predrain.actions.cluster.port import ClusterUnreachable, Keep, PublishLife, WithdrawLife
from predrain.actions.cluster.view import ClusterView
from predrain.actions.core.policy import Mode, Policy
from predrain.data.clock import lately
from predrain.data.drain import Drain, DrainState
from predrain.data.ids import DeviceId
from predrain.data.outlook import Outlook, Status

Span = tuple[datetime, datetime]
Ledger = Mapping[DeviceId, tuple[Span, ...]]

DAYS: Mapping[Status, tuple[int, int]] = {Status.BAD: (0, 14), Status.WARNING: (14, 42)}
"""What a status means to Ceph (design 4): from, to."""
AT_ONCE = 5
"""Commands a look: a fleet that turns is told of over minutes."""
_STALE_DAYS = 7
_SHOWS_WITHIN = timedelta(minutes=3)
_NAME = "lives"


@dataclass(frozen=True, slots=True)
class Publishing:
    """What is sent, the ledger that must be kept before that, and what a person is told."""

    commands: tuple[PublishLife | WithdrawLife, ...]
    ledger: Ledger
    advice: str = ""


def publishing(
    view: ClusterView,
    outlooks: Mapping[DeviceId, Outlook],
    drains: Iterable[Drain],
    ledger: Ledger,
    policy: Policy,
    now: datetime,
    waiting: frozenset[DeviceId] = frozenset(),
) -> Publishing:
    """Only what changes, at most AT_ONCE. `waiting`: devices whose last command need not show yet."""
    plugged = {osd.device for osd in view.osds.values() if osd.device is not None}
    told = {device: outlook for device, outlook in outlooks.items() if device in plugged}
    resting = _resting(drains, policy, now)
    worth = {device for device, outlook in told.items() if outlook.severity in DAYS and device not in resting}
    silent = view.self_heal is not False
    kept: dict[DeviceId, tuple[Span, ...]] = {}
    commands: list[PublishLife | WithdrawLife] = []
    for device in sorted(worth | ledger.keys()):
        standing, spans = view.lives.get(device), ledger.get(device, ())
        ours = standing is not None and any(_same(standing, span) for span in spans)
        room = len(commands) < AT_ONCE and device not in waiting
        if standing is not None and not ours and device not in waiting:
            continue  # somebody else's
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
        span = _span(outlook.severity, now)
        if (
            room
            and fresh
            and not (ours and standing is not None and _stands(standing, outlook.severity, now))
        ):
            commands.append(PublishLife(device, *span))
            spans = (*(one for one in spans if standing is not None and _same(standing, one)), span)
        if spans:
            kept[device] = spans
    return Publishing(tuple(commands), kept, _advice(view) if silent and worth else "")


@dataclass(slots=True)
class Publisher:
    """Publishes from look to look; the ledger lies in the keep under `lives`."""

    keep: Keep
    _ledger: Ledger | None = None
    _sent: dict[DeviceId, datetime] = field(default_factory=dict)

    def look(
        self,
        view: ClusterView,
        outlooks: Mapping[DeviceId, Outlook],
        drains: Iterable[Drain],
        policy: Policy,
        now: datetime,
        send: Callable[[PublishLife | WithdrawLife], bool],
    ) -> str:
        """Send what changed; what a person should know, or nothing. `send`: whether it was sent, else no more is.

        Raises ClusterUnreachable when the ledger cannot be read or kept; then nothing was sent.
        """
        if policy.mode is Mode.OBSERVE:
            return ""
        if self._ledger is None:
            self._ledger = read_ledger(self.keep.read(_NAME) or "")
        self._sent = {device: at for device, at in self._sent.items() if lately(at, now, _SHOWS_WITHIN)}
        due = publishing(view, outlooks, drains, self._ledger, policy, now, frozenset(self._sent))
        if due.ledger != self._ledger:
            self._keep(due.ledger)
        for command in due.commands:
            if not send(command):
                break
            self._sent[command.device] = now
        return due.advice

    def forget(self) -> None:
        """Another controller may have published: read the ledger again."""
        self._ledger = None

    def _keep(self, ledger: Ledger) -> None:
        self._ledger = None  # unknown until it is kept
        if ledger:
            self.keep.write(_NAME, write_ledger(ledger))
        else:
            self.keep.remove(_NAME)
        self._ledger = ledger


def write_ledger(ledger: Ledger) -> str:
    """One line a device: its id, then each span that may stand as ours, tabs between."""
    return "\n".join(
        "\t".join([device, *(f"{start:%Y-%m-%d}..{end:%Y-%m-%d}" for start, end in spans)])
        for device, spans in sorted(ledger.items())
    )


def read_ledger(text: str) -> dict[DeviceId, tuple[Span, ...]]:
    """The inverse of `write_ledger`. Raises ClusterUnreachable for anything else: whose it is must be known."""
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
    return _day(start), _day(end)


def _day(text: str) -> datetime:
    return datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC)


def _span(status: Status, now: datetime) -> Span:
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    first, last = DAYS[status]
    return today + timedelta(days=first), today + timedelta(days=last)


def _stands(standing: tuple[datetime, datetime | None], status: Status, now: datetime) -> bool:
    """Whether what stands says this status, and was said within the last days."""
    start, end = _span(status, now)
    is_, until = standing
    width = None if until is None else until - is_
    return width == end - start and start - is_ < timedelta(days=_STALE_DAYS)


def _same(standing: tuple[datetime, datetime | None], span: Span) -> bool:
    return standing == span


def _resting(drains: Iterable[Drain], policy: Policy, now: datetime) -> frozenset[DeviceId]:
    """Devices of which nothing is said: handed over, or a person cancelled their drain lately."""
    newest: dict[DeviceId, Drain] = {}
    for drain in drains:
        if drain.device is not None and (
            drain.device not in newest or drain.created_at > newest[drain.device].created_at
        ):
            newest[drain.device] = drain
    return frozenset(device for device, drain in newest.items() if _quiet(drain, policy, now))


def _quiet(drain: Drain, policy: Policy, now: datetime) -> bool:
    if drain.state is DrainState.CANCELLED:
        return bool(drain.cancelled_by) and now - drain.updated_at < policy.propose_again_after
    return drain.state in (DrainState.CANCELLING, DrainState.HANDED_OVER)


def _advice(view: ClusterView) -> str:
    why = "is on" if view.self_heal else "is not known"
    return (
        f"Life expectancies are not published: mgr/devicehealth/self_heal {why}, and with it the mgr outs a disk in "
        "one step for a short one. To have them published: `ceph config set mgr mgr/devicehealth/self_heal false`."
    )
