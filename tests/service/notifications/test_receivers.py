"""Messages to Slack, Teams, PagerDuty, Opsgenie and Alertmanager, over HTTP, held to the rules of their makers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from predrain.service.backup.secret_blanking import blank_secrets
from predrain.service.config.channels import make_message_routes, open_channels
from predrain.service.config.receiver_tables import AddressInTheClear
from predrain.service.config.secret_file import NoSecret
from predrain.service.config.settings import BadSettings, Settings
from predrain.service.notifications.alertmanager_alert import AlertmanagerRenderer
from predrain.service.notifications.cause import AlertCause, CausePart, Severity
from predrain.service.notifications.channel import NotDelivered
from predrain.service.notifications.message_texts import PageLinks
from predrain.service.notifications.notification_log import Message
from predrain.service.notifications.notifier import Notifier
from predrain.service.notifications.opsgenie_alert import OpsgenieRenderer
from predrain.service.notifications.pagerduty_event import PagerDutyRenderer
from predrain.service.notifications.receiver_channel import MessagePlace, MessageRenderer, ReceiverChannel
from predrain.service.notifications.slack_message import SlackRenderer
from predrain.service.notifications.teams_card import TeamsRenderer
from predrain.service.notifications.trial_message import send_test_message
from tests.service.notifications import receiver_rules
from tests.service.notifications.snapshots import NOW, Fleet
from tests.service.notifications.test_channels import a_message, clock
from tests.service.notifications.test_notifier import Kept, live
from tests.service.notifications.test_notifying_service import settings_of

KEY = "0123456789abcdef0123456789abcdef"
SECRET_PATH = "/services/T00/B00/sEcReTpath"
KINDS = ("slack", "teams", "pagerduty", "opsgenie", "alertmanager")


@dataclass
class Receiver:
    """A receiver that checks each body by the rules of its kind, and answers 400 to what breaks them."""

    kind: str
    status: int = 202
    headers: dict[str, str] = field(default_factory=dict)
    answer: bytes = b""
    hangs: bool = False
    goes_on: Event = field(default_factory=Event)
    """Ends an answer that hangs."""
    got: list[tuple[str, dict[str, str], Any]] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)

    def take(self, path: str, headers: dict[str, str], raw: bytes) -> int:
        body = json.loads(raw)
        self.got.append((path, headers, body))
        try:
            check_body(self.kind, path, body)
        except AssertionError as refused:
            self.broken.append(str(refused))
            return 400
        return self.status


def check_body(kind: str, path: str, body: Any) -> None:
    if kind in ("opsgenie", "alertmanager"):
        getattr(receiver_rules, f"check_{kind}")(path, body)
    else:
        getattr(receiver_rules, f"check_{kind}")(body)


@contextmanager
def serving(receiver: Receiver) -> Iterator[int]:
    """Serves on 127.0.0.1; gives its port."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers["Content-Length"]))
            if receiver.hangs:
                receiver.goes_on.wait(60)
                return
            self.send_response(receiver.take(self.path, dict(self.headers), raw))
            for name, value in receiver.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(receiver.answer)))
            self.end_headers()
            self.wfile.write(receiver.answer)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def receiver_settings(folder: Path, kind: str, port: int, more: str = "") -> str:
    """Settings with one receiver `KIND.ops` at `port`."""
    (folder / "url").write_text(f"http://127.0.0.1:{port}{SECRET_PATH}\n")
    (folder / "key").write_text(f"{KEY}\n")
    keys = {
        "slack": f'url_file = "{folder}/url"',
        "teams": f'url_file = "{folder}/url"',
        "pagerduty": f'key_file = "{folder}/key"\nurl = "http://127.0.0.1:{port}/v2/enqueue"',
        "opsgenie": f'key_file = "{folder}/key"\nurl = "http://127.0.0.1:{port}"\nteam = "storage"',
        "alertmanager": f'url = "http://127.0.0.1:{port}"',
    }
    return (
        '[service]\ncluster_name = "echo"\nexternal_url = "https://predrain.example.org"\n'
        f"[{kind}.ops]\nallow_private_address = true\n{keys[kind]}\n{more}\n"
    )


def open_receiver(settings: Settings) -> ReceiverChannel:
    (channel,) = open_channels(settings, clock)
    assert isinstance(channel, ReceiverChannel)
    return channel


