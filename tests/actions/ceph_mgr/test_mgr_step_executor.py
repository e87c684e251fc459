"""The mgr executor: which signed steps it carries out, which it refuses with which sentence, and that none runs
twice.
"""

from __future__ import annotations

import errno
import json
from dataclasses import dataclass, field, replace
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from predrain.actions.ceph_mgr.predrain.accepted_steps import (
    FLAGS,
    OPTIONS,
    UnknownStepKind,
    mon_commands,
    parse_order,
)
from predrain.actions.ceph_mgr.predrain.mgr_commands import MgrApi
from predrain.actions.ceph_mgr.predrain.signed_steps import (
    RequestedStep,
    UnsignedStep,
    parse_signed_step,
    sign_step,
    text_of,
)
from predrain.actions.ceph_mgr.predrain.step_executor import UNKNOWN, StepAnswer, StepExecutor
from predrain.actions.cluster.cluster_port import (
    Balancer,
    Command,
    CrushReweight,
    DeviceLight,
    PrimaryAffinity,
    PublishLife,
    RemoveUpmap,
    Reweight,
    SetFlag,
    SetOption,
    SetUpmap,
    WithdrawLife,
)
from predrain.actions.cluster.live_ceph import to_ceph_commands
from predrain.actions.core import held_throttles
from predrain.actions.core.claimed_settings import key_of, value_of
from predrain.actions.mechanics import crush_removal
from predrain.actions.mechanics.crush_weight_ladder import GRAIN
from predrain.data.ids import OsdId, PgId

KEY = "k" * 44
NOW = 1_800_000_000.0
STEP = RequestedStep("id1", "osd.3-x", 7, 40, NOW + 20, "upmap/1.a", "3>5", "")


@dataclass
class FakeMgr:
    """Four OSDs, one pool, a mon that answers as the real one; a test breaks it."""

    epoch: int = 40
    inactive: int = 0
    halt: str | None = None
    halt_rc: int = 0
    stop_rc: int = 0
    dies: bool = False
    refuses: tuple[str, ...] = ()
    flags: str = "sortbitwise"
    upmaps: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    osds: dict[int, dict[str, Any]] = field(default_factory=dict)
    store: dict[str, str] = field(default_factory=dict)
    sent: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        for id_ in range(3, 7):
            row = {"osd": id_, "up": 1, "in": 1, "weight": 1.0, "primary_affinity": 1.0, "down_at": 0}
            self.osds.setdefault(id_, row)

    def get(self, data_name: str) -> Any:
        if data_name == "osd_map":
            items = [
                {"pgid": pg, "mappings": [{"from": a, "to": b} for a, b in pairs]}
                for pg, pairs in self.upmaps.items()
            ]
            pools = [{"pool": 1, "pg_num": 16}]
            return {
                "epoch": self.epoch, "osds": list(self.osds.values()), "pools": pools, "pg_upmap_items": items,
                "flags": self.flags,
            }  # fmt: skip
        if data_name == "osd_map_tree":
            return {"nodes": [{"id": id_, "type": "osd", "crush_weight": 3.5} for id_ in self.osds]}
        return {"all": {"active+clean": 16 - self.inactive, "peering": self.inactive}}

    def get_store(self, key: str) -> str | None:
        return self.store.get(key)

    def set_store(self, key: str, val: str | None) -> None:
        assert val is None or len(val) < 65_536
        self.store[key] = val or ""

    def mon_command(self, cmd_dict: dict[str, Any]) -> tuple[int, str, str]:
        prefix = cmd_dict["prefix"]
        if prefix == "config-key get":
            found = (-errno.ENOENT, "", "") if self.halt is None else (0, self.halt, "")
            return (self.halt_rc, "", "no") if self.halt_rc else found
        if prefix == "osd ok-to-stop":
            return self.stop_rc, "{}", "unsafe to stop osd(s)" if self.stop_rc else ""
        if prefix == "osd stat":
            return 0, json.dumps({"epoch": self.epoch + 1}), ""
        self.sent.append(cmd_dict)
        if self.dies:
            raise SystemExit("kill -9")
        return (-errno.EACCES, "", "no") if prefix in self.refuses else (0, "", "done so")


