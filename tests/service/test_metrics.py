"""The metrics for Prometheus: by host and by model, of drains under way, and of the rest when the store is away."""

from __future__ import annotations

import re
from dataclasses import fields, replace
from datetime import timedelta
from pathlib import Path

import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from predrain.collector.delivery.collector_metrics import CollectorTally, format_metrics
from predrain.collector.delivery.spool_contents import SpoolStatus
from predrain.data.ids import DeviceId, HostName
from predrain.data.reading import Reading, Smart, Unreadable
from predrain.data.store.store_faults import StoreAway
from predrain.data.unreadable import UnreadableCause
from predrain.service.app.application import Application
from predrain.service.rest.metrics import CATALOGUE, registry_of
from predrain.service.rest.metrics.fleet_metrics import merge_rare_series
from predrain.service.rest.metrics.metric_family import MOST, OTHER
from tests.service.conftest import NOON, Place, shut, smart_reading, week_of
from tests.service.notifications.test_notifier import Ear
from tests.service.test_worker import work

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "metrics.md"
Series = dict[tuple[str, ...], float]


def scraped(application: Application) -> dict[str, Series]:
    """Every series by name and label values."""
    text = generate_latest(registry_of(application)).decode()
    return {
        family.name: {tuple(s.labels.values()): s.value for s in family.samples}
        for family in text_string_to_metric_families(text)
    }


def on(host: str, reading: Reading) -> Reading:
    return replace(reading, host=HostName(host))


def silent(serial: str, host: str, why: str, cause: UnreadableCause = UnreadableCause.UNKNOWN) -> Reading:
    seen = Unreadable(NOON - timedelta(hours=5), why, cause)
    return Reading(DeviceId(f"ST4000DM000_{serial}"), HostName(host), NOON, NOON, seen)


def test_bad_disks_are_counted_by_host_and_model_and_not_named(application: Application) -> None:
    application.ingest([on("stor-07", one) for one in week_of("A", pending=400)])
    application.ingest([on("stor-08", one) for one in week_of("B")])
    work(application)
    told = scraped(application)
    assert told["predrain_bad_devices"] == {("stor-07", "ST4000DM000"): 1}
    assert told["predrain_model_devices"] == {("ST4000DM000",): 2}


def test_a_host_is_as_old_as_its_newest_reading(application: Application) -> None:
    application.ingest([on("stor-07", smart_reading("A", NOON - timedelta(hours=3)))])
    application.ingest([on("stor-07", smart_reading("B", NOON - timedelta(hours=1)))])
    application.ingest([on("stor-08", smart_reading("C", NOON - timedelta(hours=9)))])
    work(application)
    told = scraped(application)
    assert told["predrain_host_reading_age_seconds"] == {("stor-07",): 3600, ("stor-08",): 9 * 3600}
    assert told["predrain_hosts"] == {(): 2}


def test_a_host_that_was_not_heard_of_for_a_week_is_gone_where_no_cluster_says_otherwise(
    application: Application,
) -> None:
    application.ingest([on("stor-07", smart_reading("A", NOON - timedelta(days=8)))])
    application.ingest([on("stor-08", smart_reading("B"))])
    work(application)
    assert scraped(application)["predrain_hosts"] == {(): 1}


def test_a_host_without_smartctl_is_told_apart_from_disks_that_do_not_answer(
    application: Application,
) -> None:
    application.ingest(
        [
            silent("A", "stor-07", "not found", UnreadableCause.TOOL_MISSING),
            silent("B", "stor-08", "no answer in 60 s", UnreadableCause.TIMEOUT),
        ]
    )
    work(application)
    told = scraped(application)
    assert told["predrain_host_devices_without_smartctl"] == {("stor-07",): 1}
    assert told["predrain_host_unreadable_devices"] == {("stor-08",): 1}
    assert told["predrain_longest_unreadable_seconds"] == {(): 5 * 3600}


def test_hot_disks_are_counted_by_host(application: Application) -> None:
    hot = smart_reading("A")
    assert isinstance(hot.seen, Smart)
    application.ingest([replace(hot, seen=replace(hot.seen, temperature_c=58)), smart_reading("B")])
    work(application)
    assert scraped(application)["predrain_hot_devices"] == {("stor-01", ""): 1}


