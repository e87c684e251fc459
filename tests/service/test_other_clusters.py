"""Other clusters: the service asks their services over HTTP and adds up their drive models.

A model that turns bad in another cluster is a cause here.
"""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta

import msgspec
import pytest

from predrain.data.ids import ClusterId
from predrain.service.client.http_exchange import Unreachable, Wire
from predrain.service.clusters.other_clusters import (
    COUNTED_FOR,
    TROUBLE_AFTER,
    OtherClusters,
    OverviewSource,
    decode_overview,
    open_overview_source,
)
from predrain.service.config.clusters_table import ClustersTable, OtherServiceTable
from predrain.service.fleet.cluster_overview import (
    ClusterOverview,
    ModelCounts,
    add_up_models,
    count_disks_by_model,
    find_models_sick_elsewhere,
)
from predrain.service.notifications import find_alert_causes
from predrain.service.notifications.cause import AlertCauseKind, ClustersInView
from tests.service.conftest import NOON, Place, Serve, Site, shut, week_of
from tests.service.notifications.snapshots import Fleet
from tests.service.test_worker import work

FSID = ClusterId("11111111-2222-3333-4444-555555555555")
MINUTE = timedelta(minutes=1)


def an_overview(name: str, *models: ModelCounts) -> ClusterOverview:
    return ClusterOverview(
        name=name, fsid=FSID, at=NOON, health="HEALTH_OK", osds=12, hosts=3, disks=12, fresh=12, warning=0,
        bad=sum(one.bad for one in models), expected_30d=0.4, drains=1, halted=False, models=models,
    )  # fmt: skip


def as_answer(overview: ClusterOverview) -> bytes:
    body = msgspec.to_builtins(overview)
    return json.dumps({**body, "cluster": body.pop("name")}).encode()


def a_source(*answers: bytes | Exception, url: str = "https://east.example.org") -> OverviewSource:
    """Gives its answers one after the other."""
    left = list(answers)

    def fetch() -> bytes:
        answer = left.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    return OverviewSource(url, fetch)


# ---- drive models


def test_the_same_model_of_several_clusters_adds_up_and_names_them() -> None:
    east = an_overview("east", ModelCounts("A", 100, 1, 4, 3), ModelCounts("B", 10, 0, 0, 0))
    west = an_overview("west", ModelCounts("A", 50, 2, 2, 2))
    assert [(one.total, one.clusters) for one in add_up_models((east, west))] == [
        (ModelCounts("A", 150, 3, 6, 5), ("east", "west")),
        (ModelCounts("B", 10, 0, 0, 0), ("east",)),
    ]


@pytest.mark.parametrize(
    ("here", "there", "told"),
    [
        (ModelCounts("A", 40, 0, 0, 0), ModelCounts("A", 60, 0, 6, 6), True),
        (ModelCounts("A", 40, 0, 2, 2), ModelCounts("A", 60, 0, 4, 4), True),
        (ModelCounts("A", 40, 0, 0, 0), ModelCounts("A", 60, 0, 5, 5), False),  # 5 % of 100
        (ModelCounts("A", 40, 0, 6, 6), ModelCounts("A", 60, 0, 6, 6), False),  # here alone: another cause
        (ModelCounts("A", 100, 0, 4, 4), ModelCounts("A", 0, 0, 0, 0), False),
        (ModelCounts("B", 40, 0, 0, 0), ModelCounts("A", 60, 0, 6, 6), False),  # none of it here
    ],
)
def test_a_model_is_sick_elsewhere_by_the_rule_of_mass_suspicion_over_all_clusters(
    here: ModelCounts, there: ModelCounts, told: bool
) -> None:
    found = find_models_sick_elsewhere(
        an_overview("own", here), [an_overview("east", there)], least=3, share=0.05
    )
    assert bool(found) is told


def test_a_model_that_turns_bad_in_another_cluster_is_a_cause_here() -> None:
    fleet = Fleet()
    snapshot = fleet.snapshot()
    model = count_disks_by_model(snapshot.fleet, snapshot.told, NOON - timedelta(days=7))[0]
    assert not [one for one in find_alert_causes(snapshot) if one.kind is AlertCauseKind.MODEL_ELSEWHERE]
    own = an_overview("own", model)
    east = an_overview("east", ModelCounts(model.model, 100, 0, 90, 90))
    seen = replace(snapshot, clusters=ClustersInView(own, (east,)))
    cause = next(one for one in find_alert_causes(seen) if one.kind is AlertCauseKind.MODEL_ELSEWHERE)
    assert cause.model == model.model
    assert cause.title.startswith(f"90 of {100 + model.disks} disks of model {model.model} in 2 clusters")
    assert f"This cluster has {model.disks} disks" in cause.points[0].line
    assert "east" in cause.points[0].line


# ---- the answer of another service


