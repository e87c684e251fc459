"""A real cluster behind the cluster port: its answers become a view, commands become Ceph's own."""

from __future__ import annotations

import errno
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

import msgspec

from predrain.actions.cluster.channel import Argument, CommandChannel, DaemonReply
from predrain.actions.cluster.dumps import ClusterReader, NotUnderstood, asked
from predrain.actions.cluster.port import (
    Balancer,
    ClusterUnreachable,
    Command,
    CommandResult,
    CrushReweight,
    DeviceLight,
    PrimaryAffinity,
    PublishLife,
    RemoveUpmap,
    Reweight,
    Servers,
    SetFlag,
    SetOption,
    SetUpmap,
    WithdrawLife,
)
from predrain.actions.cluster.senses import Senses
from predrain.actions.cluster.view import BALANCER, ClusterView

Words = tuple[str, str, Mapping[str, Argument]]
"""Daemon, prefix and arguments of one of Ceph's commands."""


class _OsdStat(msgspec.Struct):
    epoch: int


def words(command: Command) -> tuple[Words, ...]:
    """The command as Ceph spells it (seen on Pacific, Reef and Tentacle); several are sent together, to share a map."""
    match command:
        case SetUpmap(pg=pg, pairs=pairs, acting=acting):
            ids = [osd for pair in pairs for osd in pair]
            return (*_temp(pg, acting), ("mon", "osd pg-upmap-items", {"pgid": pg, "id": ids}))
        case RemoveUpmap(pg=pg, acting=acting):
            return (*_temp(pg, acting), ("mon", "osd rm-pg-upmap-items", {"pgid": pg}))
        case Reweight(osd=osd, weight=weight, acting=acting):
            return (*_temps(acting), ("mon", "osd reweight", {"id": int(osd), "weight": weight}))
        case CrushReweight(osd=osd, weight=weight, acting=acting):
            return (*_temps(acting), ("mon", "osd crush reweight", {"name": f"osd.{osd}", "weight": weight}))
        case PrimaryAffinity(osd=osd, affinity=affinity):
            return (("mon", "osd primary-affinity", {"id": int(osd), "weight": affinity}),)
        case SetFlag(flag=flag, on=on):
            return (("mon", "osd set" if on else "osd unset", {"key": flag}),)
        case SetOption(name=name, value=None, section=who):
            return (("mon", "config rm", {"who": who, "name": name}),)
        case SetOption(name=name, value=value, section=who):
            return (("mon", "config set", {"who": who, "name": name, "value": value or ""}),)
        case Balancer(on=None):
            return (("mon", "config rm", {"who": "mgr", "name": BALANCER}),)
        case Balancer(on=on):
            return (("mgr", "balancer on" if on else "balancer off", {}),)
        case PublishLife(device=device, start=start, end=end):
            days: dict[str, Argument] = {"from": f"{start:%Y-%m-%d}", "to": f"{end:%Y-%m-%d}"}
            return (("mgr", "device set-life-expectancy", {"devid": device, **days}),)
        case WithdrawLife(device=device):
            return (("mgr", "device rm-life-expectancy", {"devid": device}),)
        case DeviceLight(device=device, on=on):
            lit: dict[str, Argument] = {"enable": "on" if on else "off", "light_type": "ident"}
            return (("mgr", "device light", {"devid": device, **lit}),)


def _temp(pg: str, acting: tuple[int, ...]) -> tuple[Words, ...]:
    return (("mon", "osd pg-temp", {"pgid": pg, "id": list(acting)}),) if acting else ()


def _temps(servers: Servers) -> tuple[Words, ...]:
    return tuple(words for pg, acting in servers for words in _temp(pg, acting))


@dataclass(slots=True)
class LiveCluster:
    """The `Cluster` port over a channel. One thread at a time. `now`: the clock, by which answers are dated."""

    channel: CommandChannel
    now: Callable[[], datetime]
    reader: ClusterReader = field(default_factory=ClusterReader)
    senses: Senses | None = None
    """Who adds latencies and reservations; without it there is no signal, and no throttle is verified."""

    def view(self) -> ClusterView:
        """Ask what is due, and read it. Raises ClusterUnreachable, also for answers that make no sense."""
        at = self.now()
        answers = asked(self.channel, self.reader.due(at), at)
        try:
            seen = self.reader.view(answers)
        except NotUnderstood as strange:
            raise ClusterUnreachable(str(strange)) from strange
        return seen if self.senses is None else self.senses.onto(seen, at)

    def apply(self, command: Command) -> CommandResult:
        """Send one command; the epoch is that of the map right after it. Raises ClusterUnreachable."""
        self.reader.sent(command, self.now())
        if command == Balancer(
            on=None
        ):  # its row taken away, the mgr stays as it was told last until it starts anew
            woken = self.channel.ask("mgr", "balancer on")
            if not woken.ok:
                return CommandResult(False, _said(woken))
        replies = self.channel.ask_all(words(command))
        if not replies[-1].ok:  # a pg-temp before it only eases it: refused, the PG peers once more
            return CommandResult(False, _said(replies[-1]))
        return CommandResult(True, "; ".join(dict.fromkeys(filter(None, map(_said, replies)))), self._epoch())

    def _epoch(self) -> int | None:
        reply = self.channel.ask("mon", "osd stat", {"format": "json"})
        try:
            return msgspec.json.decode(reply.out, type=_OsdStat).epoch if reply.ok else None
        except msgspec.DecodeError:
            return None


def _said(reply: DaemonReply) -> str:
    text = reply.err.strip()
    return text if text or reply.ok else errno.errorcode.get(-reply.rc, f"error {reply.rc}")
