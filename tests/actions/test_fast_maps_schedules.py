"""The monitors' interval ends as others left it, after any actions of people, faults and kills on drains."""

from __future__ import annotations

import random
from contextlib import suppress
from dataclasses import replace

import pytest

from predrain.actions.cluster.cluster_port import ClusterUnreachable, SetFlag, SetOption
from predrain.actions.cluster.cluster_view import PROPOSE_INTERVAL
from predrain.actions.controller.controller import Controller
from predrain.actions.core.claimed_settings import FAST_MAPS
from predrain.actions.core.drain_policy import Policy
from predrain.actions.core.state_machine import Event, can_take_event
from predrain.data.drain import DrainState
from tests.actions.made import wide_spec
from tests.actions.made_config_keys import KeepInMemory
from tests.actions.run import Run

ROW = f"mon/{PROPOSE_INTERVAL}"
POLICY = Policy(fast_maps_seconds=0.25, out_share_max=0.5)
STEPS = 70


class Schedule:
    """One cluster with two drains, and what happens to them by chance."""

    def __init__(self, run: Run, seed: int) -> None:
        self.run, self.random, self.kept = run, random.Random(seed), KeepInMemory()
        self.theirs: str | None = None
        """The interval that another party set last; None if the mon's config has no row for it."""
        self.log: list[str] = []
        self.restart()

    def restart(self) -> None:
        """Start another process on the same store and config keys."""
        self.run.controller = Controller(self.run.watched, self.run.store, POLICY, keep=self.kept.signed)

    def disturb(self) -> None:
        """Do one action of people or faults, chosen by chance."""
        run, now = self.run, self.run.cluster.now
        what = self.random.choice(
            ["nothing"] * 5 + ["pause", "resume", "cancel", "halt", "unhalt", "kill", "lose", "set", "flag"]
        )
        self.log.append(what)
        requests = run.controller.requests
        drain = self.random.choice(run.store.drains())
        match what:
            case "pause" if can_take_event(drain, Event.PAUSE):
                requests.pause(drain.id, "operator", now)
            case "resume" if can_take_event(drain, Event.RESUME):
                requests.resume(drain.id, "operator", now)
            case "cancel" if can_take_event(drain, Event.CANCEL) and self.random.random() < 0.3:
                requests.cancel(drain.id, "operator", now)
            case "halt":
                run.controller.halt("by chance")
            case "unhalt":
                run.controller.halt(None)
            case "kill":
                self.restart()
            case "lose":
                run.cluster.lose_answers(1, carried_out=self.random.random() < 0.5)
            case "set" if self.random.random() < 0.3:
                self.theirs = self.random.choice(["0.5", "0.8", None])
                self._apply(SetOption(PROPOSE_INTERVAL, self.theirs, "mon"))
            case "flag":
                self._apply(SetFlag("noout", on=self.random.random() < 0.3))

    def _apply(self, command: SetOption | SetFlag) -> None:
        """Send the command as an operator does: again until there is an answer."""
        while True:
            with suppress(ClusterUnreachable):
                self.run.cluster.apply(command)
                return

    def settle(self) -> None:
        """Halt everything, and let the controller poll four times."""
        self.run.controller.halt("the end")
        self.run.ticks(4)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(16))
def test_the_interval_ends_as_others_left_it(seed: int) -> None:
    spec = replace(wide_spec(hosts=8, pg_num=32), settings={ROW: "0.9"} if seed % 2 else {})
    with Run(spec, seed=seed, policy=POLICY) as run:
        schedule = Schedule(run, seed)
        schedule.theirs = "0.9" if seed % 2 else None
        run.drain("osd.0")
        run.drain("osd.9")
        run.ticks(6)
        assert run.cluster.view().settings.get(ROW) == "0.25"
        for _ in range(STEPS):
            schedule.disturb()
            run.tick()
        schedule.settle()
        assert run.cluster.view().settings.get(ROW) == schedule.theirs, schedule.log
        assert not any(FAST_MAPS in drain.ours for drain in run.store.drains())
        assert DrainState.FAILED not in {drain.state for drain in run.store.drains()}