@pytest.mark.parametrize("kind", KINDS)
def test_a_message_and_its_end_are_taken_by_the_rules_of_the_receiver(tmp_path: Path, kind: str) -> None:
    receiver = Receiver(kind)
    with serving(receiver) as port:
        channel = open_receiver(settings_of(tmp_path, receiver_settings(tmp_path, kind, port)))
        channel.deliver(a_message())
        channel.deliver(a_message(over=True))
    assert receiver.broken == []
    assert channel.name == f"{kind}.ops"
    said = json.dumps([body for _, _, body in receiver.got])
    assert "2 disks on stor-00 are bad" in said
    assert "Pending sectors rose" in said


@pytest.mark.parametrize("kind", KINDS)
def test_each_message_links_to_the_thing_and_to_the_halt_dialog(kind: str) -> None:
    (first, *_) = render(kind, a_message())
    said = json.dumps(first.body)
    assert "https://predrain.example.org/fleet?q=stor-00" in said
    assert "https://predrain.example.org/drains?ask=halt" in said


@pytest.mark.parametrize("kind", KINDS)
def test_a_message_has_no_links_where_the_page_has_no_address(kind: str) -> None:
    requests = RENDERERS[kind].render(a_message(), MessagePlace("echo", PageLinks("")))
    for request in requests:
        check_body(kind, request.path, request.body)
    assert "http" not in json.dumps([request.body for request in requests]).replace(
        "adaptivecards.io", ""
    ).replace('"$schema": "http://', "")


RENDERERS: dict[str, MessageRenderer] = {
    "slack": SlackRenderer(),
    "teams": TeamsRenderer(),
    "pagerduty": PagerDutyRenderer(KEY),
    "opsgenie": OpsgenieRenderer("storage"),
    "alertmanager": AlertmanagerRenderer(),
}


def render(kind: str, message: Message, cluster: str = "echo") -> tuple[Any, ...]:
    return RENDERERS[kind].render(message, MessagePlace(cluster, PageLinks("https://predrain.example.org")))


WORDS = st.text(st.characters(blacklist_categories=["Cs"]), max_size=40).map(
    lambda word: word * 200
) | st.text(st.characters(blacklist_categories=["Cs"]), min_size=1, max_size=200)


@given(
    title=WORDS, line=WORDS.filter(bool), todo=WORDS, host=st.none() | WORDS, cluster=WORDS,
    points=st.integers(1, 60), severity=st.sampled_from(Severity), over=st.booleans(),
)  # fmt: skip
def test_no_text_of_any_length_breaks_a_limit(
    title: str,
    line: str,
    todo: str,
    host: str | None,
    cluster: str,
    points: int,
    severity: Severity,
    over: bool,
) -> None:
    parts = tuple(CausePart(f"disk:{number}", line, severity) for number in range(points))
    cause = AlertCause(f"disks:{title}", title, parts, todo, "/fleet", host)
    message = Message("1", NOW, cause, frozenset(), over)
    for kind in KINDS:
        for request in render(kind, message, cluster):
            check_body(kind, request.path, request.body)


def test_no_name_mentions_anybody_at_slack() -> None:
    message = a_message(title="<!channel> & <https://evil.example|click>")
    body: Any = render("slack", message)[0].body
    assert "<!channel>" not in body["text"]
    formatted = [block["text"]["text"] for block in body["blocks"] if block["text"]["type"] == "mrkdwn"]
    assert formatted == [
        "<https://predrain.example.org/fleet?q=stor-00|Open in predrain> \N{MIDDLE DOT} "
        "<https://predrain.example.org/drains?ask=halt|Halt all drains>"
    ]


def test_points_that_a_card_cannot_hold_are_counted() -> None:
    points = tuple(
        CausePart(f"disk:{n}", f"{n:02d} " + "\N{SNOWMAN}" * 500, Severity.URGENT) for n in range(20)
    )
    message = replace(
        a_message(), cause=AlertCause("disks:x", "many", points, "", "/fleet"), news=frozenset()
    )
    body: Any = render("teams", message)[0].body
    rows = [row["inlines"][0]["text"] for row in body["attachments"][0]["content"]["body"]]
    shown = len(rows) - 2
    assert 0 < shown < 20
    assert rows[-1] == f"\N{BULLET} and {20 - shown} more lines on the page"


