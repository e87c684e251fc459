"""No sequence of outlooks, faults and words makes a step of the controller unsafe.

Unsafe: it reduces a PG's redundancy, overfills an OSD, exceeds a budget, or is sent under a halt. One seed is one
schedule: what happens when is drawn from it, the cluster is made from it, and a failure prints it. The checkers
(`tests.actions.checkers`) sit between engine and cluster and read the simulator's truth.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from random import Random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from actions.cluster.port import Balancer, ClusterUnreachable, Reweight, SetFlag, SetOption, SetUpmap
from actions.cluster.simulated.spec import ClusterSpec
from actions.policy import Mode, Policy
from actions.proposals import NoSuchTarget
from actions.requests import DrainStands
from actions.states import ENDED, NotInTable
from data.drain import DrainState
from data.ids import OsdId
from data.outlook import Status
from tests.actions.made import bad_outlook, device, ec_spec, tiny_spec, wide_spec
from tests.actions.run import Run, whole

WORLDS: tuple[Callable[[], ClusterSpec], ...] = (
    tiny_spec,
    lambda: wide_spec(hosts=6, per_host=2, pg_num=32, used=0.5),
    lambda: wide_spec(hosts=5, per_host=3, racks=0, pg_num=32, used=0.62),
    lambda: wide_spec(hosts=8, per_host=2, racks=0, pg_num=128, used=0.55),
    lambda: ec_spec(hosts=5, per_host=2, k=2, m=1),
    lambda: ec_spec(hosts=6, per_host=2, k=3, m=2, pg_num=16),
    lambda: replace(wide_spec(pg_num=32), balancer=True, settings={"osd/osd_max_backfills": "8"}),
)


class Schedule:
    """What happens to one run, drawn from one seed."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        policy = Policy(mode=self.random.choice([Mode.PROPOSE, Mode.ACT]), out_share_max=0.4)
        self.spec = self.random.choice(WORLDS)()
        self.run = Run(self.spec, seed, policy)
        self.osds = [int(osd.id) for osd in self.spec.osds]
        self.dead: list[int] = []
        self.told: list[str] = []

    def play(self, turns: int) -> None:
        """So many turns: something happens, time passes, the controller ticks."""
        with self.run:
            self.run.tick()
            for _ in range(turns):
                if self.random.random() < 0.35:
                    self._something()
                self.run.tick(self.random.choice([2.0, 5.0, 10.0, 10.0, 10.0, 60.0, 600.0]))
            self._peace()

    def _something(self) -> None:
        event = self.random.choice(
            [
                self._outlook,
                self._outlook,
                self._ask,
                self._ask,
                self._word,
                self._die,
                self._replace,
                self._flap,
                self._lose,
                self._drop,
                self._mgr,
                self._freeze,
                self._lie,
                self._slow,
                self._operator,
                self._halt,
                self._kill,
            ]
        )
        event()
        self.told.append(event.__name__)

    def _osd(self) -> int:
        return self.random.choice(self.osds)

    def _outlook(self) -> None:
        osd = self._osd()
        status = self.random.choice([Status.BAD, Status.BAD, Status.GOOD, Status.UNKNOWN])
        hard = self.random.random() < 0.3
        self.run.outlooks[device(osd)] = bad_outlook(osd, self.run.cluster.now, status=status, hard=hard)

    def _ask(self) -> None:
        with suppress(DrainStands, NoSuchTarget, ClusterUnreachable):
            self.run.drain(f"osd.{self._osd()}")

    def _word(self) -> None:
        drains = [drain for drain in self.run.store.drains() if drain.state not in ENDED]
        if not drains:
            return
        drain = self.random.choice(drains)
        requests = self.run.controller.requests
        word = self.random.choice([requests.approve, requests.pause, requests.resume, requests.cancel])
        with suppress(NotInTable):
            word(drain.id, "operator", self.run.cluster.now)

    def _die(self) -> None:
        if len(self.dead) < 1:
            self.dead.append(self._osd())
            self.run.cluster.fail_osd(OsdId(self.dead[-1]))

    def _replace(self) -> None:
        if self.dead:
            self.run.cluster.replace(OsdId(self.dead.pop()), reweight=1.0)

    def _flap(self) -> None:
        osd = self._osd()
        if osd not in self.dead:
            self.run.cluster.flap(OsdId(osd), self.random.randint(1, 3), self.random.choice([5.0, 60.0]))

    def _lose(self) -> None:
        self.run.cluster.lose_answers(self.random.randint(1, 4), carried_out=self.random.random() < 0.5)

    def _drop(self) -> None:
        self.run.cluster.drop_pins(self.random.randint(1, 5))

    def _mgr(self) -> None:
        self.run.cluster.restart_mgr()

    def _freeze(self) -> None:
        self.run.cluster.freeze_statistics(self.random.choice([5.0, 30.0, 300.0]))

    def _lie(self) -> None:
        self.run.cluster.lie_clean(self.random.choice([5.0, 30.0]))

    def _slow(self) -> None:
        self.run.cluster.set_slow(OsdId(self._osd()), self.random.choice([1.0, 1.5, 3.0]))

    def _operator(self) -> None:
        osd = OsdId(self._osd())
        pg = self.random.choice(sorted(self.run.cluster.truth().pgs))
        up = self.run.cluster.truth().pgs[pg].up
        command = self.random.choice(
            [
                SetFlag("noout", self.random.random() < 0.5),
                SetFlag("nobackfill", False),
                Balancer(self.random.random() < 0.3),
                SetOption("osd_max_backfills", self.random.choice(["1", "4", None])),
                Reweight(osd, self.random.choice([1.0, 0.9])),
                SetUpmap(pg, ((up[0], int(osd)),)) if osd not in up else SetFlag("noout", False),
            ]
        )
        with suppress(ClusterUnreachable):
            self.run.cluster.apply(command)

    def _halt(self) -> None:
        self.run.store.set_halt(None if self.run.store.halt_reason() else "a person said so")

    def _kill(self) -> None:
        self.run.started()

    def _peace(self) -> None:
        """Everything bad stops; then every PG is whole again and no drain is stuck without saying why."""
        cluster = self.run.cluster
        self.run.store.set_halt(None)
        cluster.lose_answers(0, carried_out=True)
        for osd in self.dead:
            cluster.replace(OsdId(osd), reweight=1.0)
        self.dead = []
        for flag in ("noout", "nobackfill"):
            self._quietly(SetFlag(flag, False))
        for _ in range(300):
            self.run.tick(60.0)
        if not cluster.truth().lost:
            assert whole(self.run), "PGs are not whole after hours of peace"
        for drain in self.run.store.drains():
            if drain.state in (
                DrainState.APPROVED,
                DrainState.PREPARING,
                DrainState.HOLDING,
                DrainState.CANCELLING,
            ):
                assert drain.held_by, f"{drain.id} is {drain.state.value} and does not say why"
            assert drain.state is not DrainState.DRAINING, f"{drain.id} drains for ever: {drain.progress}"

    def _quietly(self, command: SetFlag) -> None:
        for _ in range(8):
            with suppress(ClusterUnreachable):
                self.run.cluster.apply(command)
                return


def play(seed: int, turns: int) -> None:
    schedule = Schedule(seed)
    try:
        schedule.play(turns)
    except BaseException as trouble:
        trouble.add_note(f"seed {seed}, world {schedule.spec.name}, so far: {' '.join(schedule.told)}")
        raise


@pytest.mark.slow
@settings(max_examples=int(os.environ.get("PREDRAIN_SCHEDULES", "60")), derandomize=True)
@given(seed=st.integers(0, 2**32 - 1))
@example(seed=0)
def test_no_schedule_of_faults_makes_an_unsafe_step(seed: int) -> None:
    play(seed, turns=80)


@pytest.mark.parametrize("seed", range(6))
def test_a_short_schedule_of_faults_makes_no_unsafe_step(seed: int) -> None:
    play(seed, turns=40)
