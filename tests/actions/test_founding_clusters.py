"""The clusters that this was built for, each with its hard case: from the first symptom to hand-over, or to the
refusal that says why. `docs/explanation/clusters.md` has the figures (`pytest tests/actions/test_founding_clusters.py
--log-cli-level=INFO` prints them).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta

import pytest

from predrain.actions.controller.request_execution import ConcurrentDrainChange
from predrain.actions.core.decision_answers import TickReport
from predrain.actions.core.drain_policy import Mode, Policy
from predrain.actions.simulator.cluster_spec import ClusterSpec
from predrain.actions.simulator.worlds import TB, build_world
from predrain.actions.simulator.worlds.cisco import build_cisco_spec
from predrain.data.drain import Drain, DrainState, Mechanic
from predrain.data.ids import DeviceId, OsdId
from predrain.data.messages import describe_bottleneck
from predrain.data.outlook import Outlook
from predrain.data.plan_refusal import PlanRefusalKind
from tests.actions.made import bad_outlook
from tests.actions.run import Run, empty, list_refusals, whole

S = DrainState
POLICY = replace(Policy(), mode=Mode.ACT)
SEED = 5


class Large(Run):
    """Watched at its end only: to look at every PG after every command would take hours."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.controller = self.started(self.cluster)

    def tick(self, seconds: float | None = None) -> TickReport:
        self.cluster.advance(self.tick_seconds if seconds is None else seconds)
        self.record()
        return self.controller.tick(self.cluster.now, self.outlooks)


def plugged(name: str, model: str = "HDD") -> ClusterSpec:
    """The world with a device in every slot."""
    return plug(build_world(name, SEED), model)


def plug(spec: ClusterSpec, model: str = "HDD") -> ClusterSpec:
    """The cluster with a device in every slot."""
    bare = {osd.id: (DeviceId(f"{model}_{osd.id:05d}"), model) for osd in spec.osds if osd.device is None}
    return spec.with_devices(bare)


def symptom(run: Run, device: DeviceId | None, **changes: object) -> Outlook:
    """From now on the device is called bad, by readings that bear it out."""
    assert device is not None
    outlook = replace(bad_outlook(0), device=device, as_of=run.cluster.now, **changes)  # type: ignore[arg-type]
    run.outlooks[device] = outlook
    return outlook


def proposed(run: Run, device: DeviceId | None) -> Drain:
    """Tick until the engine proposes a drain of the device by itself."""
    for _ in range(10):
        run.tick()
        for drain in run.store.drains():
            if drain.device == device:
                return drain
    refused = list_refusals(run.controller.tick(run.cluster.now, run.outlooks))
    raise AssertionError(f"nothing was proposed for {device}: {refused}")


def handed_over(run: Run, drain: Drain) -> Drain:
    """On to verified, then to a person's word that the disk may be pulled."""
    done = run.until(drain, S.VERIFIED, S.FAILED)
    assert done.state is S.VERIFIED, (done.ended_why, done.held_by)
    for _ in range(3):
        run.tick()
    return run.controller.requests.hand_over(done.id, "operator", run.cluster.now)


def fullest(run: Run, osds: Iterable[OsdId] | None = None) -> float:
    """Fullness of the fullest disk, in [0, 1]."""
    truth = run.cluster.truth()
    return max(truth.used_bytes[osd] / truth.size_bytes[osd] for osd in osds or truth.used_bytes)


