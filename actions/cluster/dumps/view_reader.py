"""The reader: builds a view from a cluster's answers at each poll, and keeps the objects that did not change."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from predrain.actions.cluster.cluster_port import Command
from predrain.actions.cluster.cluster_view import ClusterView, Osd
from predrain.actions.cluster.dumps.daemon_dumps import (
    active_mgr,
    balancer_active,
    is_orchestrator_upgrading,
    parse_health_status,
    parse_running_release,
    read_errors,
)
from predrain.actions.cluster.dumps.device_dumps import (
    DeviceList,
    OsdDevices,
    OsdMetadata,
    device_ls,
    find_osd_devices,
    osd_metadata,
)
from predrain.actions.cluster.dumps.dump_decoding import CachedParser, not_answered, not_understood
from predrain.actions.cluster.dumps.osd_df import OsdUsage, osd_df
from predrain.actions.cluster.dumps.osd_dump import OsdDump, osd_dump
from predrain.actions.cluster.dumps.osd_tree import Tree, parse_crush_tree
from predrain.actions.cluster.dumps.pg_dump import MgrReportTime, PgTable, parse_pg_rows, parse_report_time
from predrain.actions.cluster.dumps.question_schedule import BRIEF_ABOVE, Schedule
from predrain.actions.cluster.dumps.raw_answers import RawAnswers, ReadCommand
from predrain.actions.cluster.dumps.setting_dumps import (
    config_dump,
    determine_scheduler,
    self_heal,
    shown_scheduler,
)
from predrain.actions.cluster.dumps.view_questions import EACH_LOOK, PG_BRIEF, PG_DUMP, PG_SUM, SELDOM
from predrain.data.ids import HostName, OsdId

_NEVER = datetime.fromtimestamp(0, UTC)
_CLOCK_LOOKS = 6


@dataclass(frozen=True, slots=True)
class _Statistics:
    """The time of the mgr's last reports, and whether the statistics of the PGs are complete."""

    heard: MgrReportTime
    known: bool