def pagerduty_events(message: Message) -> list[tuple[str, str]]:
    events: list[Any] = [request.body for request in render("pagerduty", message)]
    return [(one["event_action"], one["dedup_key"]) for one in events]


def of_severity(severity: Severity, **changes: Any) -> Message:
    message = a_message()
    points = tuple(replace(point, severity=severity) for point in message.cause.points)
    return replace(message, cause=replace(message.cause, points=points), **changes)


URGENT, NOTICE = (f"predrain/echo/{one}/disks:host:stor-00" for one in ("urgent", "notice"))


def test_a_cause_that_becomes_urgent_pages_anew_and_ends_the_incident_of_the_notice() -> None:
    assert pagerduty_events(of_severity(Severity.NOTICE)) == [("trigger", NOTICE), ("resolve", URGENT)]
    assert pagerduty_events(of_severity(Severity.URGENT)) == [("trigger", URGENT), ("resolve", NOTICE)]


def test_an_incident_is_acknowledged_and_resolved_under_the_key_that_it_began_with() -> None:
    assert pagerduty_events(of_severity(Severity.URGENT, acknowledged_by="jo")) == [("acknowledge", URGENT)]
    assert sorted(pagerduty_events(of_severity(Severity.URGENT, over=True))) == [
        ("resolve", NOTICE), ("resolve", URGENT),
    ]  # fmt: skip


def test_an_alert_of_opsgenie_is_created_acknowledged_and_closed_by_one_alias() -> None:
    created, closed_notice = render("opsgenie", of_severity(Severity.URGENT))
    (acknowledged,) = render("opsgenie", of_severity(Severity.URGENT, acknowledged_by="jo"))
    ended = render("opsgenie", of_severity(Severity.URGENT, over=True))
    alias = created.body["alias"]
    quoted = alias.replace("/", "%2F").replace(":", "%3A")
    assert (created.path, created.body["priority"], created.body["responders"][0]["name"]) == (
        "/v2/alerts", "P1", "storage",
    )  # fmt: skip
    assert acknowledged.path == f"/v2/alerts/{quoted}/acknowledge?identifierType=alias"
    assert acknowledged.body["user"] == "jo"
    assert f"/v2/alerts/{quoted}/close?identifierType=alias" in {one.path for one in ended}
    assert quoted not in closed_notice.path


def test_a_name_that_is_too_long_stays_one_of_its_own() -> None:
    one, other = (
        replace(a_message(), cause=replace(a_message().cause, key="x" * 400 + last)) for last in "ab"
    )
    keys = {pagerduty_events(message)[0][1] for message in (one, other)}
    assert len(keys) == 2
    assert {len(key) for key in keys} == {255}


def test_opsgenie_gets_its_key_in_a_header_alone(tmp_path: Path) -> None:
    receiver = Receiver("opsgenie")
    with serving(receiver) as port:
        open_receiver(settings_of(tmp_path, receiver_settings(tmp_path, "opsgenie", port))).deliver(
            a_message()
        )
    for _, headers, body in receiver.got:
        assert headers["Authorization"] == f"GenieKey {KEY}"
        assert KEY not in json.dumps(body)


def test_an_alertmanager_behind_a_proxy_gets_the_header_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "authorization").write_text("Bearer swordfish\n")
    receiver = Receiver("alertmanager")
    with serving(receiver) as port:
        more = f'authorization_file = "{tmp_path}/authorization"'
        open_receiver(settings_of(tmp_path, receiver_settings(tmp_path, "alertmanager", port, more))).deliver(
            a_message()
        )
    assert receiver.got[0][1]["Authorization"] == "Bearer swordfish"


# refusals


@pytest.mark.parametrize("kind", KINDS)
def test_a_refusal_says_the_receiver_s_reason_and_no_secret(tmp_path: Path, kind: str) -> None:
    receiver = Receiver(
        kind, 403, answer=f"no_service\x07 for {SECRET_PATH} with {KEY} http://x{SECRET_PATH}".encode()
    )
    with serving(receiver) as port:
        channel = open_receiver(settings_of(tmp_path, receiver_settings(tmp_path, kind, port)))
        with pytest.raises(NotDelivered) as refused:
            channel.deliver(a_message())
    said = str(refused.value)
    assert said.startswith(
        f"the receiver {kind}.ops at http://127.0.0.1:{port} answered 403; it must answer 2xx"
    )
    assert "no_service" in said
    assert "\x07" not in said
    secret = KEY if kind in ("pagerduty", "opsgenie") else SECRET_PATH if kind in ("slack", "teams") else None
    assert secret is None or secret not in said + repr(channel)


