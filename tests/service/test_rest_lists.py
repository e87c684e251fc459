"""Lists over REST: joined pages are the whole, changes can be read alone, and no unchanged row is written twice."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from weakref import ReferenceType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from predrain.actions.core.drain_policy import Policy
from predrain.data.drain import JournalEntry
from predrain.data.ids import OsdId
from predrain.data.log.memory_log import MemoryLog
from predrain.data.store.sqlite_store import SqliteStore
from predrain.service.app.application import Application, ApplicationPorts
from predrain.service.app.changes import ChangeKind
from predrain.service.config.settings import ServiceTable, Settings
from predrain.service.fleet.fleet import FleetSnapshot
from predrain.service.rest import list_answers
from predrain.service.rest.list_answers import IncrementalList
from predrain.service.rest.osd_routes import OsdPage, _create_osd_list
from predrain.service.rest.status_routes import CachedFleetCounts
from tests.service.conftest import NOON, SetClock, Site, smart_reading
from tests.service.test_drains import World, proposed, seated, site, world  # noqa: F401  (fixtures of an application over a cluster)
from tests.service.test_worker import work

VIEW = seated().view()
FLEETS = st.dictionaries(st.integers(0, 11), st.booleans(), max_size=12)
"""OSDs that are there, and whether they are up."""


class Watched:
    """An application whose cluster changes as a test says, and its list of OSDs."""

    def __init__(self, folder: Path) -> None:
        def no_forecaster() -> Any:
            raise AssertionError("nothing is scored here")

        ports = ApplicationPorts(MemoryLog(), SqliteStore(":memory:"), SetClock(), no_forecaster)
        self.application = Application(ports, Policy(), Settings(service=ServiceTable(state=folder)))
        self.list: IncrementalList[int] = _create_osd_list(self.application)
        self.there: dict[int, bool] = {}

    def become(self, there: dict[int, bool]) -> None:
        """The cluster has these OSDs from now on."""
        self.there = there
        osds = {OsdId(one): replace(VIEW.osds[OsdId(one)], up=up) for one, up in there.items()}
        self.application.fleet.update_view(replace(VIEW, osds=osds))
        self.application.changes.notify_change(ChangeKind.OSDS)

    def refer_to_snapshot(self) -> ReferenceType[FleetSnapshot]:
        """Return a weak reference to the present snapshot."""
        return ReferenceType(self.application.get_snapshot())

    def page(self, limit: int, cursor: str | None, since: str | None = None) -> dict[str, Any]:
        answer = self.list.build_page_since(limit, cursor, since)
        answer.given = True
        found: dict[str, Any] = json.loads(answer.content)
        OsdPage.model_validate_json(json.dumps(found).replace('"in":', '"in_":'))
        return found

    def since(self, at: str) -> dict[str, Any]:
        answer = self.list.build_page_since(10_000, None, at)
        answer.given = True
        found: dict[str, Any] = json.loads(answer.content)
        return found


@pytest.mark.slow
@given(st.lists(FLEETS, min_size=1, max_size=6), st.integers(1, 5))
@settings(deadline=None, max_examples=30)
def test_pages_joined_are_the_whole_while_osds_come_and_go(fleets: list[dict[int, bool]], limit: int) -> None:
    with TemporaryDirectory() as folder:
        watched, seen, cursor = Watched(Path(folder)), [], None
        always, ever = set(fleets[0]), set[int]()
        for turn in range(40):
            there = fleets[min(turn, len(fleets) - 1)]
            watched.become(there)
            always, ever = always & set(there), ever | set(there)
            page = watched.page(limit, cursor)
            seen += [row["osd"] for row in page["items"]]
            cursor = page["next"]
            if cursor is None:
                break
        assert cursor is None
        assert seen == sorted(set(seen))
        assert always <= set(seen) <= ever
        watched.application.store.close()


@pytest.mark.slow
@given(st.lists(st.tuples(FLEETS, st.booleans()), min_size=1, max_size=8))
@settings(deadline=None, max_examples=30)
def test_a_reader_that_follows_the_changes_holds_the_same_rows_as_the_whole_list(
    steps: list[tuple[dict[int, bool], bool]],
) -> None:
    with TemporaryDirectory() as folder:
        watched = Watched(Path(folder))
        first = watched.page(10_000, None)
        held, at = {row["osd"]: row for row in first["items"]}, first["at"]
        for there, looked_at in steps:
            watched.become(there)
            if looked_at:
                news = watched.since(at)
                held = {} if news["full"] else held
                held = {osd: row for osd, row in held.items() if osd not in news["removed"]}
                held |= {row["osd"]: row for row in news["items"]}
                at = news["at"]
                assert sorted(held.items()) == [
                    (row["osd"], row) for row in watched.page(10_000, None)["items"]
                ]
        watched.application.store.close()


@pytest.mark.slow
@given(st.lists(FLEETS, min_size=2, max_size=12), st.integers(1, 4), st.integers(1, 40))
@settings(deadline=None, max_examples=60)
def test_a_reader_that_asks_for_changes_since_the_first_page_misses_no_change_between_pages(
    fleets: list[dict[int, bool]], limit: int, many: int
) -> None:
    """The fleet changes before each page, and then stands still."""
    turns = iter(fleets)
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patched:
        patched.setattr(list_answers, "MANY", many)
        watched, held, at = Watched(Path(folder)), dict[int, Any](), None
        for _ in range(len(fleets) + 3):
            first = page = watched.page(limit, None, at)
            held = {} if first["full"] else held
            came, gone = list(first["items"]), set(first["removed"])
            while page["next"] is not None:
                watched.become(next(turns, watched.there))
                page = watched.page(limit, page["next"], None if first["full"] else at)
                came += page["items"]
            held = {osd: row for osd, row in held.items() if osd not in gone}
            held |= {row["osd"]: row for row in came}
            at = first["at"]
            watched.become(next(turns, watched.there))
        settled = watched.page(10_000, None, at)
        held = {} if settled["full"] else held
        held = {osd: row for osd, row in held.items() if osd not in settled["removed"]}
        held |= {row["osd"]: row for row in settled["items"]}
        assert sorted(held.items()) == [(row["osd"], row) for row in watched.page(10_000, None)["items"]]
        watched.application.store.close()


def test_a_change_of_many_osds_is_told_page_by_page(tmp_path: Path) -> None:
    watched = Watched(tmp_path)
    watched.become(dict.fromkeys(range(12), True))
    at = watched.page(10_000, None)["at"]
    watched.become({osd: osd % 2 == 0 for osd in range(12)} | {11: True})
    first = watched.page(3, None, at)
    second = watched.page(3, first["next"], at)
    assert [[row["osd"] for row in page["items"]] for page in (first, second)] == [[1, 3, 5], [7, 9]]
    assert (first["full"], second["full"], second["next"]) == (False, False, None)
    watched.application.store.close()


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [(2_000_000, 2_999_999, False), (2_000_000, 3_000_000, True), (None, 0, True)],
)
def test_an_osd_whose_fullness_stays_the_same_to_a_thousandth_has_not_changed(
    tmp_path: Path, before: int | None, after: int, told: bool
) -> None:
    watched = Watched(tmp_path)

    def use(used: int | None) -> None:
        osd = replace(VIEW.osds[OsdId(0)], size_bytes=1_000_000_000, used_bytes=used)
        watched.application.fleet.update_view(replace(VIEW, osds={OsdId(0): osd}))
        watched.application.changes.notify_change(ChangeKind.OSDS)

    use(before)
    at = watched.page(10_000, None)["at"]
    use(after)
    assert bool(watched.since(at)["items"]) is told
    watched.application.store.close()


@pytest.mark.parametrize(("after", "told"), [(1.23, False), (1.27, False), (1.29, True)])
def test_an_osd_whose_latency_ratio_stays_the_same_to_a_twentieth_has_not_changed(
    tmp_path: Path, after: float, told: bool
) -> None:
    watched = Watched(tmp_path)

    def answer(ratio: float) -> None:
        watched.application.fleet.update_view(replace(VIEW, latency_ratio={OsdId(0): ratio}))
        watched.application.changes.notify_change(ChangeKind.OSDS)

    answer(1.25)
    at = watched.page(10_000, None)["at"]
    answer(after)
    assert [row["latency_ratio"] for row in watched.since(at)["items"]] == ([1.3] if told else [])
    watched.application.store.close()


@pytest.mark.parametrize(("changed", "whole"), [(6, False), (7, True)])
def test_where_most_of_a_long_list_changed_all_who_follow_it_get_the_same_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: int, whole: bool
) -> None:
    monkeypatch.setattr(list_answers, "MANY", 5)
    watched = Watched(tmp_path)
    watched.become(dict.fromkeys(range(12), True))
    at = watched.page(10_000, None)["at"]
    watched.become({osd: osd >= changed for osd in range(12)})
    news = watched.since(at)
    assert (news["full"], len(news["items"])) == (whole, 12 if whole else changed)
    same = watched.list.build_page_since(10_000, None, at) is watched.list.build_page_since(
        10_000, None, None
    )
    assert same is whole
    watched.application.store.close()


def test_only_what_changed_is_sent_to_who_says_since_when(site: Site) -> None:  # noqa: F811
    whole = site.client.get("/api/v1/osds").json()
    assert (whole["full"], whole["removed"], len(whole["items"])) == (True, [], 12)
    same = site.client.get(f"/api/v1/osds?since={whole['at']}").json()
    assert same == {"items": [], "next": None, "removed": [], "full": False, "at": whole["at"]}
    site.application.ingest([smart_reading("A", site.application.clock.now())])
    work(site.application)
    news = site.client.get(f"/api/v1/osds?since={whole['at']}").json()
    assert [row["osd"] for row in news["items"]] == [0]
    assert news["items"][0]["as_of"] is not None
    assert news["at"] != whole["at"]


@pytest.mark.parametrize("since", ["0-0", "nonsense", "12345678-99999999999999999999", "-"])
def test_a_since_of_another_start_of_the_service_is_answered_with_the_whole(site: Site, since: str) -> None:  # noqa: F811
    answer = site.client.get("/api/v1/osds", params={"since": since}).json()
    assert (answer["full"], len(answer["items"])) == (True, 12)


def test_a_row_is_written_when_it_is_shown_and_again_once_something_of_it_changed(tmp_path: Path) -> None:
    watched, written = Watched(tmp_path), list[int]()
    inner = watched.list._write

    def counting(*made_of: Any) -> Any:
        written.append(made_of[0].id)
        return inner(*made_of)

    watched.list._write = counting
    watched.become(dict.fromkeys(range(12), True))
    watched.page(10, None)
    watched.become({**dict.fromkeys(range(12), True), 5: False})
    watched.page(10, None)
    watched.page(10, None)
    assert written == [*range(10), 5]
    watched.page(12, None)
    assert written == [*range(10), 5, 10, 11]
    watched.application.store.close()


def test_an_outdated_page_is_not_served_again_where_a_row_could_not_be_written_in_advance(
    tmp_path: Path,
) -> None:
    watched = Watched(tmp_path)
    watched.become(dict.fromkeys(range(12), True))
    watched.list.build_page(12, None).given = True
    inner, watched.list._write = watched.list._write, None  # type: ignore[assignment]
    watched.become({**dict.fromkeys(range(12), True), 5: False})
    watched.list._write = inner
    assert watched.list.find_ready_page(12, None) is None
    assert b'"up":false' in watched.list.build_page(12, None).content
    watched.application.store.close()


def test_a_list_that_nobody_requests_any_more_holds_no_old_snapshot(tmp_path: Path) -> None:
    watched = Watched(tmp_path)
    watched.become(dict.fromkeys(range(8), True))
    watched.page(8, None)
    requested = watched.refer_to_snapshot()
    watched.become(dict.fromkeys(range(7), True))
    followed = watched.refer_to_snapshot()
    watched.become(dict.fromkeys(range(6), True))
    watched.application.get_snapshot()
    assert (requested(), followed() is None) == (None, False)
    watched.application.clock.sleep(list_answers.IDLE_PAUSE.total_seconds())
    watched.become(dict.fromkeys(range(5), True))
    assert followed() is None
    watched.application.store.close()


def test_sums_of_a_snapshot_do_not_hold_the_snapshot(tmp_path: Path) -> None:
    watched = Watched(tmp_path)
    counts = CachedFleetCounts(watched.application)
    watched.become(dict.fromkeys(range(8), True))
    counts.count()
    counted = watched.refer_to_snapshot()
    assert counts.find_ready_counts(watched.application.get_snapshot(), NOON) is not None
    watched.become(dict.fromkeys(range(7), True))
    assert counts.find_ready_counts(watched.application.get_snapshot(), NOON) is None
    assert counted() is None
    watched.application.store.close()


def test_drains_come_newest_first_and_page_by_page_while_another_is_asked_for(
    site: Site,  # noqa: F811
    world: World,  # noqa: F811
) -> None:
    made: list[str] = []
    for osd in (1, 4, 7):
        made.insert(0, proposed(site, f"osd.{osd}")["id"])
        world.tick()
    first = site.client.get("/api/v1/drains?limit=2").json()
    late = proposed(site, "osd.10")["id"]
    second = site.client.get(f"/api/v1/drains?limit=2&cursor={first['next']}").json()
    assert [one["id"] for one in first["items"] + second["items"]] == made
    assert second["next"] is None
    assert [one["id"] for one in site.client.get("/api/v1/drains").json()["items"]] == [late, *made]


def test_a_journal_pages_back_to_its_first_line_while_it_grows(site: Site) -> None:  # noqa: F811
    drain = proposed(site)["id"]
    store = site.application.store
    told = [f"line {number}" for number in range(10)]
    store.add_journal(
        [JournalEntry(drain, NOON + timedelta(seconds=n), "", one) for n, one in enumerate(told)]
    )
    seen: list[str] = []
    page = site.client.get(f"/api/v1/drains/{drain}/journal?limit=3").json()
    while True:
        seen = [one["decision"] for one in page["items"]] + seen
        if page["next"] is None:
            break
        store.add_journal([JournalEntry(drain, NOON, "", f"later {len(seen)}")])
        page = site.client.get(f"/api/v1/drains/{drain}/journal?limit=3&cursor={page['next']}").json()
    assert seen[-10:] == told
    assert seen == [line.decided for line in store.journal(drain) if not line.decided.startswith("later")]


@pytest.mark.parametrize("key", [-2, 10**30, "line", None])
def test_a_forged_cursor_of_a_journal_gets_no_more_than_a_page(site: Site, key: object) -> None:  # noqa: F811
    drain = proposed(site)["id"]
    site.application.store.add_journal([JournalEntry(drain, NOON, "", f"line {n}") for n in range(10)])
    cursor = base64.urlsafe_b64encode(json.dumps(key).encode()).decode()
    answer = site.client.get(f"/api/v1/drains/{drain}/journal?limit=3&cursor={cursor}")
    assert answer.status_code in (200, 422)
    assert len(answer.json().get("items", ())) <= 3


def test_every_list_says_what_is_next_and_has_an_etag(site: Site) -> None:  # noqa: F811
    document = site.client.get("/api/v1/openapi.json").json()
    bodies = document["components"]["schemas"]
    for path, operations in document["paths"].items():
        body = operations.get("get", {}).get("responses", {}).get("200", {}).get("content", {})
        name = body.get("application/json", {}).get("schema", {}).get("$ref", "").rsplit("/", 1)[-1]
        if "items" not in bodies.get(name, {}).get("properties", {}) or path.endswith("/executor/steps"):
            continue
        parameters = {one["name"] for one in operations["get"].get("parameters", ())}
        assert {"limit", "cursor"} <= parameters, path
        assert "next" in bodies[name]["required"], path
        if "{" not in path:
            answer = site.client.get(path, headers=site.acting)
            again = site.client.get(path, headers={**site.acting, "If-None-Match": answer.headers["etag"]})
            assert again.status_code == 304, path
