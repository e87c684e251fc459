"""After the drain: what a person does next, by orchestrator and intent, and what the controller does by itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import pytest

from predrain.actions.cluster.channel import Argument, DaemonReply
from predrain.actions.cluster.cluster_port import DeviceLight
from predrain.actions.controller.hand_over import Orchestrator, detect_orchestrator, hand_over
from predrain.data.drain import DrainState, Intent
from predrain.data.ids import OsdId
from tests.actions.made import a_drain, calm_view, device, wide_spec
from tests.actions.made_channel import MonInMemory
from tests.actions.test_replication import Kept
from tests.settings_by_text import by_setting

S = DrainState


def commands(by: Orchestrator, intent: Intent, osds: tuple[int, ...] = (0,)) -> list[str]:
    drain = a_drain(0, state=S.HANDED_OVER, intent=intent, osds=tuple(map(OsdId, osds)))
    return [task.command for task in hand_over(calm_view(), drain, by).tasks if task.command]


def test_cephadm_replaces_in_the_slot_and_then_it_is_filled() -> None:
    assert commands(Orchestrator.CEPHADM, Intent.REPLACE) == [
        "ceph orch osd rm 0 --replace",
        "ceph orch osd rm status",
        "ceph osd add-noin osd.0",
        f"ceph device light on {device(0)} ident",
        "predrain fill osd.0",
        "ceph osd rm-noin osd.0",
    ]


@pytest.mark.parametrize("by", [Orchestrator.CEPHADM, Orchestrator.NONE])
def test_ceph_is_kept_from_filling_a_new_disk_before_it_is_put_in_until_it_is_filled_gently(
    by: Orchestrator,
) -> None:
    typed = commands(by, Intent.REPLACE, (0, 1))
    kept, freed = (typed.index(f"ceph osd {word} osd.0 osd.1") for word in ("add-noin", "rm-noin"))
    assert kept < typed.index(f"ceph device light on {device(0)} ident")
    assert kept < typed.index("predrain fill osd.0") < typed.index("predrain fill osd.1") < freed
    assert "noin" not in " ".join(commands(by, Intent.REMOVE))


def test_rook_makes_an_osd_of_its_own_that_nothing_needs_to_be_kept_from() -> None:
    assert "noin" not in " ".join(commands(Orchestrator.ROOK, Intent.REPLACE))


def test_cephadm_removes_for_good() -> None:
    assert commands(Orchestrator.CEPHADM, Intent.REMOVE)[0] == "ceph orch osd rm 0"
    assert "predrain fill osd.0" not in commands(Orchestrator.CEPHADM, Intent.REMOVE)


def test_rook_must_first_be_kept_from_starting_the_osd_again() -> None:
    first, stop, purge, _ = commands(Orchestrator.ROOK, Intent.REPLACE)
    assert "do-not-reconcile=true" in first
    assert "rook-ceph-osd-0 --replicas=0" in stop
    assert purge.endswith("purge-osd 0")


@pytest.mark.parametrize(("intent", "way"), [(Intent.REPLACE, "destroy"), (Intent.REMOVE, "purge")])
def test_without_an_orchestrator_a_checklist_asks_ceph_once_more_before_anything_is_destroyed(
    intent: Intent, way: str
) -> None:
    asked, stopped, gone, *_ = commands(Orchestrator.NONE, intent)
    assert asked == "ceph osd safe-to-destroy 0"
    assert stopped == "systemctl disable --now ceph-osd@0"
    assert gone == f"ceph osd {way} 0 --yes-i-really-mean-it"


@pytest.mark.parametrize("by", Orchestrator)
def test_a_disk_that_was_filled_is_neither_stopped_nor_destroyed_nor_pulled(by: Orchestrator) -> None:
    assert commands(by, Intent.FILL) == ["ceph osd rm-noin osd.0"]
    drain = a_drain(0, state=S.HANDED_OVER, intent=Intent.FILL)
    assert "Replace" not in hand_over(calm_view(), drain, by).text()


def test_a_shared_device_is_pulled_after_all_of_its_osds() -> None:
    drain = a_drain(0, intent=Intent.REMOVE, osds=(OsdId(0), OsdId(1)))
    text = hand_over(calm_view(), drain, Orchestrator.CEPHADM).text()
    assert text.index("osd rm 1") < text.index(f"Pull {device(0)}")


class Orch(MonInMemory):
    """A mgr that answers `orch status`."""

    reply = DaemonReply(0, b"", "")

    def ask(
        self,
        to: str,
        prefix: str,
        arguments: Mapping[str, Argument] | None = None,
        *,
        given: bytes = b"",
        seconds: float | None = None,
    ) -> DaemonReply:
        assert (to, prefix, dict(arguments or {}), given, seconds) == (
            "mgr",
            "orch status",
            {"format": "json"},
            b"",
            None,
        )
        return self.reply


@pytest.mark.parametrize(
    ("reply", "by"),
    [
        (DaemonReply(0, b'{"available": true, "backend": "cephadm"}', ""), Orchestrator.CEPHADM),
        (DaemonReply(0, b'{"available": true, "backend": "rook"}', ""), Orchestrator.ROOK),
        (DaemonReply(0, b'{"available": false, "backend": "cephadm"}', ""), Orchestrator.NONE),
        (DaemonReply(0, b'{"available": true, "backend": "test_orchestrator"}', ""), Orchestrator.NONE),
        (DaemonReply(0, b"no JSON", ""), Orchestrator.NONE),
        (DaemonReply(0, b"[]", ""), Orchestrator.NONE),
        (DaemonReply(-2, b"", "No orchestrator configured"), Orchestrator.NONE),
    ],
)
def test_the_orchestrator_is_the_one_that_says_so(reply: DaemonReply, by: Orchestrator) -> None:
    mgr = Orch()
    mgr.reply = reply
    assert detect_orchestrator(mgr) is by


# -- the controller
# -----------------------------------------------------------------------------------------------------


@pytest.fixture
def run() -> Iterator[Kept]:
    with Kept(replace(wide_spec(), self_heal=False)) as run:
        yield run


@pytest.mark.slow
def test_the_light_is_asked_for_and_its_refusal_is_said_and_fails_nothing(run: Kept) -> None:
    drain = run.drain("osd.0")
    run.until(drain, S.VERIFIED)
    run.tick()
    assert run.controller.requests.hand_over(drain.id, "operator", run.cluster.now).state is S.HANDED_OVER
    assert DeviceLight(device(0), on=True) in run.watched.commands
    assert "No orchestrator configured" in run.transcript(drain)


@pytest.mark.slow
def test_after_the_hand_over_no_upmap_names_the_disk_and_nothing_of_the_drain_stays(run: Kept) -> None:
    run.tick()
    settings = run.cluster.view().settings
    drain = run.drain("osd.0")
    run.until(drain, S.VERIFIED)
    run.tick()
    run.controller.requests.hand_over(drain.id, "operator", run.cluster.now)
    run.ticks(3)
    view = run.cluster.view()
    assert not [pairs for pairs in view.upmap_items.values() if any(0 in pair for pair in pairs)]
    assert view.settings == settings
    assert view.flags == frozenset()
    assert view.osds[OsdId(0)].crush_weight > 0
    assert not [name for name in run.keep.names() if name.startswith("drain/")]


def test_settings_that_an_ended_drain_left_standing_are_put_back_by_the_next_controller() -> None:
    spec = replace(wide_spec(), settings={"osd/osd_max_backfills": "1"}, balancer=False)
    with Kept(spec) as run:
        run.tick()
        left = a_drain(
            0,
            state=S.CANCELLED,
            saved=by_setting(
                {"option/osd_max_backfills": "8", "balancer": "-", "option/osd_recovery_max_active": "7"}
            ),
            ours=by_setting(
                {"option/osd_max_backfills": "1", "balancer": "off", "option/osd_recovery_max_active": "3"}
            ),
        )
        run.store.save_drain(left)
        run.started()
        run.ticks(4)
        view = run.cluster.view()
        assert view.settings == {"osd/osd_max_backfills": "8"}
        assert view.balancer_active
        assert "put back what was left" in run.transcript(left)