@pytest.mark.parametrize(
    ("status", "value", "pause"),
    [
        (429, "30", timedelta(seconds=30)),
        (503, "120", timedelta(minutes=2)),
        (429, format_datetime(NOW + timedelta(minutes=7), usegmt=True), timedelta(minutes=7)),
        (429, format_datetime(NOW - timedelta(minutes=7), usegmt=True), timedelta(0)),
        (429, "9" * 30, timedelta(hours=1)),
        (429, "soon", None),
        (429, "", None),
        (500, "30", None),
    ],
)
def test_the_pause_that_a_busy_receiver_asks_for_is_known(
    tmp_path: Path, status: int, value: str, pause: timedelta | None
) -> None:
    receiver = Receiver("slack", status, {"Retry-After": value})
    with serving(receiver) as port:
        channel = open_receiver(settings_of(tmp_path, receiver_settings(tmp_path, "slack", port)))
        with pytest.raises(NotDelivered) as refused:
            channel.deliver(a_message())
    assert refused.value.retry_after == pause


FAULTS = {
    "slack": (429, {"Retry-After": "240"}),
    "teams": (500, {}),
    "pagerduty": (403, {}),
    "opsgenie": (None, {}),  # it takes the request and never answers
    "alertmanager": (202, {}),
}


def test_receivers_that_are_busy_away_slow_or_refuse_hold_nobody_up_and_lose_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("predrain.service.notifications.http_sender.DEADLINE_SECONDS", 0.3)
    notes, fleet = Kept(), Fleet()
    fleet.sicken(3)
    with ExitStack() as closing:
        receivers, channels = {}, []
        for kind, (status, headers) in FAULTS.items():
            receivers[kind] = one = Receiver(kind, status or 202, dict(headers), hangs=status is None)
            closing.callback(one.goes_on.set)
            folder = tmp_path / kind
            folder.mkdir()
            port = closing.enter_context(serving(one))
            channels.append(open_receiver(settings_of(folder, receiver_settings(folder, kind, port))))
        notifier = Notifier(notes, channels)
        live(notifier, fleet, timedelta(minutes=3))
        assert [body[0]["labels"]["cause"] for _, _, body in receivers["alertmanager"].got][:1] == [
            "disks:host:stor-00"
        ]
        assert notifier.troubles.keys() == {f"{kind}.ops" for kind in FAULTS} - {"alertmanager.ops"}
        assert "answered 403" in notifier.troubles["pagerduty.ops"]
        assert "longer than 0.3 s" in notifier.troubles["opsgenie.ops"]
        assert len(receivers["slack"].got) == 1, "the pause that it asked for is not over"
        for kind in ("slack", "teams", "opsgenie"):
            receivers[kind].status, receivers[kind].hangs = 202, False
        before = {kind: len(one.got) for kind, one in receivers.items()}
        live(notifier, fleet, timedelta(minutes=15))
    assert notifier.troubles.keys() == {"pagerduty.ops"}
    for kind in ("slack", "teams", "opsgenie"):
        later = json.dumps([body for _, _, body in receivers[kind].got[before[kind] :]])
        assert "Pending sectors rose" in later, kind
        assert receivers[kind].broken == []


# the test message


@pytest.mark.parametrize(("kind", "actions"), [("slack", 1), ("teams", 1), ("alertmanager", 2)])
def test_a_test_leaves_nothing_open(tmp_path: Path, kind: str, actions: int) -> None:
    receiver = Receiver(kind)
    with serving(receiver) as port:
        channel = open_receiver(settings_of(tmp_path, receiver_settings(tmp_path, kind, port)))
        send_test_message(channel, NOW, "jo pressed the button")
    assert receiver.broken == []
    assert len(receiver.got) == actions
    assert "jo pressed the button" in json.dumps(receiver.got[0][2])