def consider(
    mgr: MgrApi,
    step: RequestedStep = STEP,
    *,
    key: str = KEY,
    now: float = NOW,
    hand: StepExecutor | None = None,
) -> StepAnswer | None:
    text = text_of(step)
    return (hand or StepExecutor(mgr)).execute_step(KEY, text, sign_step(key, text), now, 3)[1]


def refused(mgr: MgrApi, step: RequestedStep = STEP, **given: Any) -> str:
    answer = consider(mgr, step, **given)
    assert answer is not None
    assert answer.refused
    assert not answer.ok
    return answer.text


def test_a_good_step_is_carried_out_and_answered_with_the_epoch_after_it() -> None:
    mgr = FakeMgr()
    assert consider(mgr) == StepAnswer(True, "done so", 41)
    assert mgr.sent == [{"prefix": "osd pg-upmap-items", "pgid": "1.a", "id": [3, 5]}]


def test_a_step_of_another_key_is_refused() -> None:
    mgr = FakeMgr()
    assert "signature is not of our key" in refused(mgr, key="x" * 44)
    assert mgr.sent == []


@given(st.data())
def test_a_step_of_which_one_letter_was_changed_is_refused(data: st.DataObject) -> None:
    text = text_of(STEP)
    at = data.draw(st.integers(0, len(text) - 1))
    letter = data.draw(st.characters(codec="ascii").filter(lambda one: one != text[at]))
    with pytest.raises(UnsignedStep):
        parse_signed_step(KEY, text[:at] + letter + text[at + 1 :], sign_step(KEY, text))


def test_without_a_key_every_step_is_refused() -> None:
    text = text_of(STEP)
    _, answer = StepExecutor(FakeMgr()).execute_step("", text, sign_step("", text), NOW, 3)
    assert answer is not None
    assert "executor_key" in answer.text


def test_a_step_is_carried_out_once_and_its_answer_repeated() -> None:
    mgr = FakeMgr()
    hand = StepExecutor(mgr)
    first = consider(mgr, hand=hand)
    assert consider(mgr, hand=hand) == first
    assert consider(mgr, hand=StepExecutor(mgr)) == first, "another mgr"
    assert len(mgr.sent) == 1


def test_a_step_under_which_the_mgr_died_is_never_sent_again() -> None:
    mgr = FakeMgr(dies=True)
    with pytest.raises(SystemExit):
        consider(mgr)
    mgr.dies = False
    assert consider(mgr, hand=StepExecutor(mgr)) == UNKNOWN
    assert len(mgr.sent) == 1


def test_a_step_that_has_expired_or_would_last_too_long_is_refused() -> None:
    assert "expired 5 s ago by this host's clock" in refused(FakeMgr(), now=NOW + 25)
    assert "good for 100 s" in refused(FakeMgr(), replace(STEP, expires_at=NOW + 100))


def test_a_halt_refuses_and_so_does_one_that_cannot_be_read() -> None:
    assert "halted: switch maintenance" in refused(FakeMgr(halt="switch maintenance"))
    assert "cannot be read" in refused(FakeMgr(halt_rc=-errno.EACCES))


def test_a_halt_lets_nothing_go_but_what_clears_a_flag() -> None:
    mgr = FakeMgr(halt="switch maintenance", flags="sortbitwise,nobackfill")
    clears = replace(STEP, key="flag/nobackfill", value="off", expects="on")
    assert "halted" in refused(mgr, replace(clears, id="id0", value="on", expects="off"))
    assert mgr.sent == []
    assert consider(mgr, clears) == StepAnswer(True, "done so", 41)
    assert mgr.sent == [{"prefix": "osd unset", "key": "nobackfill"}]


def test_a_map_that_is_behind_and_pgs_that_peer_are_waited_for() -> None:
    mgr = FakeMgr(epoch=39)
    hand = StepExecutor(mgr)
    assert consider(mgr, hand=hand) is None
    mgr.epoch, mgr.inactive = 40, 4
    assert consider(mgr, hand=hand) is None
    mgr.inactive = 3
    assert consider(mgr, hand=hand) == StepAnswer(True, "done so", 41)


def test_a_step_on_a_value_that_changed_since_the_decision_is_refused() -> None:
    mgr = FakeMgr(epoch=44, upmaps={"1.a": [(3, 6)]})
    assert "upmap/1.a is no longer '', as it was in epoch 40" in refused(mgr)
    assert "osd.3/reweight is no longer '0.5'" in refused(
        FakeMgr(), replace(STEP, key="osd.3/reweight", value="0.25", expects="0.5")
    )


