"""Takes requests about disks, hands them to the hosts that ask for work, and notes what the hosts report."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import msgspec

from predrain.actions.cluster.cluster_view import ClusterView
from predrain.data.clock import Clock
from predrain.data.disk_request import (
    DiskRequest,
    DiskSelfTests,
    DiskVerb,
    RequestOutcome,
    RequestReport,
    WorkAnswer,
    WorkQuestion,
    derive_host_key,
    sign_disk_request,
)
from predrain.data.ids import DeviceId, HostName
from predrain.data.outside_text import DEVICE, MESSAGE, clean_text, is_clean
from predrain.data.refusal import Refusal
from predrain.data.residence import UNKNOWN_HOST, is_apart
from predrain.data.store.store_port import Store
from predrain.service.disk_requests.request_book import RequestBook, StoredRequest
from predrain.service.disk_requests.request_guards import (
    VIEW_TOO_OLD,
    CollectorState,
    RequestRefusal,
    RequestSituation,
    count_unclean_pgs,
    find_drains_of_disk,
    find_request_refusals,
    find_test_refusals,
    find_unclean_pgs,
)
from predrain.service.disk_requests.request_sentences import describe_request_refusal
from predrain.service.fleet.fleet import FleetSnapshot

VALID_FOR: Final = timedelta(minutes=10)
"""Time from a request to its end: a host asks three times a minute, and a person does not wait longer."""
ANSWER_WITHIN: Final = timedelta(minutes=10)
"""Time after a request's end for the report of a host that fetched it."""
NO_HOST: Final = HostName("")


class RequestHeld(Refusal):
    """A request about a disk is not taken. `refusals`: the reasons."""

    def __init__(self, refusals: tuple[RequestRefusal, ...], host: HostName, sentence: str) -> None:
        super().__init__(sentence)
        self.refusals, self.host = refusals, host


@dataclass(frozen=True, slots=True)
class DiskRequestView:
    """All that is known of the requests and self-tests of one disk. `refusals`: by verb, the reasons against it now."""

    host: HostName
    collector: CollectorState | None
    refusals: Mapping[DiskVerb, tuple[RequestRefusal, ...]]
    open: tuple[StoredRequest, ...]
    ended: tuple[StoredRequest, ...]
    tests: DiskSelfTests | None


