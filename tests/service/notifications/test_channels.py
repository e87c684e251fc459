"""Messages by mail and webhook, to real servers of the test's own."""

from __future__ import annotations

import hashlib
import hmac
import json
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from email import message_from_bytes, policy
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
import trustme
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult, Envelope

from predrain.service.notifications import find_alert_causes
from predrain.service.notifications.cause import AlertCause, CausePart, Severity
from predrain.service.notifications.channel import NotDelivered
from predrain.service.notifications.daily_digest import DailyDigest
from predrain.service.notifications.digest_text import DigestHour
from predrain.service.notifications.mail_channel import MailChannel
from predrain.service.notifications.notification_log import Message
from predrain.service.notifications.notifier import Notifier
from predrain.service.notifications.webhook_channel import WebhookChannel
from tests.ports import hold_port
from tests.service.notifications.snapshots import NOW, Fleet, device
from tests.service.notifications.test_notifier import Kept, live

SECRET = b"a secret of some length"


def a_message(*, over: bool = False, title: str | None = None) -> Message:
    fleet = Fleet()
    fleet.sicken(3, 7)
    (cause,) = find_alert_causes(fleet.snapshot())
    cause = replace(cause, title=title or cause.title)
    return Message("0123456789abcdef", NOW, cause, cause.names - {f"disk:{device(3)}"}, over)


# mail


@dataclass
class Post:
    """A mail server that keeps what it is given, or refuses it."""

    kept: list[EmailMessage] = field(default_factory=list)
    answer: str = "250 OK"
    refused: dict[str, str] = field(default_factory=dict)
    """Addresses that it does not take mails for, each with what it says."""
    went_to: list[list[str]] = field(default_factory=list)

    async def handle_RCPT(
        self, _server: object, _session: object, envelope: Envelope, address: str, _options: object
    ) -> str:
        if address in self.refused:
            return self.refused[address]
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, _server: object, _session: object, envelope: Envelope) -> str:
        assert isinstance(envelope.content, bytes)
        if self.answer.startswith("250"):
            self.kept.append(message_from_bytes(envelope.content, policy=policy.default))
            self.went_to.append(list(envelope.rcpt_tos))
        return self.answer


@contextmanager
def post_office(post: Post, tls: ssl.SSLContext | None = None, **options: Any) -> Iterator[int]:
    port = hold_port()

    class Office(Controller):
        def factory(self) -> SMTP:
            return SMTP(post, tls_context=tls, require_starttls=tls is not None, **options)

    office = Office(post, hostname="127.0.0.1", port=port)
    office.start()
    try:
        yield port
    finally:
        office.stop()


def a_mail(port: int, **changes: Any) -> MailChannel:
    mail = MailChannel("127.0.0.1", port, "none", "predrain@example.org", ("ops@example.org", "jo@example.org"), "echo",
                "https://predrain.example.org")  # fmt: skip
    return replace(mail, **changes)


def test_a_mail_says_what_why_how_sure_what_to_do_and_where() -> None:
    post = Post()
    with post_office(post) as port:
        a_mail(port).deliver(a_message())
    (mail,) = post.kept
    assert mail["Subject"] == "[echo] urgent: 2 disks on stor-00 are bad"
    assert mail["To"] == "ops@example.org, jo@example.org"
    assert mail["Message-ID"] == "<0123456789abcdef@example.org>"
    text = mail.get_content().replace("\r\n", "\n")
    new, known = text.split("\n")[2:4]
    assert new.startswith(f"- {device(7)} (stor-00, ST4000DM000): Pending sectors rose")
    assert new.endswith("(new)")
    assert "68 % within 30 days" in known
    assert "\nTo do: Drain it now and replace the disk.\n" in text
    assert "\nhttps://predrain.example.org/fleet?q=stor-00\n" in text


def test_the_end_is_a_mail_of_the_same_thread() -> None:
    post = Post()
    with post_office(post) as port:
        for over in (False, True):
            a_mail(port).deliver(a_message(over=over))
    first, last = post.kept
    assert last["Subject"] == "[echo] over: 2 disks on stor-00 are bad"
    assert first["References"] == last["References"]


def test_a_name_with_line_breaks_in_it_adds_no_header() -> None:
    post = Post()
    with post_office(post) as port:
        a_mail(port).deliver(a_message(title="osd.3\r\nBcc: everybody@example.org\r\n\r\nis bad"))
    (mail,) = post.kept
    assert mail["Bcc"] is None
    assert mail["Subject"] == "[echo] urgent: osd.3 Bcc: everybody@example.org is bad"


def test_a_server_that_refuses_is_told_with_its_words() -> None:
    with (
        post_office(Post(answer="554 5.7.1 not from here")) as port,
        pytest.raises(NotDelivered, match=r"554 5\.7\.1 not from here"),
    ):
        a_mail(port).deliver(a_message())