def tell(run: Run, drain: Drain, began: float) -> None:
    """The row for the docs."""
    hours = (run.elapsed - began) / 3600
    plan = drain.plan
    assert plan is not None
    assert plan.eta_hours is not None
    assert 1 / 1.35 < hours / plan.eta_hours < 1.35, (hours, plan.eta_hours)
    logging.getLogger(__name__).info(
        "%s: %s, %d PGs, %.1f TB moved in %.1f h (said %.1f h: %s), fullest %.1f %%",
        run.spec.name, plan.mechanic.value, len({m.pg for m in plan.moves}), run.cluster.moved_bytes / 1e12,
        hours, plan.eta_hours or 0.0, describe_bottleneck(plan), 100 * fullest(run),
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("terabytes", [4, pytest.param(20, marks=pytest.mark.long)])
def test_cisco_a_disk_leaves_a_cluster_that_is_69_percent_full_and_no_target_passes_its_limit(
    terabytes: int,
) -> None:
    spec = plug(build_cisco_spec(f"cisco, {terabytes} TB", terabytes * TB))
    with Large(spec, policy=replace(POLICY, tick_seconds=60), tick_seconds=60) as run:
        victim = max(run.spec.osds, key=lambda osd: (run.cluster.truth().used_bytes[osd.id], osd.id))
        held, before = run.cluster.truth().used_bytes[victim.id], fullest(run)
        symptom(run, victim.device)
        drain, began = proposed(run, victim.device), run.elapsed
        done = handed_over(run, drain)
        assert done.plan is not None
        assert done.plan.mechanic is Mechanic.UPMAP_WALK
        assert empty(run, victim.id)
        assert whole(run)
        assert run.cluster.moved_bytes <= 1.02 * held
        assert fullest(run) <= max(before, 0.85)
        tell(run, done, began)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(900)
def test_echo_one_large_disk_of_six_thousand_leaves_and_nothing_else_moves() -> None:
    policy = replace(
        POLICY, tick_seconds=300, disk_bytes_per_second=130e6
    )  # as the operators of the cluster named it
    with Large(plugged("echo"), policy=policy, tick_seconds=300) as run:
        victim = next(osd for osd in run.spec.osds if osd.model == "GEN E")
        held = run.cluster.truth().used_bytes[victim.id]
        symptom(run, victim.device)
        drain, began = proposed(run, victim.device), run.elapsed
        done = handed_over(run, drain)
        assert empty(run, victim.id)
        assert whole(run)
        assert run.cluster.moved_bytes <= 1.02 * held
        tell(run, done, began)


@pytest.mark.slow
@pytest.mark.long
def test_cnaf_sdds_the_flash_under_twelve_databases_is_emptied_of_all_twelve_one_by_one() -> None:
    policy = replace(POLICY, out_share_max=0.05, tick_seconds=300)
    with Large(plugged("cnaf-sdds"), policy=policy, tick_seconds=300) as run:
        flash = run.spec.osds[0].shared_devices[0]
        under = [osd.id for osd in run.spec.osds if flash in osd.shared_devices]
        held = sum(run.cluster.truth().used_bytes[osd] for osd in under)
        symptom(run, flash)
        drain, began = proposed(run, flash), run.elapsed
        assert sorted(drain.osds) == under
        done = handed_over(run, drain)
        assert all(empty(run, osd) for osd in under)
        assert whole(run)
        assert run.cluster.moved_bytes <= 1.05 * held
        tell(run, done, began)


@pytest.mark.slow
def test_cnaf_t1_when_a_batch_of_one_model_turns_bad_the_forecast_is_held_back_and_a_person_may_still_drain() -> (
    None
):
    with Large(plugged("cnaf-t1"), policy=replace(POLICY, tick_seconds=60), tick_seconds=60) as run:
        batch = [osd for osd in run.spec.osds if osd.model == "SATA 18T"][::18][:16]
        run.tick()
        for osd in batch:
            symptom(run, osd.device)
        report = run.tick()
        assert not run.store.drains()
        sentences = {refuse.sentence for said in list_refusals(report).values() for refuse in said}
        assert any(
            "16 of 288 disks of model SATA 18T turned bad, or worth a drain, within 7 days" in one
            for one in sentences
        )
        drain, began = run.drain(f"osd.{batch[0].id}"), run.elapsed
        done = handed_over(run, drain)
        assert empty(run, batch[0].id)
        assert whole(run)
        tell(run, done, began)


@pytest.mark.slow
def test_osg_a_disk_is_drained_onto_its_siblings_since_the_code_needs_every_host() -> None:
    with Large(plugged("osg"), policy=replace(POLICY, tick_seconds=60), tick_seconds=60) as run:
        victim = run.spec.osds[30]
        held = run.cluster.truth().used_bytes[victim.id]
        symptom(run, victim.device)
        drain, began = proposed(run, victim.device), run.elapsed
        done = handed_over(run, drain)
        assert done.plan is not None
        hosts = {osd.id: osd.host for osd in run.spec.osds}
        coded = [move for move in done.plan.moves if move.pg.startswith("1.")]
        assert {hosts[move.target] for move in coded} == {victim.host}
        assert empty(run, victim.id)
        assert whole(run)
        assert run.cluster.moved_bytes <= 1.1 * held
        tell(run, done, began)


@pytest.mark.slow
def test_osg_a_host_cannot_be_evacuated_and_the_plan_says_why() -> None:
    with Large(plugged("osg"), policy=replace(POLICY, tick_seconds=60), tick_seconds=60) as run:
        first = [osd for osd in run.spec.osds if osd.host == run.spec.osds[0].host]
        host_wide = DeviceId("HBA_1")
        run.cluster._osds.update({int(osd.id): replace(osd, shared_devices=(host_wide,)) for osd in first})
        run.cluster._mon.osd_changed()
        run.tick()
        drain = run.controller.requests.propose(host_wide, "operator", "the HBA must go", run.cluster.now)
        assert drain.plan is not None
        assert PlanRefusalKind.ZERO_OF_LAST_OSD in {one.kind for one in drain.plan.refusals}
        run.controller.requests.approve(drain.id, "operator", run.cluster.now)
        before = run.cluster.moved_bytes
        for _ in range(5):
            run.tick()
        assert run.cluster.moved_bytes == before
        with pytest.raises(ConcurrentDrainChange):
            run.controller.requests.hand_over(drain.id, "operator", run.cluster.now + timedelta(seconds=1))
