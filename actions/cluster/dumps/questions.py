"""The commands by which a cluster is seen, and how often each is worth its price.

A full `pg dump` is 2.4 kB a PG, printed by the mgr under the lock that it needs to take in reports. So beyond some
thousand PGs a look asks for the brief rows (0.2 kB: state, up, acting), and for whole rows only of the OSDs where one
of our commands changed something; their `reported_epoch` tells when a change has shown. Both forms lack the stamp and
the version, which `pg dump sum` gives; it is asked first, so the rows are never older than their stamp says.
"""

from __future__ import annotations

from datetime import timedelta

from predrain.actions.cluster.channel import Argument
from predrain.actions.cluster.dumps.answers import ReadCommand
from predrain.data.ids import OsdId

_MINUTE, _TEN_MINUTES = timedelta(minutes=1), timedelta(minutes=10)

_FULL_DUMP_SECONDS = 120.0
"""By what 1,025 PGs were seen to cost, 65,536 take the mgr 2.3 to 4 s of processor, and longer where that is shared."""


def _question(
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
    _question("mgr_dump", "mon"),
    _question("status", "mon"),
    _question("osd_dump", "mon"),
    _question("osd_crush_dump", "mon"),
    _question("config_dump", "mon"),
    _question("versions", "mon", needed=False),
    _question("balancer_status", "mgr", needed=False),
    _question("osd_df", "mgr"),
    PG_SUM,
)
"""Asked at every look, in this order, before the PGs' rows."""

SELDOM: tuple[ReadCommand, ...] = (
    _question("device_ls", "mgr", needed=False, every=_MINUTE),
    HEALTH_DETAIL,
    _question("orch_upgrade_status", "mgr", needed=False, every=_MINUTE),
    _question("osd_metadata", "mon", needed=False, every=_TEN_MINUTES),
)
"""What changes by a person's hand only, or is for people to read."""

QUESTIONS: tuple[ReadCommand, ...] = (*EACH_LOOK, PG_DUMP, *SELDOM)
"""Everything, each PG whole: what a recording holds."""


def whole_rows(osd: OsdId) -> ReadCommand:
    """The PGs that name an OSD in `up` or `acting`, as whole rows."""
    arguments: dict[str, Argument] = {"osd": int(osd), "format": "json"}
    return ReadCommand(f"pg_ls_by_osd.{osd}", "mgr", "pg ls-by-osd", arguments, needed=False)


def running_scheduler(osd: OsdId) -> ReadCommand:
    """Which `osd_op_queue` an OSD runs, as it told the mgr: `config dump` shows only what the next start takes."""
    arguments: dict[str, Argument] = {"who": f"osd.{osd}", "key": "osd_op_queue"}
    return ReadCommand(f"config_show.{osd}", "mgr", "config show", arguments, needed=False, every=_MINUTE)