def test_pairs_that_the_mon_took_away_since_are_nobodys_change() -> None:
    mgr = FakeMgr(epoch=44, upmaps={"1.a": [(4, 6)]})
    assert consider(mgr, replace(STEP, expects="3>5 4>6")) == StepAnswer(True, "done so", 45)


def test_a_step_whose_value_stands_already_is_not_sent() -> None:
    mgr = FakeMgr(upmaps={"1.a": [(3, 5)]})
    assert consider(mgr) == StepAnswer(True, "upmap/1.a is '3>5' already")
    assert mgr.sent == []


def test_an_osd_that_went_down_since_stops_what_moves_data() -> None:
    mgr = FakeMgr(epoch=45)
    mgr.osds[6].update(up=0, down_at=43)
    assert "osd.6 went down after epoch 40" in refused(mgr)
    assert consider(mgr, replace(STEP, id="2", key="osd.3/affinity", value="0.5", expects="1.0")) is not None
    assert mgr.sent == [{"prefix": "osd primary-affinity", "id": 3, "weight": 0.5}]


@pytest.mark.parametrize("changed", [{"up": 0}, {"weight": 0.0}])
def test_a_target_that_is_not_up_and_in_is_refused(changed: dict[str, Any]) -> None:
    mgr = FakeMgr()
    mgr.osds[5].update(changed)
    assert "osd.5, where PG 1.a would go, is not up and in" in refused(mgr)


def test_pgs_and_osds_that_are_not_there_are_refused() -> None:
    assert "there is no PG 1.1f" in refused(FakeMgr(), replace(STEP, key="upmap/1.1f"))
    assert "there is no PG 2.a" in refused(FakeMgr(), replace(STEP, key="upmap/2.a"))
    assert "there is no osd.9" in refused(
        FakeMgr(), replace(STEP, key="osd.9/reweight", value="0.0", expects=None)
    )


def test_ok_to_stop_is_a_veto_for_what_takes_an_osd_out_and_for_nothing_else() -> None:
    out = replace(STEP, key="osd.3/reweight", value="0.0", expects="1.0")
    mgr = FakeMgr(stop_rc=-errno.EBUSY)
    assert "ok-to-stop objects to osd.3 (-16): unsafe to stop" in refused(mgr, out)
    assert mgr.sent == []
    assert consider(mgr, replace(out, id="2", value="0.5")) == StepAnswer(True, "done so", 41)
    assert consider(FakeMgr(), out) == StepAnswer(True, "done so", 41)


def test_no_more_than_a_step_a_second_over_a_minute() -> None:
    mgr = FakeMgr()
    hand = StepExecutor(mgr)
    steps = [replace(STEP, id=f"n{n}", key=f"upmap/1.{n % 16:x}") for n in range(61)]
    answers = [consider(mgr, step, hand=hand) for step in steps]
    assert None not in answers[:60]
    assert answers[60] is None
    assert len(mgr.sent) == 60


def test_steps_that_a_clock_set_back_puts_into_the_future_do_not_count_against_the_next() -> None:
    mgr = FakeMgr()
    hand = StepExecutor(mgr)
    for n in range(60):
        assert consider(mgr, replace(STEP, id=f"n{n}", key=f"upmap/1.{n % 16:x}"), hand=hand) is not None
    day_before = NOW - 86_400
    step = replace(STEP, id="back", expires_at=day_before + 20)
    assert consider(mgr, step, hand=hand, now=day_before) == StepAnswer(True, "done so", 41)


