"""The way from a reading to a message in an application on real files, and causes and silences over REST."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from predrain.service.app.application import Application
from predrain.service.cli import main
from predrain.service.config.secret_file import NoAuthority, NoSecret
from predrain.service.config.settings import Settings, load_settings
from predrain.service.forecasting.forecast_health import Concern, ForecastHealth
from predrain.service.forecasting.forecast_health import ForecastFault as Doubt
from predrain.service.processes.up import _build_notification_channels
from tests.service.conftest import Place, Serve, Site, shut, smart_reading, week_of
from tests.service.notifications.test_channels import Post, post_office
from tests.service.notifications.test_notifier import Ear
from tests.service.test_worker import work


@pytest.fixture
def ear() -> Ear:
    return Ear()


@pytest.fixture
def told(place: Place, ear: Ear, serve: Serve) -> Iterator[Site]:
    """Yield an application with one bad disk over HTTP, whose one channel is `ear`."""
    application = place.application(channels=[ear])
    application.start()
    application.ingest(week_of("A", passed=False))
    application.ingest([smart_reading("B")])
    work(application)
    yield serve(application)
    shut(application)


def pass_time(
    site: Site, minutes: int, look: Callable[[Application], None] = Application.step_telling
) -> None:
    for _ in range(minutes):
        site.application.clock.sleep(60)
        look(site.application)


def test_a_disk_that_turns_bad_is_told_once(told: Site, ear: Ear) -> None:
    pass_time(told, 30)
    (message,) = ear.heard
    assert message.cause.title == "ST4000DM000_A on stor-01 is bad"
    assert "The drive's own verdict is FAILED." in message.cause.points[0].line


@pytest.mark.slow
def test_hosts_are_not_called_silent_for_what_the_worker_does_not_take(told: Site, ear: Ear) -> None:
    told.application.faults["worker"] = "The bundle is damaged."
    pass_time(told, 300)
    assert [message.cause.title for message in ear.heard] == [
        "ST4000DM000_A on stor-01 is bad", "predrain's worker does not work",
    ]  # fmt: skip


def test_a_person_who_says_that_the_disk_is_gone_ends_it_and_who_takes_it_back_does_not(told: Site) -> None:
    said = "/api/v1/devices/ST4000DM000_A/outcome"
    for fate, causes in (("removed", 0), ("cleared", 1), ("replaced", 0)):
        told.application.clock.sleep(60)
        told.client.post(said, json={"fate": fate}, headers=told.acting)
        assert len(told.client.get("/api/v1/causes").json()["items"]) == causes


def test_a_start_on_the_same_files_tells_nothing_again(told: Site, ear: Ear, place: Place) -> None:
    pass_time(told, 5)
    told.application.stop()
    again = place.application(channels=[ear])
    for _ in range(5):
        place.clock.sleep(60)
        again.step_telling()
    shut(again)
    assert len(ear.heard) == 1


def test_causes_are_shown_with_their_silences(told: Site) -> None:
    silence = {"hours": 2, "reason": "being swapped", "name": "disk:ST4000DM000_A"}
    made = told.client.post("/api/v1/silences", json=silence, headers=told.acting)
    assert made.status_code == 201
    (cause,) = told.client.get("/api/v1/causes").json()["items"]
    assert (cause["key"], cause["severity"]) == ("disks:host:stor-01", "urgent")
    assert [point["silence"] for point in cause["points"]] == [made.json()["id"]]


def test_a_silenced_cause_is_not_sent_until_the_silence_is_lifted(told: Site, ear: Ear) -> None:
    silence = {"hours": 2, "reason": "being swapped", "host": "stor-*"}
    id_ = told.client.post("/api/v1/silences", json=silence, headers=told.acting).json()["id"]
    pass_time(told, 30)
    assert ear.heard == []
    assert told.client.delete(f"/api/v1/silences/{id_}", headers=told.acting).status_code == 204
    pass_time(told, 2)
    assert len(ear.heard) == 1
    assert told.client.get("/api/v1/silences").json()["items"] == []


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"hours": 2, "reason": "all of it"}, 422),
        ({"hours": 0, "reason": "x", "host": "a"}, 422),
        ({"hours": 24 * 30 + 1, "reason": "nobody wants to hear of it", "host": "a"}, 422),
        ({"hours": 2, "reason": "", "host": "a"}, 422),
        ({"hours": 2, "reason": "x", "hosts": "a"}, 422),
    ],
)
def test_a_silence_without_end_reason_or_object_is_refused(
    told: Site, body: dict[str, object], status: int
) -> None:
    assert told.client.post("/api/v1/silences", json=body, headers=told.acting).status_code == status


def test_a_doubt_about_the_forecast_is_a_cause_with_its_cure(told: Site) -> None:
    doubt = Concern(
        Doubt.DRIFT, told.application.clock.now(), ("ST4000DM000",), "Drives have changed.", "Train again."
    )
    told.application.scorer.health = ForecastHealth(told.application.clock.now(), concerns=(doubt,))
    *_, cause = told.client.get("/api/v1/causes").json()["items"]
    assert (cause["key"], cause["severity"], cause["action"]) == ("forecast:drift", "notice", "Train again.")
    assert (cause["points"][0]["sentence"], cause["path"]) == ("Drives have changed.", "/forecast")


def previewed(site: Site, **patterns: str) -> Any:
    answer = site.client.get("/api/v1/silences/preview", params=patterns)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_a_preview_names_the_points_and_the_disks_and_silences_nothing(told: Site, ear: Ear) -> None:
    found = previewed(told, host="stor-*")
    assert [(one["cause"], one["name"]) for one in found["points"]] == [
        ("disks:host:stor-01", "disk:ST4000DM000_A")
    ]
    assert (found["total_points"], found["disks"], found["total_disks"]) == (
        1, ["ST4000DM000_A", "ST4000DM000_B"], 2,
    )  # fmt: skip
    pass_time(told, 5)
    assert told.client.get("/api/v1/silences").json()["items"] == []
    assert len(ear.heard) == 1


def test_a_preview_for_one_severity_names_only_disks_with_such_a_point(told: Site) -> None:
    assert previewed(told, host="stor-*", severity="urgent")["disks"] == ["ST4000DM000_A"]
    found = previewed(told, host="stor-*", severity="notice")
    assert (found["total_points"], found["total_disks"]) == (0, 0)


def test_a_preview_of_everything_is_refused_as_the_silence_would_be(told: Site) -> None:
    for patterns in ({}, {"severity": "urgent"}):
        assert told.client.get("/api/v1/silences/preview", params=patterns).status_code == 422
    assert told.client.get("/api/v1/silences/preview", params={"host": "x" * 5000}).status_code == 422


def test_a_silence_is_what_its_preview_said(told: Site, ear: Ear) -> None:
    patterns = {"host": "stor-01", "severity": "urgent"}
    (point,) = previewed(told, **patterns)["points"]
    body = {"hours": 2, "reason": "being swapped", **patterns}
    made = told.client.post("/api/v1/silences", json=body, headers=told.acting).json()
    assert (made["severity"], made["rack"]) == ("urgent", "")
    (cause,) = told.client.get("/api/v1/causes").json()["items"]
    assert [(one["name"], one["silence"]) for one in cause["points"]] == [(point["name"], made["id"])]
    pass_time(told, 5)
    assert ear.heard == []
    assert told.client.delete(f"/api/v1/silences/{made['id']}", headers=told.acting).status_code == 204
    assert told.client.get("/api/v1/silences").json()["items"] == []


def test_receivers_are_listed_with_their_troubles_and_tested_one_by_one(told: Site, ear: Ear) -> None:
    (listed,) = told.client.get("/api/v1/receivers").json()["items"]
    assert (listed["name"], listed["min_severity"], listed["problem"]) == ("ear", "notice", None)
    done = told.client.post("/api/v1/receivers/ear/test", json={}, headers=told.acting).json()
    assert done == {"name": "ear", "delivered": True, "problem": None}
    assert [message.cause.key for message in ear.heard] == ["test"]
    ear.deaf = True
    done = told.client.post("/api/v1/receivers/ear/test", json={}, headers=told.acting).json()
    assert (done["delivered"], done["problem"]) == (False, "the ear is deaf")


def test_a_test_message_needs_a_token_that_may_act_and_a_receiver_that_is_there(told: Site, ear: Ear) -> None:
    assert told.client.post("/api/v1/receivers/ear/test", json={}).status_code == 401
    assert told.client.post("/api/v1/receivers/ear/test", json={}, headers=told.ingesting).status_code == 403
    assert told.client.get("/api/v1/receivers/ear/test", headers=told.acting).status_code == 405
    assert told.client.post("/api/v1/receivers/eye/test", json={}, headers=told.acting).status_code == 404
    assert ear.heard == []


def test_the_command_line_previews_silences_and_tests_receivers(
    told: Site, ear: Ear, place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    place.state.url.write_text(str(told.client.base_url) + "\n")

    def said(*words: str, code: int = 0) -> str:
        assert main([*words, "--state", str(place.state.path)]) == code
        return capsys.readouterr().out

    shown = said("silence", "preview", "--host", "stor-*", "--severity", "urgent")
    assert shown.startswith("1 point of present causes:\n  - urgent: ")
    assert shown.endswith("1 disk about which no message would be sent:\n  - ST4000DM000_A\n")
    assert said("receiver", "list") == "ear (notice): 0 sent, 0 failed\n"
    assert said("receiver", "test") == "ear took the test message\n"
    ear.deaf = True
    assert said("receiver", "test", "ear", code=1) == "ear did not take it: the ear is deaf\n"


def test_silencing_needs_a_token_that_may_act(told: Site) -> None:
    body = {"hours": 2, "reason": "x", "host": "a"}
    assert told.client.post("/api/v1/silences", json=body).status_code == 401
    assert told.client.post("/api/v1/silences", json=body, headers=told.ingesting).status_code == 403
    assert told.client.delete("/api/v1/silences/none", headers=told.acting).status_code == 404


def test_the_digest_of_the_settings_is_sent_at_its_hour_over_starts(place: Place, tmp_path: Path) -> None:
    post = Post()
    with post_office(post) as port:
        settings = settings_of(
            tmp_path,
            f'[mail]\nhost = "127.0.0.1"\nport = {port}\nsecurity = "none"\nsender = "p@example.org"\n'
            'to = ["ops@example.org"]\ndigest_hour = 14\ntime_zone = "Europe/Berlin"\n',
        )
        digest = settings.mail.make_digest_factory("echo", "")
        for hours in (0, 0.9, 0.2, 0.5):  # from noon by UTC, that is one o'clock
            place.clock.sleep(3600 * hours)
            application = place.application(digest=digest)
            assert application.has_channels
            application.halt("somebody looks", "jo")
            application.step_telling()
            shut(application)
    assert [mail["Subject"].strip() for mail in post.kept] == ["[echo] daily: 1 new"]


def test_a_channel_that_fails_is_a_trouble_of_the_service(told: Site, ear: Ear) -> None:
    ear.deaf = True
    pass_time(told, 3)
    assert told.application.troubles["ear"] == "the ear is deaf"


def test_the_command_line_shows_causes_and_silences_them(
    told: Site, place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    place.state.url.write_text(str(told.client.base_url) + "\n")

    def said(*words: str) -> str:
        assert main([*words, "--state", str(place.state.path)]) == 0
        return capsys.readouterr().out

    assert said("causes").startswith("urgent: ST4000DM000_A on stor-01 is bad    (disks:host:stor-01)\n  - ")
    made = said("silence", "add", "--host", "stor-01", "--hours", "8", "--reason", "firmware update")
    id_ = made.partition(":")[0]
    assert "host stor-01 until 2026-03-10 20:00Z" in made
    assert made in said("silence", "list")
    assert " (silenced)\n" in said("causes")
    said("silence", "expire", id_)
    assert said("silence", "list") == "no silences\n"


def settings_of(folder: Path, text: str) -> Settings:
    file = folder / "predrain.toml"
    file.write_text(text)
    return load_settings(file, {})


def test_settings_make_the_channels(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("shared\n")
    settings = settings_of(
        tmp_path,
        '[service]\nexternal_url = "https://predrain.example.org"\n'
        '[mail]\nhost = "mail.example.org"\nsender = "predrain@example.org"\nto = ["ops@example.org"]\n'
        f'[webhook]\nurl = "https://hooks.example.org/x"\nsecret_file = "{tmp_path}/secret"\n',
    )
    assert [(one.name, one.min_severity) for one in _build_notification_channels(settings)] == [
        ("mail", "urgent"),
        ("webhook", "notice"),
    ]
    assert _build_notification_channels(settings_of(tmp_path, "")) == ()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('[mail]\nhost = "a"', "host needs sender and to"),
        ('[mail]\nuser = "a"', "set user and password_file together"),
        (
            '[mail]\ntime_zone = "Berlin"',
            "time_zone Berlin is not known on this machine: take a name such as Europe",
        ),
        ("[mail]\ndigest_hour = 24", "mail.digest_hour"),
        ('[webhook]\nurl = "https://a"', "url needs secret_file"),
        ('[webhook]\nurl = "file:///etc/passwd"', "webhook.url"),
        ('[webhook]\nurl = "https://[oncall"', "url is no address"),
        ('[webhook]\nurl = "https://oncall:99999/"', "url is no address"),
        ('[webhook]\nurl = "https://oncall..example.org/"', "url is no address"),
        ('[webhook]\nurl = "https://oncall/caf\u00e9"', "url is no address"),
    ],
)
def test_settings_that_cannot_work_are_refused_at_the_start(tmp_path: Path, text: str, why: str) -> None:
    from predrain.service.config.settings import BadSettings

    with pytest.raises(BadSettings, match=why):
        settings_of(tmp_path, text)


def test_a_secret_that_is_not_there_is_told_with_its_key(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, f'[webhook]\nurl = "https://a"\nsecret_file = "{tmp_path}/none"\n')
    with pytest.raises(NoSecret, match=r"secret_file of \[webhook\]"):
        _build_notification_channels(settings)


OF_TABLES = {
    "mail": 'host = "a"\nsender = "a@b"\nto = ["a@b"]',
    "webhook": 'url = "https://a"\nsecret_file = "{secret}"',
    "oidc": 'issuer = "https://a"\nclient_id = "a"\nread = ["*"]',
}


@pytest.mark.parametrize("table", OF_TABLES)
@pytest.mark.parametrize("content", [None, "no certificate"])
def test_an_authority_that_cannot_be_used_is_told_with_its_key_at_the_start(
    tmp_path: Path, table: str, content: str | None
) -> None:
    ca, secret = tmp_path / "ca.pem", tmp_path / "secret"
    secret.write_text("a secret")
    if content is not None:
        ca.write_text(content)
    keys = OF_TABLES[table].format(secret=secret)
    text = f'[service]\nexternal_url = "https://b"\n[{table}]\n{keys}\nca = "{ca}"\n'
    settings = settings_of(tmp_path, text)

    def begin() -> None:
        _build_notification_channels(settings)
        settings.oidc.make_provider("https://b/sign-in/return")

    with pytest.raises(NoAuthority, match=rf"{ca} cannot be used .*give ca of \[{table}\] a PEM file"):
        begin()