GONE = {"jo@example.org": "550 5.1.1 nobody of that name"}


def test_of_several_addresses_one_that_is_gone_is_named_and_the_others_have_the_mail_once() -> None:
    post, fleet, notes = Post(refused=GONE), Fleet(), Kept()
    fleet.sicken(3)
    with post_office(post) as port:
        mail = a_mail(port, to=("Ops at Example <ops@example.org>", "jo@example.org"))
        notifier = Notifier(notes, [mail])
        live(notifier, fleet, timedelta(hours=2))
        assert (
            "refused jo@example.org (550 5.1.1 nobody of that name); correct `to`"
            in notifier.troubles["mail"]
        )
        fleet.sicken(33)
        live(notifier, fleet, timedelta(minutes=5))
    assert [title["Subject"].rpartition(" on ")[2] for title in post.kept] == [
        "stor-00 is bad",
        "stor-03 is bad",
    ]
    assert post.went_to == [["ops@example.org"]] * 2


def test_a_recipient_refused_for_now_gets_the_mail_later_and_the_others_get_it_once() -> None:
    post = Post(refused={"jo@example.org": "450 4.2.0 greylisted"})
    with post_office(post) as port:
        mail = a_mail(port)
        for _ in range(2):
            with pytest.raises(NotDelivered, match="greylisted"):
                mail.deliver(a_message())
        post.refused.clear()
        mail.deliver(a_message())
    assert post.went_to == [["ops@example.org"], ["jo@example.org"]]


def test_a_digest_that_one_of_several_refuses_is_sent_to_the_others_once() -> None:
    post, fleet, notes = Post(refused=GONE), Fleet(), Kept()
    fleet.sicken(3)
    with post_office(post) as port:
        daily = DailyDigest(notes, a_mail(port), DigestHour(4))
        notifier = Notifier(notes, [], daily)
        live(notifier, fleet, timedelta(hours=3))
    assert post.went_to == [["ops@example.org"]]
    assert "jo@example.org" in notifier.troubles["digest"]


def test_no_server_is_told_with_its_address() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        with pytest.raises(
            NotDelivered, match=rf"the mail server 127\.0\.0\.1:{port} did not take a mail: .*refused"
        ):
            a_mail(port).deliver(a_message())


def test_a_mail_goes_over_tls_with_a_password(tmp_path: Path) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(tls)
    post, seen = Post(), []

    def check(_server: object, _session: object, _envelope: object, _how: str, data: Any) -> AuthResult:
        seen.append((data.login, data.password))
        return AuthResult(success=data.password == b"right", handled=False)

    with post_office(post, tls, authenticator=check, auth_required=True) as port:
        mail = a_mail(
            port, security="starttls", user="predrain", password="right", authority=str(tmp_path / "ca.pem")
        )
        mail.deliver(a_message())
        with pytest.raises(NotDelivered, match="535"):
            replace(mail, password="wrong").deliver(a_message())
        with pytest.raises(NotDelivered, match="certificate verify failed"):
            replace(mail, authority=None).deliver(a_message())
    assert seen[0] == (b"predrain", b"right")
    assert len(post.kept) == 1


# webhook


@dataclass
class Hook:
    """A receiver of webhooks."""

    status: int = 200
    got: list[tuple[dict[str, str], bytes]] = field(default_factory=list)


