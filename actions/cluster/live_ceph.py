"""A real cluster behind the cluster port: its answers become a view, and port commands become Ceph's own commands."""

from __future__ import annotations

import errno
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

import msgspec

from predrain.actions.cluster.channel import Argument, CommandChannel, DaemonReply
from predrain.actions.cluster.cluster_port import (
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
from predrain.actions.cluster.cluster_view import BALANCER, ClusterView
from predrain.actions.cluster.dumps import ClusterReader, NotUnderstood, run_read_commands
from predrain.actions.cluster.latency_observer import LatencyObserver

Words = tuple[str, str, Mapping[str, Argument]]
"""The daemon, the prefix and the arguments of one of Ceph's commands."""


class _OsdStat(msgspec.Struct):
    epoch: int


def to_ceph_commands(command: Command) -> tuple[Words, ...]:
    """Translate the command into Ceph's commands (seen on Pacific, Reef and Tentacle). Several are sent together, so
    that the mon can put them into one map.
    """
    match command:
        case SetUpmap(pg=pg, pairs=pairs, acting=acting):
            ids = [osd for pair in pairs for osd in pair]
            return (*_build_pg_temp(pg, acting), ("mon", "osd pg-upmap-items", {"pgid": pg, "id": ids}))
        case RemoveUpmap(pg=pg, acting=acting):
            return (*_build_pg_temp(pg, acting), ("mon", "osd rm-pg-upmap-items", {"pgid": pg}))
        case Reweight(osd=osd, weight=weight, acting=acting):
            return (*_build_all_pg_temps(acting), ("mon", "osd reweight", {"id": int(osd), "weight": weight}))
        case CrushReweight(osd=osd, weight=weight, acting=acting):
            return (
                *_build_all_pg_temps(acting),
                ("mon", "osd crush reweight", {"name": f"osd.{osd}", "weight": weight}),
            )
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


def _build_pg_temp(pg: str, acting: tuple[int, ...]) -> tuple[Words, ...]:
    return (("mon", "osd pg-temp", {"pgid": pg, "id": list(acting)}),) if acting else ()


def _build_all_pg_temps(servers: Servers) -> tuple[Words, ...]:
    return tuple(words for pg, acting in servers for words in _build_pg_temp(pg, acting))


@dataclass(slots=True)
class LiveCluster:
    """The `Cluster` port over a channel. Only one thread at a time may use it. `now`: the clock that dates the
    answers.
    """

    channel: CommandChannel
    now: Callable[[], datetime]
    reader: ClusterReader = field(default_factory=ClusterReader)
    senses: LatencyObserver | None = None
    """The observer that adds latencies and reservations; without it there is no signal, and no throttle is verified."""

    def view(self) -> ClusterView:
        """Send the read commands that are due, and build the view. Raises ClusterUnreachable, also for answers that
        cannot be read.
        """
        at = self.now()
        answers = run_read_commands(self.channel, self.reader.list_due_commands(at), at)
        try:
            seen = self.reader.view(answers)
        except NotUnderstood as strange:
            raise ClusterUnreachable(str(strange)) from strange
        return seen if self.senses is None else self.senses.add_to_view(seen, at)

    def apply(self, command: Command) -> CommandResult:
        """Send one command. The result's epoch is that of the map right after it. Raises ClusterUnreachable."""
        self.reader.note_command(command, self.now())
        if command == Balancer(
            on=None
        ):  # without its row the mgr keeps the balancer's last state until it restarts
            woken = self.channel.ask("mgr", "balancer on")
            if not woken.ok:
                return CommandResult(False, _describe_reply(woken))
        replies = self.channel.ask_all(to_ceph_commands(command))
        if not replies[-1].ok:  # a refused pg-temp is no failure: the PG then peers once more
            return CommandResult(False, _describe_reply(replies[-1]))
        return CommandResult(
            True, "; ".join(dict.fromkeys(filter(None, map(_describe_reply, replies)))), self._epoch()
        )

    def _epoch(self) -> int | None:
        reply = self.channel.ask("mon", "osd stat", {"format": "json"})
        try:
            return msgspec.json.decode(reply.out, type=_OsdStat).epoch if reply.ok else None
        except msgspec.DecodeError:
            return None


def _describe_reply(reply: DaemonReply) -> str:
    text = reply.err.strip()
    return text if text or reply.ok else errno.errorcode.get(-reply.rc, f"error {reply.rc}")
