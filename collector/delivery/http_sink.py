"""A service as the sink: `POST /api/v1/readings` and `/latency`, over TLS, within a deadline."""

from __future__ import annotations

import http.client
import ssl
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from socket import SHUT_RDWR
from threading import Timer
from typing import NamedTuple
from urllib.parse import urlsplit

import msgspec

from predrain.collector.delivery.sinks import DeferredRecord, DeliveryResult, SinkUnavailable
from predrain.data.disk_request import WorkAnswer, WorkQuestion
from predrain.data.log.log_port import Record, Topic
from predrain.data.refusal import Refusal

DEADLINE_SECONDS = 30.0
LONGEST_ANSWER = 1 << 20
LONGEST_PAUSE = 3600.0

_TOO_LARGE = (413, 422)


class BadAddress(Refusal):
    """The address of the service is not valid."""


class NotEnrolled(Refusal):
    """The service does not take the one-time token."""


class Enrolment(msgspec.Struct):
    """The secrets of an enrolled host. `request_key`: the key of requests for the host; empty from an older service."""

    token: str
    request_key: str = ""


class _RefusedItem(msgspec.Struct):
    index: int
    reason: str
    retry_after: float | None = None


class _Ingested(msgspec.Struct):
    accepted: int
    refused: list[_RefusedItem] = []


_INGESTED = msgspec.json.Decoder(_Ingested)


class _Problem(msgspec.Struct):
    detail: str


class _Reply(NamedTuple):
    status: int
    retry_after: float
    body: bytes


_ENROL = (
    "get a one-time token by `predrain token enrol` there and exchange it by `predrain collect --enrol TOKEN` here, or"
    " name another file as `token_file` in [collector]"
)


