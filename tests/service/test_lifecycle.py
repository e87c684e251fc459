"""The life of bundles in a service: promoted live, gone back from, tried in the shadow, quiet after each change."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from predrain.actions.cluster.cluster_port import Cluster
from predrain.actions.guards import AUTOMATIC
from predrain.data.clock import Clock
from predrain.data.ids import DeviceId
from predrain.data.log.sqlite_log import SqliteLog
from predrain.data.outcome import DriveFate, Outcome
from predrain.data.outlook import Status
from predrain.data.scorebook import Scorebook, ScorebookUnusable
from predrain.data.store.sqlite_store import SqliteStore
from predrain.models.deploy.bundle_store import BundleStore
from predrain.models.forecast.bundle import Bundle, save_bundle
from predrain.models.forecast.calibration import Thresholds
from predrain.service.app.application import Application, ApplicationPorts
from predrain.service.cli import main
from predrain.service.drains.live_cluster import LiveClusterParts
from predrain.service.forecasting import model_succession
from tests.service.conftest import Place, Serve, shut, smart_reading, week_of
from tests.service.test_drains import ClusterClock, Seated, seated
from tests.service.test_worker import work

pytestmark = pytest.mark.slow

Make = Callable[..., Application]


@pytest.fixture(scope="module")
def shipped() -> Bundle:
    return Bundle.load()


@pytest.fixture
def bundle(shipped: Bundle, tmp_path: Path) -> Callable[..., Path]:
    """A bundle folder of that name, with the trees that ship and facts changed."""

    def made(name: str, **changed: object) -> Path:
        facts = msgspec.structs.replace(shipped.facts, name=name, **changed)
        save_bundle(tmp_path / name, facts, shipped.booster, name)
        return tmp_path / name

    return made


@pytest.fixture
def make(place: Place) -> Iterator[Make]:
    """Houses as `predrain up` makes them: with a folder of promoted bundles and a scorebook."""
    applications: list[Application] = []

    def made(*, clock: Clock | None = None, cluster: Cluster | None = None) -> Application:
        ports = ApplicationPorts(
            SqliteLog(place.state.log),
            SqliteStore(place.state.store),
            clock or place.clock,
            lambda: place.forecaster,
            LiveClusterParts(cluster) if cluster is not None else None,
            installed=place.state.bundles,
            scorebook=Scorebook(place.state.scorebook),
        )
        applications.append(Application(ports, place.policy, place.settings))
        applications[-1].start()
        return applications[-1]

    yield made
    for application in applications:
        shut(application)
        assert application.scorer.scorebook is not None
        application.scorer.scorebook.close()


@pytest.fixture
def models(place: Place) -> Callable[..., int]:
    """`predrain models ...` on the state of the place."""
    return lambda *words: main(["models", *words, "--state", str(place.state.path)])


EAGER = Thresholds(warning=1e-6, bad=2e-6)
"""Calls every disk bad."""


def test_a_bundle_is_promoted_and_gone_back_from_while_the_service_runs(
    make: Make, bundle: Callable[..., Path], models: Callable[..., int]
) -> None:
    application = make()
    application.ingest(week_of("A"))
    work(application)
    assert (application.bundle_name, application.adopt_promoted_models()) == ("default", False)
    assert models("promote", str(bundle("new"))) == 0
    application.clock.sleep(3600)
    assert application.adopt_promoted_models()
    assert application.bundle_name == "new"
    application.ingest([smart_reading("A", application.clock.now())])
    work(application)
    (outlook,) = application.store.latest_outlooks().values()
    assert outlook.source == "model:new"
    assert outlook.readings > 1, "what is remembered of a disk outlives the bundle"
    assert models("rollback") == 0
    assert application.adopt_promoted_models()
    assert application.bundle_name == "default"
    assert not application.adopt_promoted_models()


def test_a_promoted_bundle_scores_after_a_restart(
    make: Make, bundle: Callable[..., Path], models: Callable[..., int]
) -> None:
    assert models("promote", str(bundle("one"))) == 0
    assert models("promote", str(bundle("two"))) == 0
    assert make().bundle_name == "two"
    assert models("rollback") == 0
    assert make().bundle_name == "one"


def test_a_bundle_that_was_touched_after_it_was_promoted_is_refused_and_the_one_before_goes_on(
    make: Make, bundle: Callable[..., Path], models: Callable[..., int], place: Place
) -> None:
    application = make()
    assert models("promote", str(bundle("new"))) == 0
    digest = BundleStore(place.state.bundles).roles().champion
    with (place.state.bundles / str(digest) / "bundle.json").open("a") as file:
        file.write(" ")
    assert not application.adopt_promoted_models()
    assert application.bundle_name == "default"
    assert "bundle.json is not what SHA256SUMS says" in application.troubles["bundle"]
    assert models("rollback") == 0
    application.adopt_promoted_models()
    assert application.troubles == {}


def test_the_challenger_is_written_down_beside_the_champion_and_shown_nowhere(
    make: Make, bundle: Callable[..., Path], models: Callable[..., int], place: Place
) -> None:
    assert models("challenge", str(bundle("eager", thresholds=EAGER))) == 0
    application = make()
    application.ingest(week_of("A"))
    work(application)
    champion, challenger = application.deployed_models.champion, application.deployed_models.challenger
    assert champion is not None
    assert challenger is not None
    assert application.scorer.scorebook is not None
    told = [application.scorer.scorebook.read(one.fingerprint) for one in (champion, challenger)]
    assert told[0].day.tolist() == told[1].day.tolist()
    assert len(told[0]) == 8
    assert told[0].status[-1] is Status.GOOD
    assert told[1].status[-1] is Status.BAD
    assert {one.source for one in application.store.outlooks(DeviceId("ST4000DM000_A"))} == {"model:default"}
    assert application.announcements.list_newest_alerts() == ()
    assert application.get_snapshot().outlooks[DeviceId("ST4000DM000_A")].status is Status.GOOD


def test_a_challenger_that_breaks_and_a_scorebook_that_cannot_be_written_stop_nobody(
    make: Make, bundle: Callable[..., Path], models: Callable[..., int], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert models("challenge", str(bundle("eager", thresholds=EAGER))) == 0
    application = make()
    assert application.deployed_models.challenger is not None

    def breaks(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(application.deployed_models.challenger, "compute_outlooks", breaks)
    application.ingest(week_of("A"))
    assert work(application) == 8

    def full(*_: object) -> None:
        raise ScorebookUnusable("the scorebook is full: make room.")

    monkeypatch.setattr(application.scorer.scorebook, "write", full)
    application.ingest(week_of("B"))
    assert work(application) == 8
    assert application.troubles == {"scorebook": "the scorebook is full: make room."}


def test_another_calibration_of_the_same_trees_is_another_bundle(
    make: Make, bundle: Callable[..., Path], models: Callable[..., int]
) -> None:
    application = make()
    assert models("promote", str(bundle("default", thresholds=EAGER))) == 0
    assert application.adopt_promoted_models()
    line = model_succession.find_last_deployment(application.store)
    assert line is not None
    assert line.seen != line.decided


def first_proposal(
    application: Application, cluster: Seated, each_day: Callable[[int], None], days: int
) -> int | None:
    """The day on which something is proposed, while a disk is bad from the first day on."""
    for day in range(days):
        application.ingest(week_of("A", application.clock.now(), pending=400)[0 if day == 0 else -1 :])
        work(application)
        each_day(day)
        for _ in range(3):
            cluster.cluster.advance(10)
            application.step_controller()
        if application.store.drains():
            return day
        cluster.cluster.advance(86_400 - 30)
    return None


def test_after_a_promotion_nothing_is_proposed_for_72_hours_and_then_it_is(
    make: Make, bundle: Callable[..., Path], models: Callable[..., int]
) -> None:
    reach = Seated(seated())
    application = make(clock=ClusterClock(reach.cluster), cluster=reach)  # type: ignore[arg-type]

    def promoting(day: int) -> None:
        if day == 1:
            assert models("promote", str(bundle("new"))) == 0
            assert application.adopt_promoted_models()

    assert first_proposal(application, reach, promoting, 7) == 4, "day 1 and 72 hours"
    (drain,) = application.store.drains()
    assert drain.asked_by == AUTOMATIC


def test_without_a_promotion_the_same_disk_is_proposed_as_soon_as_it_is_believed(make: Make) -> None:
    reach = Seated(seated())
    application = make(clock=ClusterClock(reach.cluster), cluster=reach)  # type: ignore[arg-type]
    assert first_proposal(application, reach, lambda _: None, 7) in (1, 2)


def test_a_rollback_is_a_change_of_bundle_too_and_is_followed_by_quiet(
    make: Make, bundle: Callable[..., Path], models: Callable[..., int]
) -> None:
    assert models("promote", str(bundle("one"))) == 0
    reach = Seated(seated())
    application = make(clock=ClusterClock(reach.cluster), cluster=reach)  # type: ignore[arg-type]

    def going_back(day: int) -> None:
        if day == 1:
            assert models("rollback") == 0
            assert application.adopt_promoted_models()

    assert first_proposal(application, reach, going_back, 7) == 4


def test_the_forecasts_health_is_served_and_measured(
    make: Make, bundle: Callable[..., Path], models: Callable[..., int], serve: Serve
) -> None:
    assert models("promote", str(bundle("one"))) == 0
    assert models("challenge", str(bundle("eager", thresholds=EAGER))) == 0
    application = make()
    site = serve(application)
    before = site.client.get("/api/v1/forecast").json()
    assert (before["bundle"]["name"], before["challenger"]["name"]) == ("one", "eager")
    assert (before["checked_at"], before["comparison"], before["quiet_until"]) == (None, None, None)
    for serial in "ABC":
        application.ingest(week_of(serial))
    work(application)
    application.clock.sleep(86_400)
    application.record_outcome(
        Outcome(DeviceId("ST4000DM000_A"), application.clock.now(), DriveFate.FAILED, "a person")
    )
    application.clock.sleep(86_400)
    application.ingest([smart_reading(serial, application.clock.now()) for serial in "BC"])
    work(application)
    application.update_forecast_health()
    told = site.client.get("/api/v1/forecast").json()
    assert told["comparison"]["failures"] == 1
    assert [one["detected"] for one in told["comparison"]["bundles"]] == [0, 1]
    assert not told["comparison"]["enough"]
    assert told["comparison"]["sentence"].startswith("Of 1 failure in ")
    assert told["comparison"]["days_left"] > 0
    assert told["concerns"] == []
    assert [one["status"] for one in told["thresholds"]] == ["warning", "bad"]
    warning, bad = (one["p_fail_30d"] for one in told["thresholds"])
    assert 0 < warning <= bad < 1
    lines = site.client.get("/metrics").text.splitlines()
    assert 'predrain_bundle_info{bundle="one"} 1.0' in lines
    assert f'predrain_forecast_threshold{{status="bad"}} {bad}' in lines
    assert 'predrain_challenger_info{bundle="eager"} 1.0' in lines
    assert 'predrain_forecast_detected_failures{role="challenger"} 1.0' in lines
    assert 'predrain_forecast_concern{cause="drift"} 0.0' in lines
    assert not [line for line in lines if "ST4000DM000_" in line], "no series is named after a device"
    models("promote")
    application.adopt_promoted_models()
    told = site.client.get("/api/v1/forecast").json()
    assert (told["bundle"]["name"], told["challenger"]) == ("eager", None)
    assert told["previous_bundle"].startswith("one-")
    assert told["quiet_until"] is not None


def test_without_mlflow_folders_are_promoted_and_versions_are_refused_with_the_extras_name(
    bundle: Callable[..., Path],
    models: Callable[..., int],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "mlflow", None)
    assert models("promote", str(bundle("one"))) == 0
    assert models("list", "--json") == 0
    out = capsys.readouterr().out
    (row,) = json.loads(out[out.index("[") :])
    assert row["here"] == "champion"
    assert models("promote", "3") == 1
    assert "no registry" in capsys.readouterr().err
    assert models("promote", "3", "--tracking-uri", "sqlite:///x.db") == 1
    assert "extra `tracking`" in capsys.readouterr().err
    assert models("list", "--tracking-uri", "sqlite:///x.db") == 3
    assert models("rollback") == 0
    assert models("rollback") == 1
    assert "Nothing was promoted" in capsys.readouterr().err
    assert models("promote") == 1
    assert "no challenger" in capsys.readouterr().err


@pytest.mark.filterwarnings("ignore")
def test_versions_of_the_registry_are_tried_promoted_and_gone_back_from_with_their_aliases(
    bundle: Callable[..., Path],
    models: Callable[..., int],
    place: Place,
    capsys: pytest.CaptureFixture[str],
) -> None:
    pytest.importorskip("mlflow", reason="the extra `tracking` is not installed")
    from predrain.models.deploy.bundle_registry import Registry

    registry = Registry(f"sqlite:///{place.state.registry}")
    for name in ("one", "two"):
        folder = bundle(name)
        registry.register(Bundle.load(folder).facts, folder)

    def aliases() -> dict[str, list[str]]:
        capsys.readouterr()
        assert models("list", "--json") == 0
        return {row["name"]: row["aliases"] for row in json.loads(capsys.readouterr().out)}

    assert models("promote", "1") == 0
    assert models("challenge", "2") == 0
    assert aliases() == {"one": ["champion"], "two": ["challenger"]}
    assert models("promote", "challenger") == 1
    assert "has not scored a disk here yet" in capsys.readouterr().err
    assert models("promote", "challenger", "--untried") == 0
    assert aliases() == {"one": [], "two": ["champion"]}
    assert models("rollback") == 0
    assert aliases() == {"one": ["champion"], "two": []}
    run = registry.version("2").run
    (card,) = (place.state.path / "artifacts").glob(f"{run}/**/CARD.md")
    card.write_text("better than it is")
    assert models("promote", "2") == 1
    assert "SHA256SUMS" in capsys.readouterr().err
    assert aliases()["one"] == ["champion"]


def test_predrain_up_takes_a_promotion_without_a_restart(bundle: Callable[..., Path], tmp_path: Path) -> None:
    import httpx2

    from tests.service.test_up import running, until

    state = tmp_path / "live"
    with running(state) as (process, url):

        def scoring() -> str | None:
            told = httpx2.get(f"{url}/api/v1/forecast").json()
            return told["bundle"] and told["bundle"]["name"]

        assert until(60, lambda: scoring() == "default")
        assert main(["models", "promote", str(bundle("new")), "--state", str(state)]) == 0
        assert until(30, lambda: scoring() == "new")
        assert main(["models", "rollback", "--state", str(state)]) == 0
        assert until(30, lambda: scoring() == "default")
        assert process.poll() is None


def test_the_doctor_looks_at_the_bundle_that_scores_and_at_the_one_on_trial(
    bundle: Callable[..., Path], models: Callable[..., int], place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    def told() -> str:
        capsys.readouterr()
        main(["doctor", "--json", "--state", str(place.state.path)])
        return {one["what"]: one["told"] for one in json.loads(capsys.readouterr().out)}["bundle"]

    assert told() == "default, its checksums hold"
    assert models("promote", str(bundle("one"))) == 0
    assert models("challenge", str(bundle("two"))) == 0
    assert told() == "one, its checksums hold, promoted here; two is on trial"
    (place.state.bundles / str(BundleStore(place.state.bundles).roles().champion) / "model.txt").write_text(
        "x"
    )
    assert "model.txt is not what SHA256SUMS says" in told()
