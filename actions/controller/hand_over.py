"""What a person or the orchestrator does once a disk is empty and verified: commands to copy, and a checklist.

predrain itself does not destroy an OSD: from here on nothing is reversible.
"""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from enum import StrEnum

from predrain.actions.cluster.channel import CommandChannel
from predrain.actions.cluster.view import ClusterView
from predrain.data.drain import Drain
from predrain.data.ids import OsdId


class Orchestrator(StrEnum):
    """Who starts and stops daemons in the cluster; NONE: people do."""

    CEPHADM = "cephadm"
    ROOK = "rook"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Task:
    """One thing to do, and the command that does it, where there is one."""

    what: str
    command: str = ""


@dataclass(frozen=True, slots=True)
class HandOver:
    """What is left to do for a drain, in order."""

    drain: str
    orchestrator: Orchestrator
    tasks: tuple[Task, ...]

    def text(self) -> str:
        """The checklist, for people."""
        lines = []
        for number, task in enumerate(self.tasks, 1):
            lines.append(f"{number}. {task.what}")
            if task.command:
                lines.append(f"   {task.command}")
        return "\n".join(lines)


def orchestrator(channel: CommandChannel) -> Orchestrator:
    """Who orchestrates, by `orch status`; NONE where nobody answers so. Raises ClusterUnreachable."""
    reply = channel.ask("mgr", "orch status", {"format": "json"})
    try:
        said = json.loads(reply.out) if reply.ok else {}
    except ValueError:
        return Orchestrator.NONE
    backend = said.get("backend") if isinstance(said, dict) and said.get("available") else None
    return (
        Orchestrator(backend) if backend in (Orchestrator.CEPHADM, Orchestrator.ROOK) else Orchestrator.NONE
    )


def hand_over(view: ClusterView, drain: Drain, by: Orchestrator) -> HandOver:
    """What is done next, by intent and orchestrator. All of a shared device's OSDs go before it is pulled. A disk that
    was filled stays.
    """
    if drain.intent.fills_osd:
        why = "It has its share and stays. If it was kept out, let it come in by itself again:"
        return HandOver(drain.id, by, (_noin(drain, "rm-noin", why),))
    replaced = not drain.intent.removes_osd
    tasks: list[Task] = []
    for osd in drain.osds:
        tasks += _WAYS[by](view, osd, replaced)
    refilled = replaced and by is not Orchestrator.ROOK
    if refilled:
        tasks.append(_noin(drain, "add-noin", "Keep Ceph from filling the new disk in one rush."))
    tasks.append(_pull(view, drain, replaced))
    if replaced:
        tasks += _put_in(drain, by)
    if refilled:
        tasks += [Task("Fill it again, gently.", f"predrain fill osd.{osd}") for osd in drain.osds]
        tasks.append(_noin(drain, "rm-noin", "Once it is filled:"))
    return HandOver(drain.id, by, tuple(tasks))


def _by_cephadm(view: ClusterView, osd: OsdId, replaced: bool) -> list[Task]:
    host = _host(view, osd)
    keeps = "; its id and its place in CRUSH are kept" if replaced else ""
    return [
        Task(
            f"Let cephadm take osd.{osd} off {host}{keeps}.",
            f"ceph orch osd rm {osd}{' --replace' * replaced}",
        ),
        Task("Wait until it is no longer listed.", "ceph orch osd rm status"),
    ]


def _by_rook(view: ClusterView, osd: OsdId, replaced: bool) -> list[Task]:
    deployment = f"deployment rook-ceph-osd-{osd}"
    goes = "Rook keeps no id: the new disk becomes an OSD of its own." if replaced else "It goes for good."
    return [
        Task(
            f"Keep Rook's operator from starting osd.{osd} on {_host(view, osd)} again.",
            f"kubectl -n rook-ceph label {deployment} ceph.rook.io/do-not-reconcile=true",
        ),
        Task(f"Stop osd.{osd}.", f"kubectl -n rook-ceph scale {deployment} --replicas=0"),
        Task(f"Take osd.{osd} out of the cluster. {goes}", f"kubectl rook-ceph rook purge-osd {osd}"),
    ]


def _by_hand(view: ClusterView, osd: OsdId, replaced: bool) -> list[Task]:
    sure = "--yes-i-really-mean-it"
    way = f"ceph osd destroy {osd} {sure}" if replaced else f"ceph osd purge {osd} {sure}"
    keeps = "its id and its place in CRUSH are kept" if replaced else "it leaves the map"
    return [
        Task(
            f"Ask Ceph once more: it must say that osd.{osd} is safe to destroy.",
            f"ceph osd safe-to-destroy {osd}",
        ),
        Task(f"On {_host(view, osd)}, stop the daemon.", f"systemctl disable --now ceph-osd@{osd}"),
        Task(f"Destroy osd.{osd}; {keeps}.", way),
    ]


_WAYS = {Orchestrator.CEPHADM: _by_cephadm, Orchestrator.ROOK: _by_rook, Orchestrator.NONE: _by_hand}


def _pull(view: ClusterView, drain: Drain, replaced: bool) -> Task:
    hosts = ", ".join(sorted({_host(view, osd) for osd in drain.osds}))
    verb = "Replace" if replaced else "Pull"
    if drain.device is None:
        return Task(f"{verb} the disk in {hosts}; its device id is not known.")
    lit = shlex.join(["ceph", "device", "light", "on", drain.device, "ident"])
    return Task(f"{verb} {drain.device} in {hosts}. If its light is not lit:", lit)


def _noin(drain: Drain, word: str, why: str) -> Task:
    """An OSD keeps its id, so that Ceph would take a new disk under it in at once, and fill it at its own speed."""
    return Task(why, shlex.join(["ceph", "osd", word, *(f"osd.{osd}" for osd in drain.osds)]))


def _put_in(drain: Drain, by: Orchestrator) -> list[Task]:
    if by is not Orchestrator.NONE:
        return [Task(f"Let {by.value} make the OSD on the new disk, by the specification that it has.")]
    return [
        Task(f"Make osd.{osd} on the new disk.", f"ceph-volume lvm create --osd-id {osd} --data /dev/NEW")
        for osd in drain.osds
    ]


def _host(view: ClusterView, osd: OsdId) -> str:
    found = view.osds.get(osd)
    return found.host if found is not None else "its host"