def test_a_test_incident_is_resolved_at_once(tmp_path: Path) -> None:
    receiver = Receiver("pagerduty")
    with serving(receiver) as port:
        channel = open_receiver(settings_of(tmp_path, receiver_settings(tmp_path, "pagerduty", port)))
        send_test_message(channel, NOW, "jo pressed the button")
    events = [(body["event_action"], body["dedup_key"]) for _, _, body in receiver.got]
    triggered = {key for action, key in events if action == "trigger"}
    assert len(triggered) == 1
    assert triggered <= {
        key for action, key in events[events.index(("trigger", *triggered)) :] if action == "resolve"
    }


# settings


def test_of_each_kind_there_may_be_several_with_routes_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "url").write_text("https://hooks.example.org/x")
    text = f'url_file = "{tmp_path}/url"\n'
    settings = settings_of(
        tmp_path,
        f'[slack.rack-a]\n{text}only_racks = ["a*"]\n[slack.all]\n{text}min_severity = "urgent"\n'
        f'[slack.elsewhere]\n{text}only_clusters = ["lab*"]\n',
    )
    assert [one.name for one in open_channels(settings, clock)] == ["slack.rack-a", "slack.all"]
    routes = make_message_routes(settings)
    assert (routes["slack.rack-a"].racks, routes["slack.all"].min_severity) == (("a*",), Severity.URGENT)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('[slack]\nurl_file = "x"', r"slack: a receiver has a name: write \[KIND\.NAME\]"),
        ("[slack.ops]", r"slack\.ops\.url_file"),
        ('[slack."Ops Room"]\nurl_file = "x"', "slack"),
        ('[slack.ops]\nurl_file = "x"\nurl = "https://x"', r"slack\.ops\.url"),
        ('[pagerduty.ops]\nkey_file = "x"\nurl = "https://x/?key=1"', r"pagerduty\.ops\.url"),
        ('[alertmanager.ops]\nurl = "file:///etc"', r"alertmanager\.ops\.url"),
    ],
)
def test_a_receiver_that_cannot_work_is_refused_at_the_start(tmp_path: Path, text: str, why: str) -> None:
    with pytest.raises(BadSettings, match=why):
        settings_of(tmp_path, text)


@pytest.mark.parametrize(
    "content", ["", "hooks.example.org/x", "https://exa mple.org/x", "ftp://example.org/x"]
)
def test_a_file_without_an_address_is_told_with_its_key_and_not_its_content(
    tmp_path: Path, content: str
) -> None:
    (tmp_path / "url").write_text(content)
    settings = settings_of(tmp_path, f'[slack.ops]\nurl_file = "{tmp_path}/url"')
    with pytest.raises(NoSecret, match=r"url_file of \[slack\.ops\]") as refused:
        list(open_channels(settings, clock))
    assert not content or content not in str(refused.value)


def test_no_secret_goes_out_without_tls_but_in_one_s_own_network(tmp_path: Path) -> None:
    text = receiver_settings(tmp_path, "pagerduty", 1).replace("allow_private_address = true", "")
    with pytest.raises(AddressInTheClear, match=r"\[pagerduty\.ops\] is http"):
        list(open_channels(settings_of(tmp_path, text), clock))


def test_variables_set_up_a_receiver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from predrain.service.config.settings import load_settings

    (tmp_path / "predrain.toml").write_text("")
    named = {"PREDRAIN_ALERTMANAGER__OPS__URL": "http://alertmanager:9093"}
    for name, value in named.items():
        monkeypatch.setenv(name, value)
    assert load_settings(tmp_path / "predrain.toml").alertmanager["ops"].url == "http://alertmanager:9093"


def test_config_show_and_a_repr_hold_no_secret(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from predrain.service.cli import main

    settings_of(tmp_path, receiver_settings(tmp_path, "pagerduty", 1))
    assert main(["config", "show", "--json", "--config", str(tmp_path / "predrain.toml")]) == 0
    shown = capsys.readouterr().out
    assert '"pagerduty.ops.key_file"' in shown
    assert not re.search(f"{KEY}|{SECRET_PATH}", shown)


def test_a_backup_blanks_a_password_in_the_address_of_a_receiver(tmp_path: Path) -> None:
    text = '[alertmanager.ops]\nurl = "http://jo:swordfish@alertmanager:9093"\n'
    assert "swordfish" not in blank_secrets(text, settings_of(tmp_path, text))
