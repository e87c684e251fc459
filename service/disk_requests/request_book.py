"""The requests about disks in the store: the open ones, the newest of each disk, and the last question of each host.

Each change of a request and its line in the audit are one transaction. The open requests are few; all that is kept of
one disk has a namespace of its own, so that no question of a host reads the whole fleet.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final, TypeVar

import msgspec

from predrain.data.disk_request import DiskRequest, DiskSelfTests, RequestOutcome
from predrain.data.drain import JournalEntry
from predrain.data.ids import DeviceId, HostName
from predrain.data.store.store_port import Store
from predrain.service.access.audit import AuditedCall, audit_line
from predrain.service.access.canonical_requests import describe_act
from predrain.service.disk_requests.request_guards import CollectorState

Kept = TypeVar("Kept")

OPEN_ROOM: Final = "disk requests"
COLLECTORS_ROOM: Final = "collectors"
_DISK_ROOM: Final = "requests of "
_TESTS: Final = "tests"
_REQUEST: Final = "request "
KEPT_PER_DISK: Final = 20
"""The ended requests of a disk that are kept."""
REWRITTEN_AFTER: Final = timedelta(minutes=1)
"""Time after which the question of a host is stored although it reported nothing new."""


class StoredRequest(msgspec.Struct, frozen=True):
    """A request with its way. `sent_at`: the host fetched it. `outcome` None: it has not ended."""

    request: DiskRequest
    sent_at: datetime | None = None
    outcome: RequestOutcome | None = None
    ended_at: datetime | None = None
    detail: str = ""
    slot: str | None = None


class RequestBook:
    """The book of one store. Every method raises what the store raises."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._written: dict[HostName, CollectorState] = {}
        """The question of each host that this process wrote last."""

    def list_open(self) -> tuple[StoredRequest, ...]:
        """Return the requests that have not ended, the oldest first."""
        found = (_decode(raw, StoredRequest) for raw in self._store.read_notes(OPEN_ROOM).values())
        return tuple(sorted((one for one in found if one), key=lambda one: one.request.issued_at))

    def list_ended(self, device: DeviceId) -> tuple[StoredRequest, ...]:
        """Return the newest ended requests of a disk, the newest first."""
        return tuple(one for _, one in self._list_ended(device))

    def find_self_tests(self, device: DeviceId) -> DiskSelfTests | None:
        """Return the self-tests that a disk reported last, or None."""
        raw = self._store.read_notes(_DISK_ROOM + device).get(_TESTS)
        return _decode(raw, DiskSelfTests) if raw is not None else None

    def find_collectors(self) -> Mapping[HostName, CollectorState]:
        """Return the last question of each host."""
        found = self._store.read_notes(COLLECTORS_ROOM)
        states = {HostName(name): _decode(raw, CollectorState) for name, raw in found.items()}
        return {name: one for name, one in states.items() if one is not None}

    def add(self, request: DiskRequest, at: datetime) -> None:
        """Add a request, with its line in the audit."""
        entry = StoredRequest(request)
        line = _line(request.by, "the service", "disk request", request, "waits for the host", at)
        self._store.write_notes(OPEN_ROOM, {request.id: msgspec.json.encode(entry)}, [line])

    def mark_sent(self, entries: Iterable[StoredRequest], at: datetime) -> None:
        """Record that the host fetched these requests."""
        changed = [msgspec.structs.replace(one, sent_at=at) for one in entries if one.sent_at is None]
        self._store.write_notes(OPEN_ROOM, {one.request.id: msgspec.json.encode(one) for one in changed})

    def end(self, entry: StoredRequest) -> None:
        """Move an ended request to those of its disk, with its line in the audit. A repeat changes nothing."""
        assert entry.outcome is not None
        assert entry.ended_at is not None
        device = entry.request.device
        before = [name for name, _ in self._list_ended(device)]
        changes: dict[str, bytes | None] = dict.fromkeys(before[KEPT_PER_DISK - 1 :])
        name = f"{_REQUEST}{entry.request.issued_at.timestamp():017.6f} {entry.request.id}"
        changes[name] = msgspec.json.encode(entry)
        line = _line(
            f"host {entry.request.host}", "its collector", "disk request ended", entry.request,
            entry.outcome.value, entry.ended_at,
        )  # fmt: skip
        self._store.write_notes(_DISK_ROOM + device, changes, [line])
        self._store.write_notes(OPEN_ROOM, {entry.request.id: None})

    def keep_self_tests(self, tests: Sequence[DiskSelfTests]) -> None:
        """Store what disks report of their self-tests; an older report changes nothing."""
        for one in tests:
            before = self.find_self_tests(one.device)
            if before is None or before.read_at <= one.read_at:
                self._store.write_notes(_DISK_ROOM + one.device, {_TESTS: msgspec.json.encode(one)})

    def keep_collector(self, state: CollectorState) -> None:
        """Store the question of a host, if it is new or if the stored time is old."""
        before = self._written.get(state.host)
        if before is not None:
            same = msgspec.structs.replace(before, asked_at=state.asked_at) == state
            if same and timedelta() <= state.asked_at - before.asked_at < REWRITTEN_AFTER:
                return
        self._store.write_notes(COLLECTORS_ROOM, {state.host: msgspec.json.encode(state)})
        self._written[state.host] = state

    def _list_ended(self, device: DeviceId) -> list[tuple[str, StoredRequest]]:
        notes = self._store.read_notes(_DISK_ROOM + device)
        found = [
            (name, _decode(raw, StoredRequest)) for name, raw in notes.items() if name.startswith(_REQUEST)
        ]
        return sorted(
            ((name, one) for name, one in found if one is not None), reverse=True, key=lambda one: one[0]
        )


def _decode(raw: bytes, kind: type[Kept]) -> Kept | None:
    try:
        return msgspec.json.decode(raw, type=kind)
    except msgspec.MsgspecError:
        return None  # an unreadable note is no request


def _line(
    caller: str, source: str, act: str, request: DiskRequest, answered: str, at: datetime
) -> JournalEntry:
    said = {
        "id": request.id, "host": request.host, "device": request.device, "verb": request.verb, "by": request.by,
        "expires_at": request.expires_at.isoformat(),
    }  # fmt: skip
    return audit_line(AuditedCall(caller, source, describe_act(act, said), answered), at)
