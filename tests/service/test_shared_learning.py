"""Where several workers share the readings, the fleet teaches as much as where one process scores all of them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from predrain.data.ids import DeviceId
from predrain.data.outcome import DriveFate, Outcome
from predrain.data.scorebook import Scorebook
from predrain.models.forecast.experience import FleetExperience
from predrain.service.app.application import Application
from predrain.service.app.roles import CONTROLLING, EVERYTHING, SERVING, SHARING, WORKING
from predrain.service.forecasting import model_succession
from predrain.service.forecasting.bundle_choice import BundledForecaster
from predrain.service.forecasting.fleet_experience import load_experience
from predrain.service.forecasting.scorer import RELEARN
from tests.service.conftest import shut, smart_reading, week_of
from tests.service.test_service_parts import Premises
from tests.service.test_worker import work

DAY = timedelta(days=1)
DISKS = [DeviceId(f"ST4000DM000_{serial}") for serial in "ABC"]


class Office(Premises):
    """Processes on one log and one store, of which the page keeps a scorebook."""

    def page(self, book: str = "page") -> Application:
        made = self.application(SERVING)
        scorebook = Scorebook(self.folder / f"{book}.sqlite")
        made.scorer.scorebook = scorebook
        self.books.append(scorebook)
        return made

    @property
    def books(self) -> list[Scorebook]:
        return self.__dict__.setdefault("_books", [])


@pytest.fixture
def office(tmp_path: Path, forecaster: BundledForecaster) -> Iterator[Office]:
    forecaster.learn_experience(FleetExperience())
    made = Office(tmp_path, forecaster)
    yield made
    for application in made.applications:
        shut(application)
    for book in made.books:
        book.close()
    forecaster.learn_experience(FleetExperience())


def live_through(office: Office, worker: Application, days: int) -> None:
    """A worker scores a quiet fleet for so many more days, and one disk dies at their end."""
    for _ in range(days):
        office.cluster.advance(DAY.total_seconds())
        worker.ingest([smart_reading(serial, office.cluster.now) for serial in "ABC"])
        work(worker)
    worker.store.add_outcome(Outcome(DISKS[0], office.cluster.now, DriveFate.FAILED, "ada"))


def test_a_page_learns_from_all_disks_that_workers_scored_and_workers_take_it_over(office: Office) -> None:
    worker, page = office.worker(), office.page()
    live_through(office, worker, 28)
    assert page.update_forecast_health()
    champion = page.deployed_models.champion
    assert champion is not None
    learned = load_experience(worker.store, champion.fingerprint)
    assert (learned.models["ST4000DM000"].drives, learned.models["ST4000DM000"].deaths) == (3, 1)
    assert page.health is not None
    assert page.health.comparison is not None
    assert page.health.comparison.failures == 1
    office.forecaster.learn_experience(FleetExperience())
    office.cluster.advance(RELEARN.total_seconds())
    worker.adopt_promoted_models()
    assert office.forecaster.experience == learned


def test_a_page_that_was_away_learns_the_same_as_one_that_looked_every_day(office: Office) -> None:
    worker, steady, late = office.worker(), office.page("steady"), office.page("late")
    for _ in range(3):
        live_through(office, worker, 4)
        assert steady.update_forecast_health()
    champion = steady.deployed_models.champion
    assert champion is not None
    assert late.update_forecast_health()
    told = [book.read(champion.fingerprint) for book in office.books]
    assert len(told[0]) == len(told[1]) > 0
    assert (told[0].day == told[1].day).all()
    assert (told[0].p == told[1].p).all()


def test_forecasts_of_an_older_bundle_are_not_counted_against_the_deployed_bundle(office: Office) -> None:
    page = office.page()
    model_succession.record_deployment(page.store, "an older bundle", office.cluster.now - 9 * DAY)
    worker = office.worker()
    for serial in "ABC":
        worker.ingest(week_of(serial, office.cluster.now))
    work(worker)
    assert page.update_forecast_health()
    champion = page.deployed_models.champion
    assert champion is not None
    days = set(office.books[0].read(champion.fingerprint).day.tolist())
    assert len(days) == 1, "the readings of the week before are of the older bundle's time"


def test_a_page_whose_bundle_is_not_the_one_that_scores_says_so_and_learns_nothing(office: Office) -> None:
    worker, page = office.worker(), office.page()
    work(worker)
    model_succession.record_deployment(page.store, "another bundle", office.cluster.now)
    assert not page.update_forecast_health()
    assert "promote one bundle on every machine" in page.scorer.troubles["watch"]


def test_a_page_looks_again_soon_while_no_worker_scores(office: Office) -> None:
    page = office.page()
    assert not page.update_forecast_health()
    assert page.scorer.troubles == {}


def test_a_scorebook_is_kept_where_the_page_is() -> None:
    assert [one.judges for one in (EVERYTHING, SHARING, SERVING)] == [True] * 3
    assert [one.judges for one in (CONTROLLING, WORKING)] == [False] * 2
