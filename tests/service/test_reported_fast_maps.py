"""Doctor and metric tell whether fast maps can be set where they are wanted, and when some were left."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta

import pytest

from predrain.actions.cluster.channel import Argument, DaemonReply
from predrain.actions.controller.controller import Controller
from predrain.actions.controller.fast_maps import RECORD, IntervalRecord
from predrain.actions.core.drain_policy import Policy
from predrain.data.drain import DrainState
from predrain.service.config.settings import Settings
from predrain.service.doctor import ceph_checks
from predrain.service.doctor.finding import Finding
from predrain.service.fleet.fleet import FleetSnapshot
from predrain.service.rest.metrics.service_metrics import collect_drain_metrics
from tests.actions.made import wide_spec
from tests.actions.made_config_keys import KeepInMemory
from tests.actions.recordings import CLEAN
from tests.actions.run import Run
from tests.service.conftest import SetClock
from tests.service.test_doctor import PlayedCluster

WANTED = Settings.model_validate({"policy": {"fast_maps_seconds": 0.25}})


@dataclass
class KeptCluster(PlayedCluster):
    """The same with what a controller keeps of fast maps, and the monitors' row."""

    record: str = ""
    row: str = ""

    def ask(
        self,
        to: str,
        prefix: str,
        arguments: Mapping[str, Argument] | None = None,
        *,
        given: bytes = b"",
        seconds: float | None = None,
    ) -> DaemonReply:
        if prefix == "config-key get" and arguments == {"key": f"predrain/{RECORD}"} and self.record:
            return DaemonReply(0, self.record.encode(), "")
        reply = PlayedCluster.ask(self, to, prefix, arguments, given=given, seconds=seconds)
        if prefix == "config dump" and self.row:
            rows = json.loads(reply.out)
            rows.append({"section": "mon", "name": "paxos_propose_interval", "value": self.row, "mask": ""})
            return DaemonReply(0, json.dumps(rows).encode(), "")
        if prefix == "config set" and "paxos" in str(arguments) and "paxos" in self.refused:
            return DaemonReply(-13, b"", "")
        return reply


def told(settings: Settings, **played: object) -> dict[str, Finding]:
    cluster = KeptCluster(**played)  # type: ignore[arg-type]
    return {
        one.what: one for one in ceph_checks.check_cluster_over_channel(cluster, settings, SetClock(CLEAN.at))
    }


def written(age: timedelta, was: str = "-") -> str:
    return IntervalRecord("0.25", was, CLEAN.at - age).write()


def test_a_cluster_without_fast_maps_is_not_spoken_of() -> None:
    assert "fast maps" not in told(Settings())


def test_fast_maps_that_no_controller_has_renewed_are_wrong_with_the_command_that_gives_them_back() -> None:
    found = told(Settings(), record=written(timedelta(minutes=3), "0.8"), row="0.250000")["fast maps"]
    assert found.state == "wrong"
    assert "`ceph config set mon paxos_propose_interval 0.8` gives it back" in found.told
    assert "no controller has renewed it since" in found.told


def test_fast_maps_in_use_are_well() -> None:
    found = told(WANTED, record=written(timedelta(seconds=40)), row="0.250000")["fast maps"]
    assert found.state == "ok"


def test_a_paxos_interval_that_somebody_else_has_set_since_is_not_reported_as_left_over() -> None:
    assert "fast maps" not in told(Settings(), record=written(timedelta(hours=1)), row="0.500000")


def test_a_missing_right_is_wrong_only_where_fast_maps_are_wanted() -> None:
    refused = frozenset({"paxos"})
    assert told(Settings(), refused=refused)["caps"].state == "ok"
    lacking = told(WANTED, refused=refused)["caps"]
    assert lacking.state == "wrong"
    assert "let maps follow each other sooner while PGs move" in lacking.told


@pytest.mark.parametrize(("state", "left"), [(DrainState.DRAINING, 0.0), (DrainState.HOLDING, 1.0)])
def test_the_metric_is_1_while_fast_maps_stand_and_nothing_moves(state: DrainState, left: float) -> None:
    with Run(wide_spec(hosts=8, pg_num=32), policy=Policy(fast_maps_seconds=0.25)) as run:
        run.controller = Controller(run.watched, run.store, run.policy, keep=KeepInMemory().signed)
        drain = run.drain("osd.0")
        run.until(drain, DrainState.DRAINING)
        run.ticks(2)
        view = run.cluster.view()
        assert view.settings["mon/paxos_propose_interval"] == "0.25"
        snapshot = FleetSnapshot({}, {}, {}, (replace(run.known(drain), state=state),), None, view)
        values = {
            one.name: one.samples[0].value
            for one in collect_drain_metrics(snapshot, view, run.cluster.now)
            if one.samples
        }
        assert values["predrain_fast_maps_left"] == left