class WebSink:
    """The service at `url` (`https://HOST[:PORT]`). Raises BadAddress.

    `token` is called before each delivery, so that a new token is found; it may raise a Refusal. `tls` is used for
    https.
    """

    def __init__(
        self,
        url: str,
        token: Callable[[], str],
        tls: ssl.SSLContext | None = None,
        deadline: float = DEADLINE_SECONDS,
    ) -> None:
        scheme, self._host, self._port, self._path = _split_url(url)
        self._url = url
        self._tls = (tls or ssl.create_default_context()) if scheme == "https" else None
        self._token, self._deadline = token, deadline

    def deliver(self, topic: Topic, records: Sequence[Record]) -> DeliveryResult:
        """Post `records` as they are; a batch that is refused as a whole is halved. Raises SinkUnavailable."""
        reply = self._post(
            _choose_topic_path(topic), b"[" + b",".join(record.value for record in records) + b"]"
        )
        if reply.status in (200, 207):
            return self._answer(records, self._read(reply.body).refused)
        if reply.status not in _TOO_LARGE:
            raise SinkUnavailable(self._told(reply), reply.retry_after)
        if len(records) == 1:
            return DeliveryResult(
                (f"{self._url} refused a record of {records[0].key}: {_read_problem_detail(reply)}",)
            )
        half = len(records) // 2
        first, second = self.deliver(topic, records[:half]), self.deliver(topic, records[half:])
        moved = tuple(replace(one, place=one.place + half) for one in second.later)
        return DeliveryResult(first.refused + second.refused, first.later + moved)

    def close(self) -> None:
        """Do nothing: no connection is held between deliveries."""

    def ask_for_work(self, question: WorkQuestion) -> WorkAnswer:
        """Report what became of requests, and fetch new ones. Raises SinkUnavailable."""
        reply = self._post("disk-requests/exchange", msgspec.json.encode(question))
        if reply.status in (401, 403):
            raise SinkUnavailable(f"{self._url} refuses the token for requests of {question.host}: {_ENROL}")
        if reply.status != 200:
            raise SinkUnavailable(self._told(reply), reply.retry_after)
        try:
            return msgspec.json.decode(reply.body, type=WorkAnswer)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise SinkUnavailable(
                f"the program that answers at {self._url} is no predrain service; correct `url` in [collector]"
            ) from error

    def enrol(self, once: str, host: str) -> Enrolment:
        """Exchange a one-time token for the secrets of `host`. Raises SinkUnavailable and NotEnrolled."""
        body = msgspec.json.encode({"token": once, "host": host})
        reply = self._send("enrolment", body, {"Content-Type": "application/json"})
        if reply.status != 201:
            raise NotEnrolled(f"{self._url} does not enrol {host}: {_read_problem_detail(reply)}")
        try:
            return msgspec.json.decode(reply.body, type=Enrolment)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise SinkUnavailable(
                f"the program that answers at {self._url} is no predrain service; correct `url` in [collector]"
            ) from error

    def _post(self, path: str, body: bytes) -> _Reply:
        try:
            headers = {"Authorization": f"Bearer {self._token()}", "Content-Type": "application/json"}
        except FileNotFoundError as error:
            raise SinkUnavailable(
                f"there is no token for {self._url} ({error.filename} is missing): {_ENROL}"
            ) from error
        except (Refusal, OSError) as error:
            raise SinkUnavailable(f"the token for {self._url} cannot be read: {error}") from error
        return self._send(path, body, headers)

    def _send(self, path: str, body: bytes, headers: Mapping[str, str]) -> _Reply:
        connection = self._connection()
        # The socket's own time-out starts again with every byte: a service that sends byte by byte would
        # never time out.
        watch = Timer(self._deadline, _shutdown_connection, (connection,))
        watch.daemon = True
        watch.start()
        try:
            connection.request("POST", f"{self._path}/api/v1/{path}", body, dict(headers))
            answer = connection.getresponse()
            raw = answer.read(LONGEST_ANSWER + 1)
            return _Reply(answer.status, _parse_retry_after(answer.headers.get("Retry-After")), raw)
        except ssl.SSLCertVerificationError as error:
            raise SinkUnavailable(
                f"the certificate of {self._url} is not trusted ({error.verify_message}): name who signed it as `ca` in"
                " [collector], and the service in `url` as its certificate does"
            ) from error
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise SinkUnavailable(
                f"no service answers at {self._url} ({error or type(error).__name__});"
                " start it, or correct `url` in [collector]"
            ) from error
        finally:
            watch.cancel()
            connection.close()

    def _connection(self) -> http.client.HTTPConnection:
        if self._tls is None:
            return http.client.HTTPConnection(self._host, self._port, timeout=self._deadline)
        return http.client.HTTPSConnection(self._host, self._port, timeout=self._deadline, context=self._tls)

    def _answer(self, records: Sequence[Record], items: Sequence[_RefusedItem]) -> DeliveryResult:
        refused: list[str] = []
        later: list[DeferredRecord] = []
        for item in items:
            known = 0 <= item.index < len(records)
            key = records[item.index].key if known else "the batch"
            why = f"{self._url} refused a record of {key}: {item.reason}"
            if known and item.retry_after is not None:
                later.append(DeferredRecord(item.index, why, item.retry_after))
            else:
                refused.append(why)
        return DeliveryResult(tuple(refused), tuple(later))

    def _read(self, raw: bytes) -> _Ingested:
        """Decode the answer. Raises SinkUnavailable if it is another answer: then nothing was taken."""
        try:
            return _INGESTED.decode(raw)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise SinkUnavailable(
                f"the program that answers at {self._url} is no predrain service; correct `url` in [collector]"
            ) from error

    def _told(self, reply: _Reply) -> str:
        if reply.status in (401, 403):
            return f"{self._url} refuses the token ({_read_problem_detail(reply)}): {_ENROL}"
        return f"{self._url} answered {reply.status}: {_read_problem_detail(reply)}"


def _split_url(url: str) -> tuple[str, str, int | None, str]:
    """Return the scheme, host, port and path of a URL. Raises BadAddress."""
    try:
        parts = urlsplit(url)
        if parts.hostname and parts.scheme in ("http", "https"):
            return parts.scheme, parts.hostname, parts.port, parts.path.rstrip("/")
    except ValueError:
        pass
    raise BadAddress(f"{url!r} is no address of a service: write https://HOST:PORT")


def _choose_topic_path(topic: Topic) -> str:
    return "latency" if topic is Topic.LATENCY else topic.value


def _read_problem_detail(reply: _Reply) -> str:
    try:
        return msgspec.json.decode(reply.body, type=_Problem).detail
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return http.client.responses.get(reply.status, "an unknown status")


def _parse_retry_after(header: str | None) -> float:
    """Return the seconds of a Retry-After header. A date counts as 0 s, since clocks differ."""
    with suppress(TypeError, ValueError):
        return min(max(float(header or 0), 0.0), LONGEST_PAUSE)
    return 0.0


def _shutdown_connection(connection: http.client.HTTPConnection) -> None:
    with suppress(OSError, AttributeError):
        connection.sock.shutdown(SHUT_RDWR)