@pytest.mark.slow
def test_a_sender_that_invents_hosts_makes_no_more_series_than_the_page_says(
    application: Application,
) -> None:
    application.ingest([on(f"invented-{n}", silent(f"S{n}", f"h{n}", "no answer")) for n in range(MOST + 50)])
    work(application)
    told = scraped(application)
    assert len(told["predrain_host_unreadable_devices"]) == MOST
    assert told["predrain_host_unreadable_devices"][(OTHER,)] == 51
    assert len(told["predrain_host_reading_age_seconds"]) == MOST
    assert told["predrain_hosts"] == {(): MOST + 50}


def test_the_rest_is_counted_as_one_and_nothing_is_lost() -> None:
    from collections import Counter

    counted = Counter({f"model-{n}": n + 1 for n in range(2 * MOST)})
    shown = merge_rare_series(counted)
    assert len(shown) == MOST
    assert sum(shown.values()) == counted.total()


def test_the_metrics_count_messages_per_channel_and_show_a_failing_channel_as_a_broken_part(
    place: Place,
) -> None:
    heard, deaf = Ear("mail"), Ear("webhook", deaf=True)
    application = place.application(channels=[heard, deaf])
    application.start()
    application.ingest(week_of("A", passed=False))
    work(application)
    for _ in range(3):
        application.clock.sleep(60)
        application.step_telling()
    told = scraped(application)
    assert told["predrain_notifications_sent"] == {("mail",): 1, ("webhook",): 0}
    assert told["predrain_notifications_failed"]["webhook",] >= 1
    assert told["predrain_last_notification_age_seconds"].keys() == {("mail",)}
    assert (told["predrain_fault"]["mail",], told["predrain_fault"]["webhook",]) == (0, 1)
    shut(application)


def test_the_lag_is_how_long_the_last_readings_waited(application: Application) -> None:
    application.ingest(week_of("A"))
    application.clock.sleep(90)
    application.step_worker()
    assert scraped(application)["predrain_worker_lag_seconds"] == {(): 90}
    application.step_worker()
    assert scraped(application)["predrain_worker_lag_seconds"] == {(): 0}


def test_without_its_store_a_service_still_says_what_is_broken(
    application: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert scraped(application)["predrain_store_up"] == {(): 1}

    def away() -> None:
        raise StoreAway("PostgreSQL does not answer")

    monkeypatch.setattr(application, "get_snapshot", away)
    application.faults["worker"] = "PostgreSQL does not answer"
    told = scraped(application)
    assert told["predrain_store_up"] == {(): 0}
    assert told["predrain_fault"]["worker",] == 1
    assert told["predrain_ready"] == {(): 1}
    assert "predrain_devices" not in told


def test_the_page_and_the_code_name_the_same_metrics() -> None:
    families = [family for section in CATALOGUE.values() for family in section]
    rows = {
        f"| `{one.series_name}` | {'counter' if one.counts else 'gauge'} | "
        f"{', '.join(f'`{label}`' for label in one.labels)} | {one.bound} | {one.told} |"
        for one in families
    }
    standing = SpoolStatus(**{field.name: 1 for field in fields(SpoolStatus)})
    kept = CollectorTally(**{**{field.name: 1 for field in fields(CollectorTally)}, "spool": standing})  # type: ignore[arg-type]
    collectors = format_metrics(kept, "stor-01")
    shown = PAGE.read_text().splitlines()
    assert {row for row in shown if row.startswith("| `predrain_") and "_collector_" not in row} == rows
    named = {row.split("`")[1]: row for row in shown if row.startswith("| `predrain_collector_")}
    told = dict(re.findall(r"# HELP (\S+) (.*)", collectors))
    assert named.keys() == told.keys()
    assert all(named[name].endswith(f"| {words} |") for name, words in told.items())


def test_nothing_is_told_that_the_catalogue_does_not_have(application: Application) -> None:
    application.ingest(week_of("A", pending=400))
    work(application)
    application.update_forecast_health()
    known = {family.name for section in CATALOGUE.values() for family in section}
    assert {name for name in scraped(application) if name.startswith("predrain_")} <= known
