"""Requests that a host's collector does something with a disk, and what the collector reports of them.

A request is signed for one host, has an end, and is carried out once. The service signs it when the host fetches it,
with a key that the host got at its enrolment and that no request carries.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Collection
from datetime import datetime, timedelta
from enum import StrEnum

import msgspec

from predrain.data.ids import DeviceId, HostName
from predrain.data.self_test import SelfTestKind, SelfTestState

LONGEST_VALIDITY = timedelta(hours=1)
"""A collector refuses a request that is valid for longer, so that the ids it has to remember are few."""
_DERIVE_KEY = "predrain disk request key 1"
_ENCODER = msgspec.json.Encoder(order="deterministic")


class DiskPermission(StrEnum):
    """The words of `allow` in [collector]."""

    SELF_TEST = "selftest"
    LOCATE = "locate"


class DiskVerb(StrEnum):
    """The requests that a collector knows."""

    SHORT_TEST = "selftest-short"
    LONG_TEST = "selftest-long"
    LOCATE_ON = "locate-on"
    LOCATE_OFF = "locate-off"

    @property
    def permission(self) -> DiskPermission:
        """The word of `allow` that the host must have."""
        return DiskPermission.SELF_TEST if self.test_kind is not None else DiskPermission.LOCATE

    @property
    def test_kind(self) -> SelfTestKind | None:
        """The kind of the self-test, or None for another verb."""
        return {DiskVerb.SHORT_TEST: SelfTestKind.SHORT, DiskVerb.LONG_TEST: SelfTestKind.LONG}.get(self)


class RequestOutcome(StrEnum):
    """The end of a request. The first ones are the collector's, the last three the service's."""

    STARTED = "started"
    """The drive accepted the self-test."""
    DONE = "done"
    """The light was switched."""
    NOT_ALLOWED = "not-allowed"
    FORGED = "forged"
    """The signature is not one of the host's own key."""
    OTHER_HOST = "other-host"
    EXPIRED = "expired"
    REPEATED = "repeated"
    UNKNOWN_DISK = "unknown-disk"
    """The disk is not at the place where it was read last."""
    TEST_RUNNING = "test-running"
    """A test runs on this disk, or a long one on this host."""
    NO_LIGHT = "no-light"
    NO_RIGHT = "no-right"
    """sudo refuses the program."""
    TOOL_MISSING = "tool-missing"
    TOOL_FAILED = "tool-failed"
    CUT_OFF = "cut-off"
    """The collector ended while it carried out the request."""
    HELD = "held"
    """A guard refused when the host asked for the request."""
    NOT_FETCHED = "not-fetched"
    """The host did not ask for work before the request's end."""
    NOT_ANSWERED = "not-answered"
    """The host fetched the request and reported nothing."""

    @property
    def is_done(self) -> bool:
        """Return whether the request was carried out."""
        return self in (RequestOutcome.STARTED, RequestOutcome.DONE)


class RequestNotValid(Exception):
    """A fetched request that is not carried out."""

    def __init__(self, outcome: RequestOutcome) -> None:
        super().__init__(outcome.value)
        self.outcome = outcome


class DiskRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One request, as it is signed. `by`: the person or the schedule that asked."""

    id: str
    host: HostName
    device: DeviceId
    verb: DiskVerb
    by: str
    issued_at: datetime
    expires_at: datetime


class SignedDiskRequest(msgspec.Struct, frozen=True):
    """A request as JSON text, and HMAC-SHA256 over that text in hex."""

    request: str
    signature: str


class RequestReport(msgspec.Struct, frozen=True):
    """The end of a request on its host. `detail`: the words of the program that was run."""

    id: str
    outcome: RequestOutcome
    at: datetime
    detail: str = ""
    slot: str | None = None
    """The slot of the enclosure, as the enclosure names it."""


class HostSelfTest(msgspec.Struct, frozen=True):
    """A test that runs on a host. `kind` None: unknown."""

    device: DeviceId
    kind: SelfTestKind | None


class DiskSelfTests(msgspec.Struct, frozen=True):
    """The self-tests that one disk reports."""

    device: DeviceId
    state: SelfTestState
    read_at: datetime


class WorkQuestion(msgspec.Struct, frozen=True):
    """A host's question for work: what it allows, what became of earlier requests, and the tests of its disks.

    `tests` has only the disks whose tests changed since the last answer.
    """

    host: HostName
    allow: tuple[DiskPermission, ...]
    has_key: bool
    running: tuple[HostSelfTest, ...] = ()
    reports: tuple[RequestReport, ...] = ()
    tests: tuple[DiskSelfTests, ...] = ()


class WorkAnswer(msgspec.Struct, frozen=True):
    """The requests for the host, and the disks whose test is to be stopped, if the collector started it."""

    requests: tuple[SignedDiskRequest, ...] = ()
    stop: tuple[DeviceId, ...] = ()


def derive_host_key(signing_key: str, host: HostName) -> str:
    """Return the key of the requests for `host`, in hex. It reveals neither the signing key nor another host's key."""
    return hmac.new(signing_key.encode(), f"{_DERIVE_KEY}\n{host}".encode(), hashlib.sha256).hexdigest()


def sign_disk_request(key: str, request: DiskRequest) -> SignedDiskRequest:
    """Return `request` in the form in which its host fetches it."""
    text = _ENCODER.encode(request).decode()
    return SignedDiskRequest(text, _compute_signature(key, text))


def verify_disk_request(
    key: str, signed: SignedDiskRequest, host: HostName, now: datetime, done: Collection[str]
) -> DiskRequest:
    """Return the request if it is for `host`, is valid now, and its id is not in `done`. Raises RequestNotValid."""
    if not hmac.compare_digest(_compute_signature(key, signed.request).encode(), signed.signature.encode()):
        raise RequestNotValid(RequestOutcome.FORGED)
    try:
        request = msgspec.json.decode(signed.request, type=DiskRequest)
    except msgspec.MsgspecError:  # a service of another version
        raise RequestNotValid(RequestOutcome.FORGED) from None
    if request.host != host:
        raise RequestNotValid(RequestOutcome.OTHER_HOST)
    if not now < request.expires_at <= now + LONGEST_VALIDITY:
        raise RequestNotValid(RequestOutcome.EXPIRED)
    if request.id in done:
        raise RequestNotValid(RequestOutcome.REPEATED)
    return request


def read_request_id(signed: SignedDiskRequest) -> str | None:
    """Return the id that a request names, also of one that is not valid, or None if it names none."""
    try:
        return msgspec.json.decode(signed.request, type=_Named).id
    except msgspec.MsgspecError:
        return None


class _Named(msgspec.Struct):
    id: str


def _compute_signature(key: str, text: str) -> str:
    return hmac.new(key.encode(), text.encode(), hashlib.sha256).hexdigest()