def test_the_text_of_remembered_steps_stays_below_the_size_limit_of_a_config_key() -> None:
    mgr = FakeMgr()
    hand = StepExecutor(mgr)
    for n in range(400):
        step = replace(STEP, id=f"{n:032x}", key=f"upmap/1.{n % 16:x}", expires_at=NOW + n + 20)
        assert consider(mgr, step, hand=hand, now=NOW + n) is not None


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("flag/noout", "on"), ("flag/pause", "on"), ("flag/nobackfill", "yes"), ("option/debug_osd", "20"),
        ("option/osd_max_backfills", "1; rm"), ("osd.3/reweight", "1.5"), ("osd.3/reweight", "-0.1"),
        ("osd.3/reweight", "nan"), ("osd.3/reweight", "inf"), ("osd.3/reweight", ""), ("osd.3/out", "1"),
        ("osd.-1/reweight", "0.5"), ("upmap/1.zz", "3>5"), ("upmap/1.a", "3>3"), ("upmap/1.a", "3>5 4>5"),
        ("upmap/1.a", "3>-5"), ("upmap/1.a", "x"), ("balancer", "maybe"), ("config-key/x", "y"), ("", ""),
        ("upmap/1.a\n", "3>5"),
    ],
)  # fmt: skip
def test_a_step_that_is_not_on_the_list_of_accepted_steps_is_refused(key: str, value: str) -> None:
    with pytest.raises(UnknownStepKind):
        parse_order(key, value)


OSD = OsdId(3)
CARRIED: dict[type, tuple[Command, ...]] = {
    SetUpmap: (SetUpmap(PgId("1.a"), ((3, 5), (4, 6))),),
    RemoveUpmap: (RemoveUpmap(PgId("1.a")),),
    Reweight: tuple(Reweight(OSD, weight) for weight in (0.0, 1 / 65536, 0.65, 1.0)),
    CrushReweight: tuple(CrushReweight(OSD, weight) for weight in (0.0, GRAIN, 3.6388702392578125)),
    PrimaryAffinity: (PrimaryAffinity(OSD, 0.25),),
    SetFlag: tuple(SetFlag(flag, on) for flag in crush_removal.FLAGS for on in (True, False)),
    SetOption: tuple(
        SetOption(name, value) for name in held_throttles.OPTIONS for value in ("3", "balanced", None)
    ),
    Balancer: tuple(Balancer(on) for on in (True, False, None)),
}
NOT_CARRIED = {PublishLife, WithdrawLife, DeviceLight}
"""The commands that the mgr executor does not carry out, as docs/reference/mgr.md says. No drain waits for one of
these.
"""


def test_every_command_that_the_engine_knows_is_on_one_of_the_two_lists() -> None:
    assert CARRIED.keys() | NOT_CARRIED == set(get_args(Command))


@pytest.mark.parametrize("command", [one for all_ in CARRIED.values() for one in all_], ids=str)
def test_the_hand_sends_what_the_engine_would_have_sent_by_itself(command: Command) -> None:
    by_hand = mon_commands(parse_order(str(key_of(command)), value_of(command)))
    (daemon, prefix, given), *_ = to_ceph_commands(command)
    assert daemon in ("mon", "mgr")
    assert by_hand[-1] == {"prefix": prefix, **given}


def test_the_hand_takes_no_flag_and_no_option_that_no_drain_sets() -> None:
    assert set(crush_removal.FLAGS) == FLAGS
    assert set(held_throttles.OPTIONS) == OPTIONS


@given(st.text(max_size=40), st.text(max_size=40))
def test_only_commands_of_the_list_can_come_out(key: str, value: str) -> None:
    try:
        commands = mon_commands(parse_order(key, value))
    except UnknownStepKind:
        return
    assert {command["prefix"] for command in commands} <= {
        "osd pg-upmap-items", "osd rm-pg-upmap-items", "osd reweight", "osd crush reweight", "osd primary-affinity",
        "osd set", "osd unset", "config set", "config rm", "balancer on", "balancer off",
    }  # fmt: skip


def test_the_balancer_is_woken_before_its_row_is_taken_away() -> None:
    mgr = FakeMgr()
    answer = consider(mgr, replace(STEP, key="balancer", value="-", expects="off"))
    assert answer is not None
    assert answer.ok
    assert mgr.sent == [
        {"prefix": "balancer on"},
        {"prefix": "config rm", "who": "mgr", "name": "mgr/balancer/active"},
    ]


def test_a_balancer_that_cannot_be_woken_keeps_its_row() -> None:
    mgr = FakeMgr(refuses=("balancer on",))
    answer = consider(mgr, replace(STEP, key="balancer", value="-", expects="off"))
    assert answer is not None
    assert not answer.ok
    assert [command["prefix"] for command in mgr.sent] == ["balancer on"]


def test_a_mgr_that_shows_its_map_in_another_way_gets_nothing_done() -> None:
    mgr = FakeMgr()
    del mgr.osds[4]["weight"]
    assert "does not show its map in a known way" in refused(mgr)
