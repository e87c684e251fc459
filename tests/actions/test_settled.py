"""The conditions under which a poll can show the effect of the commands that were sent last."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from predrain.actions.cluster.cluster_view import ClusterView
from predrain.actions.core.situation import SentMemory
from predrain.data.ids import PgId
from predrain.data.setting import ConfigOption, UpmapItem
from tests.actions.made import NOW, POLICY, calm_view, changed_pg, settled_memory

PG = PgId("1.0")
SOON = NOW + timedelta(seconds=POLICY.mgr_stats_period_seconds / 2)
LATER = NOW + timedelta(seconds=2 * POLICY.mgr_stats_period_seconds)


def after_pin(view: ClusterView, *, known: bool = True) -> SentMemory:
    """Return the memory after the cluster took a command that changes the PG at the next epoch."""
    waited = settled_memory(view).after_poll(view, NOW, POLICY)
    return waited.after_command({PG: view.epoch + 1}, (UpmapItem(PG),), NOW, POLICY, known=known)


def next_look(view: ClusterView, *, at: int = 1) -> ClusterView:
    """Return the view of a poll soon after the command. The PG has reported `at` epochs after the epoch of `view`."""
    moved = changed_pg(view, PG, reported_epoch=view.epoch + at)
    return replace(moved, epoch=view.epoch + 1, as_of=SOON)


def test_the_report_of_each_changed_pg_from_its_place_shows_a_command_before_two_periods_are_over() -> None:
    view = calm_view()
    seen = next_look(view)
    assert after_pin(view).after_poll(seen, SOON, POLICY).is_settled(seen)


def test_a_pg_that_has_not_reported_since_is_waited_for() -> None:
    view = calm_view()
    silent = next_look(view, at=0)
    assert not after_pin(view).after_poll(silent, SOON, POLICY).is_settled(silent)


def test_a_report_from_elsewhere_than_the_map_sends_the_pg_shows_nothing() -> None:
    view = calm_view()
    first, second, *rest = view.pgs[PG].up
    seen = replace(changed_pg(next_look(view), PG, up=(second, first, *rest)), as_of=SOON)
    memory = after_pin(view).after_poll(seen, SOON, POLICY)
    assert not memory.is_settled(seen)
    assert memory.is_settled(replace(seen, as_of=LATER))


def test_time_must_pass_after_a_command_that_changes_no_pg_or_whose_epoch_is_not_known() -> None:
    view = calm_view()
    seen = next_look(view)
    option = after_pin(view).after_command({}, (ConfigOption("osd_max_backfills"),), NOW, POLICY)
    for memory in (option, after_pin(view, known=False)):
        assert not memory.after_poll(seen, SOON, POLICY).is_settled(seen)
        late = replace(seen, as_of=LATER)
        assert memory.after_poll(late, LATER, POLICY).is_settled(late)


def test_time_must_pass_under_a_new_mgr() -> None:
    view = calm_view()
    seen = replace(next_look(view), mgr_id="another")
    assert not after_pin(view).after_poll(seen, SOON, POLICY).is_settled(seen)
