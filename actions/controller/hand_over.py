"""The tasks of a person or of the orchestrator once a disk is empty and verified: commands to copy, and a checklist.

predrain itself does not destroy an OSD: after this point nothing is reversible.
"""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from enum import StrEnum

from predrain.actions.cluster.channel import CommandChannel
from predrain.actions.cluster.cluster_view import ClusterView
from predrain.data.drain import Drain
from predrain.data.ids import OsdId


class Orchestrator(StrEnum):
    """The orchestrator that starts and stops daemons in the cluster; NONE: people do."""

    CEPHADM = "cephadm"
    ROOK = "rook"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class HandOverTask:
    """One task, and the command for it if there is one."""

    what: str
    command: str = ""


@dataclass(frozen=True, slots=True)
class HandOver:
    """The remaining tasks of a drain, in order."""

    drain: str
    orchestrator: Orchestrator
    tasks: tuple[HandOverTask, ...]

    def text(self) -> str:
        """Return the checklist for people."""
        lines = []
        for number, task in enumerate(self.tasks, 1):
            lines.append(f"{number}. {task.what}")
            if task.command:
                lines.append(f"   {task.command}")
        return "\n".join(lines)


def detect_orchestrator(channel: CommandChannel) -> Orchestrator:
    """Return the orchestrator that `orch status` reports; NONE if it reports none. Raises ClusterUnreachable."""
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
    """Return the next tasks, by intent and orchestrator.

    All OSDs of a shared device are removed before it is pulled. A disk that was filled stays.
    """
    if drain.intent.fills_osd:
        why = "It has its share and stays. If it was kept out, let it come in by itself again:"
        return HandOver(drain.id, by, (_build_noin_task(drain, "rm-noin", why),))
    replaced = not drain.intent.removes_osd
    tasks: list[HandOverTask] = []
    for osd in drain.osds:
        tasks += _WAYS[by](view, osd, replaced)
    refilled = replaced and by is not Orchestrator.ROOK
    if refilled:
        tasks.append(_build_noin_task(drain, "add-noin", "Keep Ceph from filling the new disk in one rush."))
    tasks.append(_build_pull_task(view, drain, replaced))
    if replaced:
        tasks += _put_in(drain, by)
    if refilled:
        tasks += [HandOverTask("Fill it again, gently.", f"predrain fill osd.{osd}") for osd in drain.osds]
        tasks.append(_build_noin_task(drain, "rm-noin", "Once it is filled:"))
    return HandOver(drain.id, by, tuple(tasks))


def _by_cephadm(view: ClusterView, osd: OsdId, replaced: bool) -> list[HandOverTask]:
    host = _find_osd_host(view, osd)
    keeps = "; its id and its place in CRUSH are kept" if replaced else ""
    return [
        HandOverTask(
            f"Let cephadm take osd.{osd} off {host}{keeps}.",
            f"ceph orch osd rm {osd}{' --replace' * replaced}",
        ),
        HandOverTask("Wait until it is no longer listed.", "ceph orch osd rm status"),
    ]


def _by_rook(view: ClusterView, osd: OsdId, replaced: bool) -> list[HandOverTask]:
    deployment = f"deployment rook-ceph-osd-{osd}"
    goes = "Rook keeps no id: the new disk becomes an OSD of its own." if replaced else "It goes for good."
    return [
        HandOverTask(
            f"Keep Rook's operator from starting osd.{osd} on {_find_osd_host(view, osd)} again.",
            f"kubectl -n rook-ceph label {deployment} ceph.rook.io/do-not-reconcile=true",
        ),
        HandOverTask(f"Stop osd.{osd}.", f"kubectl -n rook-ceph scale {deployment} --replicas=0"),
        HandOverTask(f"Take osd.{osd} out of the cluster. {goes}", f"kubectl rook-ceph rook purge-osd {osd}"),
    ]


def _by_hand(view: ClusterView, osd: OsdId, replaced: bool) -> list[HandOverTask]:
    sure = "--yes-i-really-mean-it"
    way = f"ceph osd destroy {osd} {sure}" if replaced else f"ceph osd purge {osd} {sure}"
    keeps = "its id and its place in CRUSH are kept" if replaced else "it leaves the map"
    return [
        HandOverTask(
            f"Ask Ceph once more: it must say that osd.{osd} is safe to destroy.",
            f"ceph osd safe-to-destroy {osd}",
        ),
        HandOverTask(
            f"On {_find_osd_host(view, osd)}, stop the daemon.", f"systemctl disable --now ceph-osd@{osd}"
        ),
        HandOverTask(f"Destroy osd.{osd}; {keeps}.", way),
    ]


_WAYS = {Orchestrator.CEPHADM: _by_cephadm, Orchestrator.ROOK: _by_rook, Orchestrator.NONE: _by_hand}


def _build_pull_task(view: ClusterView, drain: Drain, replaced: bool) -> HandOverTask:
    hosts = ", ".join(sorted({_find_osd_host(view, osd) for osd in drain.osds}))
    verb = "Replace" if replaced else "Pull"
    if drain.device is None:
        return HandOverTask(f"{verb} the disk in {hosts}; its device id is not known.")
    lit = shlex.join(["ceph", "device", "light", "on", drain.device, "ident"])
    return HandOverTask(f"{verb} {drain.device} in {hosts}. If its light is not lit:", lit)


def _build_noin_task(drain: Drain, word: str, why: str) -> HandOverTask:
    """Build a task about the flag `noin`. An OSD keeps its id, so Ceph would take in a new disk at once under that id,
    and fill it at its own speed.
    """
    return HandOverTask(why, shlex.join(["ceph", "osd", word, *(f"osd.{osd}" for osd in drain.osds)]))


def _put_in(drain: Drain, by: Orchestrator) -> list[HandOverTask]:
    if by is not Orchestrator.NONE:
        return [
            HandOverTask(f"Let {by.value} make the OSD on the new disk, by the specification that it has.")
        ]
    return [
        HandOverTask(
            f"Make osd.{osd} on the new disk.", f"ceph-volume lvm create --osd-id {osd} --data /dev/NEW"
        )
        for osd in drain.osds
    ]


def _find_osd_host(view: ClusterView, osd: OsdId) -> str:
    found = view.osds.get(osd)
    return found.host if found is not None else "its host"