class ClusterReader:
    """Reads one cluster. Not safe for several threads at once.

    Equal bytes are parsed once. A PG or an OSD whose data has not changed stays the identical object, which
    `actions.core.pg_survey` relies on.
    """

    def __init__(self, brief_above: int = BRIEF_ABOVE) -> None:
        """brief_above: the number of PGs above which a poll does not read all of them as whole rows."""
        self._schedule = Schedule(brief_above)
        self._osd_dump, self._tree = CachedParser(osd_dump), CachedParser(parse_crush_tree)
        self._device_ls, self._osd_metadata = CachedParser(device_ls), CachedParser(osd_metadata)
        self._config_dump = CachedParser(config_dump)
        self._seldom: dict[str, bytes] = {}
        self._shown: dict[OsdId, str] = {}
        self._table = PgTable()
        self._osds: dict[OsdId, Osd] = {}
        self._parts: dict[OsdId, OsdDevices] = {}
        self._parts_of: tuple[object, ...] = ()
        self._ahead: deque[timedelta] = deque(maxlen=_CLOCK_LOOKS)
        self._mgr_id = ""
        self._view: ClusterView | None = None

    def list_due_commands(self, now: datetime) -> tuple[ReadCommand, ...]:
        """Return the read commands that are due now, in this order (`answers.run_read_commands`)."""
        return self._schedule.list_due_commands(self._view, now)

    def note_command(self, command: Command, now: datetime) -> None:
        """Record that a command was sent, even if no answer came, so that the next polls watch what it changes.

        Without this call it takes longer until the change shows.
        """
        self._schedule.note_command(command, self._view, now)

    def view(self, answers: RawAnswers) -> ClusterView:
        """Build the view from these answers, and from older ones to commands that are seldom sent. Raises
        NotUnderstood.
        """
        raw = self._all(answers)
        osdmap = self._osd_dump(raw["osd_dump"])
        places = self._tree(raw["osd_crush_dump"])
        _belong_together(osdmap, places)
        settings = self._config_dump(raw["config_dump"])
        release = parse_running_release(raw.get("versions"), osdmap.release)
        status, upgrade = parse_health_status(raw["status"])
        self._note_mgr(active_mgr(raw["mgr_dump"]))
        statistics = self._statistics(raw, osdmap)
        fills = osd_df(raw["osd_df"])
        devices = self._device_ls(raw["device_ls"]) if "device_ls" in raw else None
        bodies = self._osd_metadata(raw["osd_metadata"]) if "osd_metadata" in raw else None
        self._note_schedulers(raw)
        # `osd df` shows 0 kb for an OSD that is out, too.
        sizes_known = all(osd in fills for osd, row in osdmap.osds.items() if row.up and row.reweight > 0)
        self._view = ClusterView(
            as_of=self._by_our_clock(statistics.heard.stamp, answers.at),
            epoch=osdmap.epoch,
            fsid=osdmap.fsid,
            release=release.release,
            osds=self._all_osds(osdmap, places, fills, devices, bodies),
            pools=osdmap.pools,
            pgs=self._table.pgs,
            crush=places.crush,
            upmap_items=osdmap.upmap_items,
            has_full_upmaps=osdmap.has_full_upmaps,
            stretch_mode=osdmap.stretch_mode,
            require_min_compat_client=osdmap.require_min_compat_client,
            nearfull_ratio=osdmap.nearfull_ratio,
            backfillfull_ratio=osdmap.backfillfull_ratio,
            full_ratio=osdmap.full_ratio,
            health=status,
            flags=osdmap.flags,
            osd_flags=_collect_osd_flags(osdmap, places),
            balancer_active=balancer_active(raw.get("balancer_status")),
            mixed_versions=release.mixed,
            upgrade_running=upgrade or is_orchestrator_upgrading(raw.get("orch_upgrade_status")),
            settings=settings,
            statistics_known=statistics.known and sizes_known and self._mgr_id != "",
            mgr_id=self._mgr_id,
            dump_version=statistics.heard.version,
            scheduler=determine_scheduler(self._shown, settings, release.release),
            self_heal=self_heal(settings),
            lives=devices.lives if devices else {},
            read_errors=read_errors(raw.get("health_detail")),
        )
        self._schedule.note_answers(answers)
        return self._view

    def _all(self, answers: RawAnswers) -> Mapping[str, bytes]:
        """Return the answers together with the last ones to commands that were not sent this time."""
        raw = answers.raw
        whole = raw.keys() & {PG_DUMP.name, PG_BRIEF.name}
        for question in EACH_LOOK:
            if question.needed and question is not PG_SUM and question.name not in raw:
                raise not_answered(question.name)
        if not whole:
            raise not_answered(PG_DUMP.name)
        for question in SELDOM:
            if question.name in raw:
                self._seldom[question.name] = raw[question.name]
        return {**self._seldom, **raw}

    def _statistics(self, raw: Mapping[str, bytes], osdmap: OsdDump) -> _Statistics:
        name = PG_DUMP.name if PG_DUMP.name in raw else PG_BRIEF.name
        found = parse_pg_rows(name, raw[name])
        last_heard = found.heard
        if PG_SUM.name in raw:
            last_heard = parse_report_time(PG_SUM.name, raw[PG_SUM.name])
        if last_heard is None:
            raise not_answered(PG_SUM.name)
        if name == PG_DUMP.name:
            self._table.take_whole(name, found.rows, osdmap)
        else:
            self._table.take_brief(name, found.rows, osdmap)
            for part in sorted(key for key in raw if key.startswith("pg_ls_by_osd.")):
                self._table.refine(part, parse_pg_rows(part, raw[part]).rows, osdmap)
        if self._table.unweighed:
            self._schedule.whole_wanted = True
        ready = found.ready and last_heard.ready and last_heard.stamp > _NEVER
        return _Statistics(last_heard, ready and self._table.has_complete_statistics(osdmap))

    def _note_mgr(self, mgr_id: str) -> None:
        if mgr_id != self._mgr_id:
            self._mgr_id = mgr_id
            self._ahead.clear()
            self._schedule.whole_wanted = True

    def _by_our_clock(self, stamp: datetime, at: datetime) -> datetime:
        """Return the stamp by our clock, in which it cannot lie in the future.

        The stamps of a mgr whose clock runs ahead are set back by the largest lead of the last polls. Otherwise its
        old statistics would count as fresh.
        """
        self._ahead.append(stamp - at)
        return stamp - max(timedelta(0), *self._ahead)

    def _note_schedulers(self, raw: Mapping[str, bytes]) -> None:
        for name, answer in raw.items():
            kind, _, number = name.partition(".")
            if kind == "config_show" and (told := shown_scheduler(answer)):
                self._shown[OsdId(int(number or 0))] = told

    def _all_osds(
        self,
        osdmap: OsdDump,
        places: Tree,
        fills: Mapping[OsdId, OsdUsage],
        devices: DeviceList | None,
        bodies: Mapping[OsdId, OsdMetadata] | None,
    ) -> dict[OsdId, Osd]:
        if self._parts_of != (made_of := (devices, bodies)):
            self._parts_of, self._parts = made_of, {}
        osds: dict[OsdId, Osd] = {}
        classes = places.crush.classes or {}
        for id_, row in osdmap.osds.items():
            place, fill = places.places.get(id_), fills.get(id_)
            body = bodies.get(id_) if bodies else None
            own = self._parts.get(id_)
            if own is None:
                own = self._parts[id_] = find_osd_devices(id_, devices, bodies)
            told = body.host if body else None
            osd = Osd(
                id=id_,
                host=(place.host if place else None) or told or HostName(""),
                rack=place.rack if place else None,
                device=own.data,
                up=row.up,
                reweight=row.reweight,
                crush_weight=place.weight if place else 0.0,
                primary_affinity=row.primary_affinity,
                size_bytes=fill.size if fill else None,
                used_bytes=fill.used if fill else None,
                device_class=classes.get(id_),
                model=own.model,
                shared_devices=own.beside,
                machine=told,
                device_name=body.data[0] if body and body.data else None,
                old_weight=row.old_weight,
            )
            old = self._osds.get(id_)
            osds[id_] = old if old is not None and old == osd else osd
        self._osds = osds
        return osds


def _belong_together(osdmap: OsdDump, places: Tree) -> None:
    """Check that every pool's rule is in the CRUSH map. The two maps are read one after the other, so the rule of a
    pool that was made between them is missing. Raises NotUnderstood.
    """
    for pool in osdmap.pools.values():
        if pool.rule not in places.crush.rules:
            raise not_understood("osd_crush_dump", f"rule {pool.rule} of pool {pool.name} is not in it")


def _collect_osd_flags(osdmap: OsdDump, places: Tree) -> Mapping[OsdId, frozenset[str]]:
    """Return each OSD's flags: those set on the OSD, on a bucket above it, or on its device class."""
    flags: dict[OsdId, frozenset[str]] = {}
    classes = places.crush.classes or {}
    for id_, row in osdmap.osds.items():
        mine = row.flags | osdmap.class_flags.get(classes.get(id_, ""), frozenset())
        place = places.places.get(id_)
        if osdmap.bucket_flags and place is not None:
            for name in place.above & osdmap.bucket_flags.keys():
                mine |= osdmap.bucket_flags[name]
        if mine:
            flags[id_] = mine
    return flags