class DiskRequestDesk:
    """The desk of one process. Thread-safe: two requests are judged one after the other.

    signing_key: returns the key from which the keys of hosts are derived. Two processes on one store may take a request
    each at the same moment; the collector then refuses the second one.
    find_view: returns the newest view; None without a cluster. A snapshot of the fleet keeps its view for as long as
    nothing changes, so on a calm cluster that view looks as if the cluster did not answer any more.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        signing_key: Callable[[], str],
        *,
        find_view: Callable[[], ClusterView | None] | None,
    ) -> None:
        self._book, self._clock, self._signing_key = RequestBook(store), clock, signing_key
        self._find_view = find_view
        self._lock = threading.Lock()
        self._counted: tuple[ClusterView, Mapping[HostName, int]] | None = None

    def derive_key(self, host: HostName) -> str:
        """Return the key of requests for a host, which the host gets at its enrolment. Raises SigningKeyUnusable."""
        return derive_host_key(self._signing_key(), host)

    def request(self, snapshot: FleetSnapshot, device: DeviceId, verb: DiskVerb, by: str) -> StoredRequest:
        """Take a request of `by`. Raises RequestHeld."""
        with self._lock:
            now, host = self._clock.now(), find_host_of_disk(snapshot, device)
            refusals = find_request_refusals(
                verb, self._situation(snapshot, device, host, self._book.list_open(), now)
            )
            if refusals:
                told = " ".join(describe_request_refusal(one, verb, host) for one in refusals)
                raise RequestHeld(refusals, host, told)
            made = DiskRequest(secrets.token_hex(8), host, device, verb, by, now, now + VALID_FOR)
            self._book.add(made, now)
        return StoredRequest(made)

    def view(self, snapshot: FleetSnapshot, device: DeviceId) -> DiskRequestView:
        """Return what is known of a disk; nothing is changed."""
        now, host, found = self._clock.now(), find_host_of_disk(snapshot, device), self._book.list_open()
        seen = self._situation(snapshot, device, host, found, now)
        return DiskRequestView(
            host,
            seen.collector,
            {verb: find_request_refusals(verb, seen) for verb in DiskVerb},
            tuple(one for one in found if one.request.device == device),
            self._book.list_ended(device),
            self._book.find_self_tests(device),
        )

    def exchange(self, snapshot: FleetSnapshot, question: WorkQuestion) -> WorkAnswer:
        """Take the reports of a host, and return its requests. The caller has checked that it speaks for the host.

        Requests that the host fetched and has not reported are returned again: an answer may be lost on its way, and
        the host carries out each request once.
        """
        with self._lock:
            now = self._clock.now()
            state = CollectorState(question.host, now, question.allow, question.has_key, question.running)
            self._book.keep_collector(state)
            self._book.keep_self_tests([one for one in question.tests if _is_clean_report(one)])
            entries = {
                one.request.id: one for one in self._book.list_open() if one.request.host == question.host
            }
            for report in question.reports:
                if (entry := entries.pop(report.id, None)) is not None:
                    self._book.end(_end_by_report(entry, report, now))
            waiting = self._hand_out(snapshot, tuple(entries.values()), now)
            self._book.mark_sent(waiting, now)
            key = self.derive_key(question.host) if waiting else ""
            stop = self._find_tests_to_stop(snapshot, question, now)
        return WorkAnswer(tuple(sign_disk_request(key, one.request) for one in waiting), stop)

    def end_overdue(self) -> None:
        """End the requests that no host fetched or reported in time."""
        with self._lock:
            now = self._clock.now()
            for one in self._book.list_open():
                if one.sent_at is None and now >= one.request.expires_at:
                    self._end(one, RequestOutcome.NOT_FETCHED, now)
                elif one.sent_at is not None and now >= one.request.expires_at + ANSWER_WITHIN:
                    self._end(one, RequestOutcome.NOT_ANSWERED, now)

    def list_open_requests(self) -> tuple[StoredRequest, ...]:
        """Return the requests that have not ended."""
        return self._book.list_open()

    def find_collectors(self) -> Mapping[HostName, CollectorState]:
        """Return the last question of each host."""
        return self._book.find_collectors()

    def _hand_out(
        self, snapshot: FleetSnapshot, entries: Collection[StoredRequest], now: datetime
    ) -> list[StoredRequest]:
        """Return the requests that the host may carry out now, and end those that guards refuse by now."""
        found = []
        for one in entries:
            request = one.request
            if now >= request.expires_at:
                continue  # `end_overdue` ends it
            if one.sent_at is None and request.verb.test_kind is not None:
                seen = self._situation(snapshot, request.device, request.host, (), now)
                if refusals := find_test_refusals(seen):
                    self._end(one, RequestOutcome.HELD, now, ", ".join(each.kind.value for each in refusals))
                    continue
            found.append(one)
        return found

    def _find_tests_to_stop(
        self, snapshot: FleetSnapshot, question: WorkQuestion, now: datetime
    ) -> tuple[DeviceId, ...]:
        found = []
        for test in question.running:
            seen = self._situation(snapshot, test.device, question.host, (), now)
            if any(one.kind.stops_running_test for one in find_test_refusals(seen)):
                found.append(test.device)
        return tuple(found)

    def _end(self, one: StoredRequest, outcome: RequestOutcome, now: datetime, detail: str = "") -> None:
        self._book.end(msgspec.structs.replace(one, outcome=outcome, ended_at=now, detail=detail))

    def _situation(
        self,
        snapshot: FleetSnapshot,
        device: DeviceId,
        host: HostName,
        entries: Collection[StoredRequest],
        now: datetime,
    ) -> RequestSituation:
        reading, own = snapshot.readings.get(device), snapshot.osds_of().get(device, ())
        osds = {*own, *(one.osd for one in reading.osd_devices if reading is not None)} if reading else {*own}
        return RequestSituation(
            device,
            host,
            now,
            snapshot.is_living(device),
            self._book.find_collectors().get(host),
            snapshot.halted is not None,
            find_drains_of_disk(snapshot.drains, device, osds),
            find_unclean_pgs(
                self._count_unclean_pgs(now), host, has_osds=self._find_view is not None and bool(osds)
            ),
            tuple(one.request for one in entries if one.request.host == host),
        )

    def _count_unclean_pgs(self, now: datetime) -> Mapping[HostName, int] | None:
        """Return the PGs of each host that are not active+clean, or None if no fresh view shows them.

        The PGs are counted once for each view.
        """
        if self._find_view is None:
            return {}
        view = self._find_view()
        if view is None or now - view.as_of > VIEW_TOO_OLD or not view.statistics_known:
            return None
        counted = self._counted
        if counted is None or counted[0] is not view:
            counted = self._counted = view, count_unclean_pgs(view)
        return counted[1]


def find_host_of_disk(snapshot: FleetSnapshot, device: DeviceId) -> HostName:
    """Return the host that reads the disk, or "" if no host is known, or if two hosts have a disk of that name."""
    reading = snapshot.readings.get(device)
    if reading is None or reading.host == UNKNOWN_HOST or is_apart(device):
        return NO_HOST
    return reading.host


def _end_by_report(entry: StoredRequest, report: RequestReport, now: datetime) -> StoredRequest:
    slot = clean_text(report.slot, MESSAGE.limit) if report.slot else None
    return msgspec.structs.replace(
        entry,
        sent_at=entry.sent_at or now,
        outcome=report.outcome,
        ended_at=now,
        detail=clean_text(report.detail, MESSAGE.limit),
        slot=slot[:64] if slot else None,
    )


def _is_clean_report(one: DiskSelfTests) -> bool:
    return is_clean(one.device, DEVICE.limit) and len(one.state.log) <= MOST_ENTRIES


MOST_ENTRIES: Final = 64
"""The most entries of a drive's self-test log: ATA's extended log shows 19 to 21 by default, others 20."""
