"""Once a day one mail of everything: at its hour, once however often the service starts, and none about nothing."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from predrain.data.reading import Unreadable
from predrain.service.notifications.cause import AlertCause, CausePart, Severity
from predrain.service.notifications.channel import NotDelivered
from predrain.service.notifications.daily_digest import DailyDigest
from predrain.service.notifications.digest_text import Digest, DigestHour
from predrain.service.notifications.notifier import Notifier
from predrain.service.notifications.silences import Silence
from tests.service.notifications.snapshots import NOW, Fleet, device, host_of
from tests.service.notifications.test_channels import Post, a_mail, post_office
from tests.service.notifications.test_notifier import Kept, live

BERLIN = ZoneInfo("Europe/Berlin")
EVENING = datetime(2026, 11, 20, 18, 0, tzinfo=UTC)
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


@dataclass
class Letters:
    """A channel that takes digests, or refuses them while it is deaf."""

    taken: list[tuple[date, str, str]] = field(default_factory=list)
    tried: int = 0
    deaf: bool = False

    def send(self, digest: Digest, day: date, at: datetime) -> None:
        del at
        self.tried += 1
        if self.deaf:
            raise NotDelivered("nobody takes it")
        self.taken.append(
            (day, digest.format_subject("echo"), digest.format_text("https://predrain.example.org"))
        )


@dataclass
class Life:
    """A service whose clock goes on, and that may start again at any moment."""

    hour: DigestHour = field(default_factory=lambda: DigestHour(7))
    now: datetime = EVENING
    letters: Letters = field(default_factory=Letters)
    notes: Kept = field(default_factory=Kept)
    silences: tuple[Silence, ...] = ()

    def __post_init__(self) -> None:
        self.start()

    def start(self) -> None:
        self.daily = DailyDigest(self.notes, self.letters, self.hour)

    def live(self, time: timedelta, *standing: str, every: timedelta = 10 * MINUTE) -> None:
        end = self.now + time
        while self.now < end:
            self.now += every
            self.daily.send_due_digest([a_cause(key) for key in standing], self.silences, self.now)

    @property
    def subjects(self) -> list[str]:
        return [subject.removeprefix("[echo] daily: ") for _, subject, _ in self.letters.taken]


def a_cause(key: str) -> AlertCause:
    severity = Severity.URGENT if key.startswith("!") else Severity.NOTICE
    return AlertCause(key, f"{key} stands", (CausePart(key, "It is so.", severity),), "Look.", "/")


def test_a_digest_says_what_is_new_what_is_open_and_what_is_over() -> None:
    life = Life()
    life.live(DAY, "fan", "!disk")
    life.live(DAY, "!disk", "drift")
    assert life.subjects == ["2 new", "1 new, 1 open, 1 over"]
    assert life.letters.taken[1][2] == (
        "Since 21 Nov 07:00 UTC.\n\nNew:\n- notice: drift stands\n\nStill open:\n"
        "- urgent: !disk stands (since 20 Nov 18:10 UTC)\n\nOver:\n- fan stands (gone 21 Nov 18:10 UTC)\n\n"
        "https://predrain.example.org/alerts\n"
        "Halt all drains (the page asks first): https://predrain.example.org/drains?ask=halt\n"
    )


def test_a_cause_that_came_and_went_between_two_digests_is_reported_as_over() -> None:
    life = Life()
    life.live(HOUR, "fan")
    life.live(DAY)
    assert life.subjects == ["1 over"]
    assert "fan stands (came 20 Nov 18:10 UTC, gone 20 Nov 19:10 UTC)" in life.letters.taken[0][2]


def test_about_nothing_there_is_no_digest() -> None:
    life = Life()
    life.live(7 * DAY, every=HOUR)
    assert life.letters.taken == []
    life.live(DAY, "fan")
    life.live(DAY)
    life.live(7 * DAY, every=HOUR)
    assert life.subjects == ["1 new", "1 over"]


def test_a_first_start_sends_none_before_the_hour_has_come() -> None:
    life = Life(now=datetime(2026, 11, 20, 9, tzinfo=UTC))
    life.live(21 * HOUR, "fan")
    assert life.letters.taken == []
    life.live(HOUR, "fan")
    assert [day for day, _, _ in life.letters.taken] == [date(2026, 11, 21)]


@given(st.lists(st.integers(1, 26 * 60), max_size=30))
def test_however_often_it_starts_a_day_has_one_digest(starts: list[int]) -> None:
    life = Life()
    for minutes in starts:
        life.live(timedelta(minutes=minutes), "fan", every=timedelta(minutes=minutes))
        life.start()
    days = [day for day, _, _ in life.letters.taken]
    assert days == sorted(set(days))


def test_a_service_that_was_down_at_the_hour_sends_only_the_last_digest_when_it_is_up() -> None:
    life = Life()
    life.live(HOUR, "fan")
    life.now += 3 * DAY
    life.start()
    life.live(HOUR, "fan")
    assert [day for day, _, _ in life.letters.taken] == [date(2026, 11, 23)]


def test_a_digest_that_is_not_taken_is_tried_again_and_loses_nothing() -> None:
    life = Life()
    life.letters.deaf = True
    life.live(15 * HOUR, "fan", every=MINUTE)
    assert 10 <= life.letters.tried <= 13
    assert life.daily.trouble == "nobody takes it"
    life.letters.deaf = False
    life.start()
    life.live(HOUR)
    assert life.subjects == ["1 over"]
    assert life.daily.trouble is None


def test_a_silenced_cause_is_in_no_digest_until_the_silence_ends() -> None:
    life = Life(silences=(Silence("s", EVENING + 5 * DAY, "jo", "known", cause="fan"),))
    life.live(DAY, "fan")
    assert life.letters.taken == []
    life.silences = ()
    life.live(DAY, "fan")
    assert life.subjects == ["1 new"]


@pytest.mark.slow
def test_it_calls_nothing_over_that_cannot_be_seen() -> None:
    notes, letters = Kept(), Letters()
    fleet = Fleet(silent={host_of(3): NOW - timedelta(hours=3)})
    fleet.unread[device(13)] = Unreadable(NOW, "no answer within 30 s")

    def lives(hours: int) -> None:
        live(Notifier(notes, [], DailyDigest(notes, letters, DigestHour(7))), fleet, timedelta(hours=hours))

    lives(4)
    fleet.silent[host_of(13)] = fleet.now
    lives(23)
    fleet.settled = False
    lives(2)
    assert [subject for _, subject, _ in letters.taken] == [
        "[echo] daily: 2 new", "[echo] daily: 1 new, 2 open",
    ]  # fmt: skip


def test_a_silence_over_something_old_does_not_make_it_over() -> None:
    life = Life()
    life.live(DAY, "fan")
    life.silences = (Silence("s", EVENING + 5 * DAY, "jo", "known", cause="fan"),)
    life.live(DAY, "fan")
    assert life.subjects == ["1 new"]


@pytest.mark.parametrize(
    ("at", "day"),
    [
        ("2026-11-20T05:59:00+00:00", "2026-11-19"),
        ("2026-11-20T06:00:00+00:00", "2026-11-20"),
        ("2026-06-20T04:59:00+00:00", "2026-06-19"),
        ("2026-06-20T05:00:00+00:00", "2026-06-20"),
    ],
)
def test_the_hour_is_that_of_the_zones_clock_in_winter_and_summer(at: str, day: str) -> None:
    assert DigestHour(7, BERLIN).find_due_day(datetime.fromisoformat(at)) == date.fromisoformat(day)


@given(st.integers(0, 23), st.sampled_from(["2026-03-29", "2026-10-25"]))
def test_a_night_in_which_clocks_change_has_one_digest_whatever_the_hour(hour: int, night: str) -> None:
    began = datetime.fromisoformat(night).replace(tzinfo=UTC) - DAY
    days = [DigestHour(hour, BERLIN).find_due_day(began + 10 * MINUTE * step) for step in range(3 * 144)]
    assert days == sorted(days)
    assert {b - a for a, b in pairwise(days)} <= {timedelta(0), DAY}


def test_a_digest_is_a_mail_that_the_same_day_has_once() -> None:
    post, life = Post(), Life()
    with post_office(post) as port:
        mail = a_mail(port)
        life.daily = DailyDigest(life.notes, mail, life.hour)
        life.live(DAY, "!disk")
        again = DailyDigest(Kept(), mail, life.hour)
        for at in (EVENING, EVENING + 14 * HOUR):
            again.send_due_digest([a_cause("!disk")], (), at)
    first, second = post.kept
    assert first["Subject"].strip() == "[echo] daily: 1 new"
    assert "- urgent: !disk stands" in first.get_content()
    assert first["Message-ID"] == second["Message-ID"]
