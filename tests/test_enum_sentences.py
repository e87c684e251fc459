"""Each member of an enum that people read about has exactly one sentence, in one table.

The page has no table of its own for these: REST serves the sentence. Where the page adds a shape or a noun by member,
its tables are `Record`s over the generated types, which `tsc` requires to be complete.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from importlib import import_module

import pytest

from predrain.actions.ceph_mgr.predrain.text_signing import SignatureFault
from predrain.actions.core import messages
from predrain.actions.guards import GUARDS
from predrain.actions.mechanics.restore import LeftCause
from predrain.data.disk_request import DiskPermission, DiskVerb, RequestOutcome
from predrain.data.drain import BoundKind, DrainState, Intent
from predrain.data.hold_reason import HoldReason
from predrain.data.life_cycle import LifeEvidence, LifeState, RetiredWhy
from predrain.data.outlook import Advice
from predrain.data.plan_refusal import PlanRefusalKind
from predrain.data.reading import Role
from predrain.data.self_test import SelfTestResult
from predrain.models.forecast.rules.fleet_levels import DriveKind
from predrain.service.disk_requests.request_guards import RequestRefusalKind
from predrain.service.events.event_kinds import HistoryKind
from predrain.service.fleet.monthly_report import ReportKind
from predrain.service.fleet.smart_meanings import MeaningSource
from tests.measure.prose_reading import find_sentence_tables
from tests.measure.source import ROOT, list_product_files

TABLES: Mapping[str, tuple[type[Enum], set[Enum]]] = {
    "service/events/event_sentences.py:EVENT_TEXTS": (HistoryKind, set()),
    "service/fleet/life_sentences.py:STATE_TEXTS": (LifeState, {LifeState.RETIRED}),
    "service/fleet/life_sentences.py:RETIRED_TEXTS": (RetiredWhy, set()),
    "service/fleet/life_sentences.py:EVIDENCE_TEXTS": (LifeEvidence, set()),
    "service/fleet/monthly_report.py:ENTRY_TEXTS": (ReportKind, set()),
    "service/fleet/smart_meanings.py:SOURCE_TEXTS": (MeaningSource, set()),
    "data/messages.py:BOUND_TEXTS": (BoundKind, set()),
    "data/messages.py:REFUSAL_TEXTS": (PlanRefusalKind, set()),
    "actions/core/messages.py:INTENT_TEXTS": (Intent, set()),
    "actions/mechanics/restore.py:LEFT_TEXTS": (LeftCause, set()),
    "data/outlook.py:ADVICE_TEXTS": (Advice, set()),
    "actions/ceph_mgr/predrain/kept_texts.py:FAULT_TEXTS": (SignatureFault, set()),
    "collector/osd_devices/device_map.py:ROLE_TEXTS": (Role, set()),
    "models/forecast/rules/fleet_levels.py:KIND_TEXTS": (DriveKind, set()),
    "service/disk_requests/request_sentences.py:VERB_TEXTS": (DiskVerb, set()),
    "service/disk_requests/request_sentences.py:PERMISSION_TEXTS": (DiskPermission, set()),
    "service/disk_requests/request_sentences.py:REFUSAL_TEXTS": (RequestRefusalKind, set()),
    "service/disk_requests/request_sentences.py:OUTCOME_TEXTS": (RequestOutcome, set()),
    "service/disk_requests/request_sentences.py:RESULT_TEXTS": (SelfTestResult, set()),
}
"""The enum of each table, by file and name, and the members whose sentences are in another table."""

PARTIAL = {
    "actions/guards/cluster_guards.py:STRETCH_TEXTS": "the states in which no drain may act",
    "data/failed_disks.py:ABSENT_TEXTS": "the evidence that a disk does not answer",
    "data/failed_disks.py:GONE_TEXTS": "the evidence that a disk is gone",
    "models/lab/report/left_out_rows.py:TITLE_TEXTS": "the titles of sections of a report",
}
"""Tables that speak of some members only, each with the choice that it makes."""

WITHOUT_A_GUARD = {HoldReason.MODE, HoldReason.UNREACHABLE, HoldReason.STANDSTILL, HoldReason.OTHER}


def _list_tables() -> set[str]:
    """Return `file:name` of every constant of a module that has words by the members of an enum."""
    return {
        f"{path.relative_to(ROOT)}:{name}"
        for path in list_product_files()
        for name in find_sentence_tables(path.read_text())
    }


def test_a_table_of_sentences_has_a_name_that_ends_with_texts_and_is_checked_here() -> None:
    assert _list_tables() | {"actions/core/messages.py:INTENT_TEXTS"} == TABLES.keys() | PARTIAL.keys()
    assert all(name.endswith("_TEXTS") for name in (*TABLES, *PARTIAL))


@pytest.mark.parametrize("place", TABLES)
def test_every_member_has_one_sentence_that_no_other_member_has(place: str) -> None:
    members, elsewhere = TABLES[place]
    file, _, name = place.partition(":")
    module = import_module(f"predrain.{file.removesuffix('.py').replace('/', '.')}")
    table: Mapping[object, object] = getattr(module, name)
    assert set(table) == set(members) - elsewhere
    if members is not Intent:  # a removal is a drain in all words but its end
        assert len(set(table.values())) == len(table)


def test_every_reason_for_a_hold_is_the_code_of_one_guard_or_a_state_without_one() -> None:
    codes = [guard.code for guard in GUARDS]
    assert len(set(codes)) == len(codes)
    assert {*codes} == set(HoldReason) - WITHOUT_A_GUARD


@pytest.mark.parametrize("intent", [Intent.REPLACE, Intent.REMOVE, Intent.FILL])
def test_no_two_states_of_what_moves_data_read_the_same(intent: Intent) -> None:
    told = [messages.describe_state(state, intent) for state in DrainState]
    assert len(set(told)) == len(told)