def test_texts_of_another_service_are_cleaned_where_they_enter() -> None:
    sent = an_overview("ea\x1b[31mst", ModelCounts("A\u202eB", 1, 0, 0, 0))
    told = decode_overview(as_answer(sent))
    assert told.name.startswith("east#")
    assert "\u202e" not in told.models[0].model
    assert decode_overview(as_answer(an_overview("east"))) == an_overview("east")


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"cluster": 1}', b"<html>"])
def test_an_answer_that_is_no_overview_keeps_the_last_one_and_says_why(content: bytes) -> None:
    clusters = OtherClusters([a_source(as_answer(an_overview("east")), content)], NOON)
    assert clusters.ask_all(NOON)
    assert clusters.ask_all(NOON + MINUTE)
    (known,) = clusters.list_known()
    assert known.overview == an_overview("east")
    assert known.answered_at == NOON
    assert "no overview" in known.refused


def test_too_many_models_are_refused() -> None:
    many = tuple(ModelCounts(f"M{number}", 1, 0, 0, 0) for number in range(2_001))
    with pytest.raises(msgspec.ValidationError, match="2001 models"):
        decode_overview(as_answer(an_overview("east", *many)))


def test_a_service_that_is_away_for_a_quarter_of_an_hour_is_a_broken_part_and_not_before() -> None:
    away = Unreachable("no service answers")
    clusters = OtherClusters([a_source(as_answer(an_overview("east")), away, away)], NOON)
    clusters.ask_all(NOON)
    clusters.ask_all(NOON + TROUBLE_AFTER)
    assert clusters.describe_troubles(NOON + TROUBLE_AFTER) == {}
    clusters.ask_all(NOON + TROUBLE_AFTER + MINUTE)
    (told,) = clusters.describe_troubles(NOON + TROUBLE_AFTER + MINUTE).values()
    assert "https://east.example.org has not answered since" in told


def test_disks_of_a_cluster_that_did_not_answer_for_a_day_are_counted_no_more() -> None:
    clusters = OtherClusters([a_source(as_answer(an_overview("east")))], NOON)
    clusters.ask_all(NOON)
    assert clusters.list_recent_overviews(NOON + COUNTED_FOR) == (an_overview("east"),)
    assert clusters.list_recent_overviews(NOON + COUNTED_FOR + MINUTE) == ()


def test_an_unchanged_answer_changes_nothing_that_people_see() -> None:
    later = replace(an_overview("east"), at=NOON + MINUTE)
    clusters = OtherClusters([a_source(as_answer(an_overview("east")), as_answer(later))], NOON)
    assert clusters.ask_all(NOON)
    assert not clusters.ask_all(NOON + MINUTE)
    assert clusters.list_known()[0].answered_at == NOON + MINUTE


def test_one_slow_service_does_not_keep_the_others_from_being_asked() -> None:
    sources = [a_source(Unreachable("late"), url=f"https://{n}.example.org") for n in range(20)]
    clusters = OtherClusters([*sources, a_source(as_answer(an_overview("east")))], NOON)
    clusters.ask_all(NOON)
    assert [known.overview is not None for known in clusters.list_known()] == [*[False] * 20, True]


# ---- over HTTP


@pytest.fixture
def east(place: Place, serve: Serve) -> Site:
    """The service of another cluster, with one bad disk."""
    application = place.application()
    application.start()
    application.ingest(week_of("E", NOON, pending=400))
    work(application)
    return serve(application)


def test_a_service_asks_another_one_and_answers_for_both(east: Site) -> None:
    source = open_overview_source(str(east.client.base_url).rstrip("/"), None, None)
    clusters = OtherClusters([source], NOON)
    clusters.ask_all(NOON)
    (known,) = clusters.list_known()
    assert known.refused == ""
    assert known.overview is not None
    assert (known.overview.bad, known.overview.disks) == (1, 1)
    assert [(one.model, one.bad, one.turned_bad) for one in known.overview.models] == [("ST4000DM000", 1, 1)]
    east.application.other_clusters = clusters
    told = east.client.get("/api/v1/clusters").json()
    assert told["own"]["bad"] == told["others"][0]["overview"]["bad"] == 1
    assert told["models"][0]["disks"] == 2
    assert east.client.get("/api/v1/status").json()["other_clusters"] == 1
    shut(east.application)


def test_a_service_that_is_not_there_is_named_with_its_address() -> None:
    source = open_overview_source("http://127.0.0.1:9", "secret", None)
    clusters = OtherClusters([source], NOON)
    clusters.ask_all(NOON)
    (known,) = clusters.list_known()
    assert "http://127.0.0.1:9" in known.refused
    assert "secret" not in known.refused
    assert known.overview is None


def test_an_answer_that_is_longer_than_any_overview_is_not_read_to_its_end(east: Site) -> None:
    address = str(east.client.base_url).rstrip("/")
    wire = Wire(address, waits=(), longest_answer_bytes=len(east.client.get("/api/v1/overview").content) - 1)
    with pytest.raises(Unreachable, match="longer than"):
        wire.get("overview")
    shut(east.application)


def test_one_service_named_twice_is_refused() -> None:
    one = OtherServiceTable(url="https://east.example.org")
    with pytest.raises(ValueError, match="name each service once"):
        ClustersTable(services=(one, OtherServiceTable(url="https://east.example.org/")))