@contextmanager
def receiver(hook: Hook, tls: ssl.SSLContext | None = None) -> Iterator[int]:
    """Serves on 127.0.0.1; gives its port."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            hook.got.append((dict(self.headers), self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(hook.status)
            if hook.status == 302:
                self.send_header("Location", "http://127.0.0.1:1/elsewhere")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Quiet."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def clock() -> datetime:
    return NOW


def a_webhook(url: str, **changes: Any) -> WebhookChannel:
    return replace(
        WebhookChannel(
            url, SECRET, "echo", "https://predrain.example.org", clock, allow_private_address=True
        ),
        **changes,
    )


def test_a_webhook_is_signed_and_says_it_all() -> None:
    hook = Hook()
    with receiver(hook) as port:
        a_webhook(f"http://127.0.0.1:{port}/hook?room=ops").deliver(a_message())
    ((headers, body),) = hook.got
    seconds, mark = (part.partition("=")[2] for part in headers["X-Predrain-Signature"].split(","))
    assert int(seconds) == int(NOW.timestamp())
    assert mark == hmac.new(SECRET, seconds.encode() + b"." + body, hashlib.sha256).hexdigest()
    said = json.loads(body)
    assert (said["id"], said["state"], said["severity"]) == ("0123456789abcdef", "standing", "urgent")
    assert [(one["name"], one["new"]) for one in said["points"]] == [
        (f"disk:{device(n)}", n == 7) for n in (3, 7)
    ]
    assert said["url"] == "https://predrain.example.org/fleet?q=stor-00"


@pytest.mark.parametrize("status", [302, 400, 500])
def test_anything_but_2xx_is_tried_again(status: int) -> None:
    hook = Hook(status)
    with receiver(hook) as port, pytest.raises(NotDelivered, match=f"p://127.0.0.1:{port} answered {status}"):
        a_webhook(f"http://jo:swordfish@127.0.0.1:{port}/").deliver(a_message())
    assert len(hook.got) == 1


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "localhost", "10.0.0.1", "192.168.1.1", "169.254.169.254", "[::1]", "[::ffff:127.0.0.1]", "[fd00::1]",
     "0.0.0.0", "100.64.0.1", "0x7f000001", "[::127.0.0.1]", "[64:ff9b::10.0.0.1]", "[64:ff9b:1::a00:1]", "[fec0::1]",
     "[2002:a00:1::]"],
)  # fmt: skip
def test_no_webhook_leads_inside(host: str) -> None:
    with pytest.raises(NotDelivered, match=r"leads inside|leads to|cannot be reached"):
        a_webhook(f"http://{host}:9/", allow_private_address=False).deliver(a_message())


@pytest.mark.parametrize(
    "host",
    ["169.254.169.254", "[::ffff:169.254.169.254]", "[64:ff9b::a9fe:a9fe]", "[fe80::1]", "[fd00:ec2::254]",
     "100.100.100.200", "192.0.0.192", "168.63.129.16"],
)  # fmt: skip
def test_no_webhook_leads_to_a_cloud_s_credentials_even_where_inside_is_allowed(host: str) -> None:
    with pytest.raises(NotDelivered, match="own metadata"):
        a_webhook(f"http://{host}/latest/meta-data/", allow_private_address=True).deliver(a_message())


def test_a_receiver_that_does_not_answer_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("predrain.service.notifications.http_sender.DEADLINE_SECONDS", 0.2)
    with socket.socket() as mute:
        mute.bind(("127.0.0.1", 0))
        mute.listen()
        with pytest.raises(NotDelivered, match="does not answer"):
            a_webhook(f"http://127.0.0.1:{mute.getsockname()[1]}/").deliver(a_message())


def test_a_receiver_that_answers_byte_by_byte_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("predrain.service.notifications.http_sender.DEADLINE_SECONDS", 0.4)
    cut = socket.socket.shutdown

    def cut_and_linger(connection: socket.socket, how: int) -> None:
        cut(connection, how)
        threading.Event().wait(0.3)

    monkeypatch.setattr(socket.socket, "shutdown", cut_and_linger)
    gone = threading.Event()

    def drip() -> None:
        connection, _ = slow.accept()
        with connection, suppress(OSError):
            while not gone.wait(0.1):
                connection.send(b"H")

    with socket.create_server(("127.0.0.1", 0)) as slow:
        dripping = threading.Thread(target=drip)
        dripping.start()
        threading.Timer(5, gone.set).start()
        try:
            with pytest.raises(NotDelivered, match=r"longer than 0\.4 s"):
                a_webhook(f"http://127.0.0.1:{slow.getsockname()[1]}/").deliver(a_message())
            assert not gone.is_set()
        finally:
            gone.set()
            dripping.join()


def test_a_receiver_with_an_address_that_leads_nowhere_is_reached_by_its_other_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hook = Hook()
    with receiver(hook) as port, socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        dead = closed.getsockname()
        found = [
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", address) for address in (dead, ("127.0.0.1", port))
        ]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
        a_webhook(f"http://localhost:{port}/").deliver(a_message())
    assert len(hook.got) == 1


def test_a_secret_in_the_address_is_not_shown() -> None:
    with pytest.raises(NotDelivered) as refused:
        a_webhook("http://jo:word@127.0.0.1:1/hook/T0-secret?key=abc").deliver(a_message())
    for secret in ("word", "T0-secret", "abc"):
        assert secret not in str(refused.value)


def test_a_webhook_over_tls_trusts_its_authority_alone(tmp_path: Path) -> None:
    authority, hook = trustme.CA(), Hook()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(tls)
    with receiver(hook, tls) as port:
        webhook = a_webhook(f"https://localhost:{port}/", authority=str(tmp_path / "ca.pem"))
        webhook.deliver(a_message())
        with pytest.raises(NotDelivered, match="certificate verify failed"):
            replace(webhook, authority=None).deliver(a_message())
    assert len(hook.got) == 1


def test_a_storm_is_cut_to_what_can_be_read() -> None:
    points = tuple(CausePart(f"disk:{n}", f"osd.{n} is bad", Severity.URGENT) for n in range(300))
    cause = AlertCause("disks:model:X:pending-rose", "300 disks are bad", points, "Look.", "/fleet")
    post = Post()
    with post_office(post) as port:
        a_mail(port).deliver(Message("m", NOW, cause, cause.names))
    assert "- and 280 more" in post.kept[0].get_content()
