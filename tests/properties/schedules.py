"""Schedules: what happens to one cluster and its controller, drawn from one seed.

The worlds are chosen to be tight: targets near their limit, PGs of uneven sizes, links so slow that data are on their
way for many ticks, and several drains at once, so that every limit of the policy is met again and again.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from random import Random

from predrain.actions.cluster.cluster_port import (
    Balancer,
    ClusterUnreachable,
    Reweight,
    SetFlag,
    SetOption,
    SetUpmap,
)
from predrain.actions.core.drain_policy import Mode, Policy
from predrain.actions.core.state_machine import ENDED, NotInTable
from predrain.actions.simulator.cluster_spec import ClusterSpec, Physics
from predrain.data.drain import Drain, DrainStands, DrainState, NoSuchTarget
from predrain.data.ids import OsdId
from predrain.data.outlook import Status
from tests.actions.made import bad_outlook, device, ec_spec, full_spec, tiny_spec, wide_spec
from tests.actions.run import Run, whole

_UNFELT = Physics(latency_per_stream=0.01)
"""Disks on which a backfill hardly raises the latency of clients: the pace grows to its bound."""
_SLOW = Physics(latency_per_stream=0.01, stream_bytes_per_second=8e6)
"""And such that one PG takes minutes: much is on its way at once."""

WORLDS: tuple[Callable[[], ClusterSpec], ...] = (
    lambda: replace(full_spec(hosts=8, per_host=2, pg_num=128, used=0.66, most=0.83), physics=_SLOW),
    lambda: replace(full_spec(hosts=6, per_host=3, pg_num=128, used=0.72, most=0.84), physics=_UNFELT),
    tiny_spec,
    lambda: replace(wide_spec(hosts=8, per_host=2, racks=0, pg_num=128, used=0.55), physics=_SLOW),
    lambda: ec_spec(hosts=5, per_host=2, k=2, m=1),
    lambda: full_spec(hosts=9, per_host=2, racks=3, pg_num=96, used=0.7, most=0.84),
    lambda: replace(ec_spec(hosts=7, per_host=2, k=3, m=2), physics=_SLOW),
    lambda: replace(wide_spec(pg_num=32), balancer=True, settings={"osd/osd_max_backfills": "8"}),
)


_UNDER_WAY = (
    DrainState.APPROVED,
    DrainState.PREPARING,
    DrainState.DRAINING,
    DrainState.HOLDING,
    DrainState.CANCELLING,
    DrainState.DRAINED,
)
"""States that the controller itself leads out of; a drained OSD's settings are given back before it is verified."""


class Schedule:
    """The events of one run, drawn from one seed."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.spec = WORLDS[seed % len(WORLDS)]()
        policy = Policy(
            mode=self.random.choice([Mode.PROPOSE, Mode.ACT]),
            drains_per_rack=self.random.choice([2, 3]),
            out_share_max=self.random.choice([0.1, 0.4]),
            in_flight_max=self.random.choice([2, 4, 8]),
            peering_max=self.random.choice([2, 3]),
        )
        self.run = Run(self.spec, seed, policy)
        self.run.watched.after_command = self._perhaps_halt
        self.osds = [int(osd.id) for osd in self.spec.osds]
        self.dead: list[int] = []
        self.told: list[str] = []
        self.peace = False

    def play(self, turns: int) -> None:
        """So many turns: something happens, time passes, the controller ticks."""
        with self.run:
            self.run.tick()
            for _ in range(3):
                self._ask()
            for _ in range(turns):
                if self.random.random() < 0.3:
                    self._something()
                self.run.tick(self.random.choice([2.0, 5.0, 10.0, 10.0, 10.0, 10.0, 15.0, 30.0, 60.0, 300.0]))
            self._peace()

    def _something(self) -> None:
        event = self.random.choice(
            [
                self._outlook,
                self._outlook,
                self._ask,
                self._ask,
                self._ask,
                self._word,
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
                self._operator,
                self._halt,
                self._lift,
                self._lift,
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
        word = self.random.choice(
            [requests.approve, requests.pause, requests.resume, requests.resume, requests.cancel]
        )
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
        self.run.cluster.drop_upmaps(self.random.randint(1, 5))

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
        self.run.store.set_halt("a person said so")

    def _lift(self) -> None:
        self.run.store.set_halt(None)

    def _perhaps_halt(self) -> None:
        """A person's halt may come between any two commands of a step."""
        if not self.peace and self.random.random() < 0.04:
            self._halt()
            self.told.append("_halt_within_a_step")

    def _kill(self) -> None:
        self.run.started()

    def _peace(self) -> None:
        """Everything bad stops; then every PG is whole again and no drain is stuck without saying why."""
        cluster = self.run.cluster
        self.peace = True
        self._lift()
        cluster.lose_answers(0, carried_out=True)
        for osd in self.dead:
            cluster.replace(OsdId(osd), reweight=1.0)
        self.dead = []
        for flag in ("noout", "nobackfill"):
            self._quietly(SetFlag(flag, False))
        for _ in range(40):
            self.run.tick(150.0)
        for _ in range(500):
            if whole(self.run) and not any(self._works(drain) for drain in self.run.store.drains()):
                break
            self.run.tick(150.0)
        if not cluster.truth().lost:
            assert whole(self.run), "PGs are not whole after hours of peace"
        for drain in self.run.store.drains():
            assert not self._works(drain), f"{drain.id} is {drain.state.value} for ever: {drain.progress}"

    @staticmethod
    def _works(drain: Drain) -> bool:
        """Under way, and nothing said to hold it."""
        return drain.state in _UNDER_WAY and not drain.held_by

    def _quietly(self, command: SetFlag) -> None:
        for _ in range(8):
            with suppress(ClusterUnreachable):
                self.run.cluster.apply(command)
                return


def play(seed: int, turns: int) -> None:
    """Play one schedule; a failure names the seed that plays it again."""
    schedule = Schedule(seed)
    try:
        schedule.play(turns)
    except BaseException as trouble:
        trouble.add_note(
            f"seed {seed} (make sim SEED={seed}), {turns} turns, world {schedule.spec.name}, so far: "
            f"{' '.join(schedule.told)}"
        )
        raise
