"""The commands that read a cluster, and how often each is worth its cost.

A full `pg dump` has 2.4 kB per PG, which the mgr prints under the lock that it needs to accept reports. So above some
thousand PGs a poll requests the brief rows (0.2 kB: state, up, acting), and whole rows only of the OSDs where one of
our commands changed something; their `reported_epoch` shows when a change has taken effect. Both forms lack the stamp
and the version, which `pg dump sum` gives. That command is sent first, so the rows are never older than the stamp.
"""

from __future__ import annotations

from datetime import timedelta

from predrain.actions.cluster.channel import Argument
from predrain.actions.cluster.dumps.raw_answers import ReadCommand
from predrain.data.ids import OsdId

_MINUTE, _TEN_MINUTES = timedelta(minutes=1), timedelta(minutes=10)

_FULL_DUMP_SECONDS = 120.0
"""The mgr needs 2.3 to 4 s of processor time for 65,536 PGs, extrapolated from 1,025 PGs, and longer on a shared
processor.
"""


def _build_read_command(
    name: str, to: str, *, needed: bool = True, every: timedelta = timedelta(0), **arguments: Argument
) -> ReadCommand:
    return ReadCommand(name, to, name.replace("_", " "), {**arguments, "format": "json"}, needed, every)


PG_SUM = ReadCommand("pg_sum", "mgr", "pg dump", {"dumpcontents": ["sum"], "format": "json"})
PG_DUMP = ReadCommand(
    "pg_dump",
    "mgr",
    "pg dump",
    {"dumpcontents": ["pgs"], "format": "json"},
    every=_TEN_MINUTES,
    seconds=_FULL_DUMP_SECONDS,
)
PG_BRIEF = ReadCommand("pg_brief", "mgr", "pg dump", {"dumpcontents": ["pgs_brief"], "format": "json"})

HEALTH_DETAIL = ReadCommand(
    "health_detail", "mon", "health", {"detail": "detail", "format": "json"}, needed=False, every=_MINUTE
)

EACH_LOOK: tuple[ReadCommand, ...] = (
    _build_read_command("mgr_dump", "mon"),
    _build_read_command("status", "mon"),
    _build_read_command("osd_dump", "mon"),
    _build_read_command("osd_crush_dump", "mon"),
    _build_read_command("config_dump", "mon"),
    _build_read_command("versions", "mon", needed=False),
    _build_read_command("balancer_status", "mgr", needed=False),
    _build_read_command("osd_df", "mgr"),
    PG_SUM,
)
"""Commands sent at every poll, in this order, before the PGs' rows."""

SELDOM: tuple[ReadCommand, ...] = (
    _build_read_command("device_ls", "mgr", needed=False, every=_MINUTE),
    HEALTH_DETAIL,
    _build_read_command("orch_upgrade_status", "mgr", needed=False, every=_MINUTE),
    _build_read_command("osd_metadata", "mon", needed=False, every=_TEN_MINUTES),
)
"""Commands for data that changes only when a person changes it, or that only people read."""

QUESTIONS: tuple[ReadCommand, ...] = (*EACH_LOOK, PG_DUMP, *SELDOM)
"""All read commands, with each PG as a whole row: the content of a recording."""


def whole_rows(osd: OsdId) -> ReadCommand:
    """Return the command that reads whole rows of the PGs that name an OSD in `up` or `acting`."""
    arguments: dict[str, Argument] = {"osd": int(osd), "format": "json"}
    return ReadCommand(f"pg_ls_by_osd.{osd}", "mgr", "pg ls-by-osd", arguments, needed=False)


def running_scheduler(osd: OsdId) -> ReadCommand:
    """Return the command that reads which `osd_op_queue` an OSD runs, as the OSD reported it to the mgr. `config dump`
    shows only the value for its next start.
    """
    arguments: dict[str, Argument] = {"who": f"osd.{osd}", "key": "osd_op_queue"}
    return ReadCommand(f"config_show.{osd}", "mgr", "config show", arguments, needed=False, every=_MINUTE)
