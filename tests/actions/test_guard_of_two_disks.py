"""Guard `check_trust` goes by the rule that files readings: a disk that two hosts name is not drained by itself."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from predrain.actions.guards import Pass, Refuse
from predrain.actions.guards.forecast_guards import check_trust
from predrain.data.ids import HostName, OsdId
from predrain.data.residence import HostClaim, Residence
from tests.actions.made import NOW, device
from tests.actions.test_guards import automatic, believed

HERE, THERE = HostName("here"), HostName("there")


@pytest.mark.parametrize("overlaps", [True, False])
def test_a_disk_whose_host_is_not_settled_is_not_drained_by_itself(overlaps: bool) -> None:
    """The cluster has none of the names of the hosts that read it, so that its list decides nothing."""
    view, drain, policy, context = believed(automatic())
    claim = HostClaim(THERE, NOW - timedelta(hours=2), NOW - timedelta(hours=1), overlaps=overlaps)
    known = Residence(HERE, NOW, NOW, claims=(claim,))
    said = check_trust(view, drain, policy, replace(context, residences={device(0): known}))
    assert isinstance(said, Refuse)
    assert "here and there name the same device" in said.sentence
    assert "which of them has it is not settled" in said.sentence
    asked = replace(drain, asked_by="ada")
    assert isinstance(check_trust(view, asked, policy, replace(context, residences={device(0): known})), Pass)


@pytest.mark.parametrize("outlook_is_of_the_osds_host", [True, False])
def test_the_clusters_list_settles_it_for_the_guard_only_where_the_outlook_is_of_that_host(
    outlook_is_of_the_osds_host: bool,
) -> None:
    view, drain, policy, context = believed(automatic())
    listed = view.osds[OsdId(0)].host
    home, other = (listed, THERE) if outlook_is_of_the_osds_host else (THERE, listed)
    known = Residence(home, NOW, NOW, claims=(HostClaim(other, NOW, NOW, overlaps=True),))
    said = check_trust(view, drain, policy, replace(context, residences={device(0): known}))
    assert isinstance(said, Pass) is outlook_is_of_the_osds_host
