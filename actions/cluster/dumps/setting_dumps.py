"""`ceph config dump` and `ceph config show`: recovery settings, and the scheduler that the OSDs run."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from predrain.actions.cluster.cluster_view import BALANCER, PROPOSE_INTERVAL
from predrain.actions.cluster.dumps.dump_decoding import decode_answer
from predrain.data.ids import OsdId

QUEUE = "osd_op_queue"
_SELF_HEAL = "mgr/devicehealth/self_heal"
_KEPT = ("osd_", "mon_osd_", "mgr/devicehealth/", BALANCER, "mgr_stats_period", PROPOSE_INTERVAL)
_FALSE = frozenset({"false", "0", "no", "off"})


class ConfigRow(msgspec.Struct):
    """One row of the mon's config."""

    section: str
    name: str
    value: str
    mask: str = ""


_ROWS = msgspec.json.Decoder(list[ConfigRow])
_ENCODER = msgspec.json.Encoder()


def config_dump(raw: bytes) -> Mapping[str, str]:
    """Return the rows that concern OSDs or the pace of maps. Raises NotUnderstood.

    Keys are `SECTION/NAME` or `SECTION/MASK/NAME`: `osd/osd_max_backfills`, `osd.3/osd_max_backfills`,
    `osd/host:stor-1/osd_max_backfills`.
    """
    kept = (row for row in decode_answer("config_dump", raw, _ROWS) if _is_kept(row))
    return {"/".join(part for part in (row.section, row.mask, row.name) if part): row.value for row in kept}


def without_secrets(raw: bytes) -> bytes:
    """Return the dump with only the rows that `config_dump` keeps, because others may hold passwords. Raises
    NotUnderstood.
    """
    return _ENCODER.encode([row for row in decode_answer("config_dump", raw, _ROWS) if _is_kept(row)])


def _is_kept(row: ConfigRow) -> bool:
    return row.name.startswith(_KEPT)


def self_heal(settings: Mapping[str, str]) -> bool:
    """Return whether the mgr outs a device for its published life expectancy, which is the default."""
    told = [settings.get(f"{section}/{_SELF_HEAL}") for section in ("mgr", "global")]
    return next((value.lower() not in _FALSE for value in told if value is not None), True)


class _Shown(msgspec.Struct):
    name: str
    value: str


_SHOWN = msgspec.json.Decoder(list[_Shown])


def shown_scheduler(raw: bytes) -> str | None:
    """Return the scheduler in an answer to `config show`, or None if it is not listed. Raises NotUnderstood.

    `config show osd.N osd_op_queue` answers with a bare word. A whole `config show` lists only values that are not
    default.
    """
    text = raw.strip()
    if not text.startswith(b"["):
        word = text.strip(b'"').decode("ascii", "replace")
        return word if word.replace("_", "").isalnum() else None
    return next((row.value for row in decode_answer("config_show", text, _SHOWN) if row.name == QUEUE), None)


def determine_scheduler(shown: Mapping[OsdId, str], settings: Mapping[str, str], release: str) -> str:
    """Return the scheduler of the OSDs: as the queried OSDs reported it, else as the mon's config sets it, else the
    release's default. Return `mixed` if there are several, and "" if it is unknown.
    """
    general = {f"osd/{QUEUE}", f"global/{QUEUE}"}
    rows = {key: value for key, value in settings.items() if key.endswith(f"/{QUEUE}")}
    told = {value for key, value in rows.items() if key not in general}
    usual = [rows[key] for key in sorted(general & rows.keys(), reverse=True)] or [_DEFAULTS.get(release, "")]
    told |= set(shown.values()) or {usual[0]}
    return told.pop() if len(told) == 1 else "mixed"


_DEFAULTS = {
    "octopus": "wpq",
    "pacific": "wpq",
    "quincy": "mclock_scheduler",
    "reef": "mclock_scheduler",
    "squid": "mclock_scheduler",
    "tentacle": "mclock_scheduler",
}
