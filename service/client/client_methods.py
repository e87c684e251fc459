"""The client's methods, one for each request that a program may send to the service."""

from __future__ import annotations

import ssl
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeAlias, TypeVar
from urllib.parse import quote

import msgspec

from predrain.service.client import contract
from predrain.service.client.http_exchange import HttpAnswer, Unreachable, Wire

Shape = TypeVar("Shape")
Row = TypeVar("Row")
Row_co = TypeVar("Row_co", covariant=True)
AnyDrain: TypeAlias = contract.DrainBody | contract.RequestedDrainBody | contract.WholeDrainBody
"""A drain in an answer: of a list, of a request, or of `Client.drain`."""


class _ListPage(Protocol[Row_co]):
    """A part of a list, and the cursor of the next part."""

    @property
    def items(self) -> Sequence[Row_co]: ...

    @property
    def next(self) -> str | None: ...


class Client:
    """One running service. Thread-safe.

    Every method raises ServiceProblem with the service's own sentence, and Unreachable. A request without an answer, or
    to a busy service, is sent again up to twice. A request that changes something carries a key, so that the service
    carries it out once.
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        ca: Path | None = None,
        seconds: float = 30.0,
        cluster: str | None = None,
    ) -> None:
        """url: the address that the service prints. ca: PEM file of the CA of its certificate. seconds: the wait for
        one answer. cluster: the fsid of the cluster whose drains are meant; a service of another cluster answers
        ServiceProblem 404. None: the only cluster of the service.
        """
        self._drains = f"clusters/{_quote_path_segment(cluster)}/drains" if cluster else "drains"
        tls = ssl.create_default_context(cafile=ca) if ca else None
        self._wire = Wire(url, token, tls=tls, seconds=seconds)

    def status(self) -> contract.StatusBody:
        """Return the state of cluster and forecast, the age of the readings, and whether drains may act."""
        return _decode_answer(contract.StatusBody, self._wire.get("status"))

    def overview(self) -> contract.OverviewBody:
        """Return the cluster of the service in numbers: disks, drains, and the drive models."""
        return _decode_answer(contract.OverviewBody, self._wire.get("overview"))

    def clusters(self) -> contract.ClustersBody:
        """Return the cluster of the service, the other clusters that it knows, and all their drive models."""
        return _decode_answer(contract.ClustersBody, self._wire.get("clusters"))

    def report(self, month: str | None = None) -> contract.ReportBody:
        """Return what predrain did in a month such as 2026-10; None: the last month that is over."""
        return _decode_answer(contract.ReportBody, self._wire.get("report", month=month))

    def devices(self) -> Iterator[contract.DeviceBody]:
        """Yield every device in order of ids. Pages are fetched during the iteration, so devices may come and go
        meanwhile.
        """
        return self._all(contract.DevicePage, "devices")

    def device(self, device: str) -> contract.WholeDeviceBody:
        """Return one device."""
        return _decode_answer(
            contract.WholeDeviceBody, self._wire.get(f"devices/{_quote_path_segment(device)}")
        )

    def outlooks(self, status: str | None = None) -> Iterator[contract.OutlookBody]:
        """Yield the newest forecasts in order of device ids, of one status (`bad`, `warning`, `good`, `unknown`) or of
        all.
        """
        return self._all(contract.OutlookPage, "outlooks", status=status)

    def drains(self) -> Iterator[contract.DrainBody]:
        """Yield all drains, newest first."""
        return self._all(contract.DrainPage, self._drains)

    def drain(self, drain: str) -> contract.WholeDrainBody:
        """Return one drain, with the answer of every guard about it."""
        return _decode_answer(
            contract.WholeDrainBody, self._wire.get(f"{self._drains}/{_quote_path_segment(drain)}")
        )

    def propose(
        self, target: str, reason: str = "", *, intent: str = "replace"
    ) -> contract.RequestedDrainBody:
        """Ask for a drain of `osd.N` or of a device; it begins when it is approved."""
        body = {"target": target, "reason": reason, "intent": intent}
        return _decode_answer(contract.RequestedDrainBody, self._wire.send_action("POST", self._drains, body))

    def approve(self, drain: AnyDrain) -> contract.RequestedDrainBody:
        """Approve the drain on the plan that `drain` shows. Raises ServiceProblem 412 if the plan has changed, with the
        present drain in `body["drain"]`.
        """
        return _decode_answer(
            contract.RequestedDrainBody,
            self._wire.send_action(
                "POST", f"{self._drains}/{_quote_path_segment(drain.id)}/approve", if_match=drain.etag
            ),
        )

    def reject(self, drain: AnyDrain) -> contract.RequestedDrainBody:
        """End a drain that is only proposed. Raises ServiceProblem 409, and changes nothing, if it was approved
        meanwhile.
        """
        return self._request_drain(drain, "reject")

    def pause(self, drain: AnyDrain) -> contract.RequestedDrainBody:
        """Pause the drain: it takes no further step, and moving PGs complete."""
        return self._request_drain(drain, "pause")

    def resume(self, drain: AnyDrain) -> contract.RequestedDrainBody:
        """Let a paused drain go on."""
        return self._request_drain(drain, "resume")

    def cancel(self, drain: AnyDrain) -> contract.RequestedDrainBody:
        """Cancel the drain and put everything back as it was found."""
        return self._request_drain(drain, "cancel")

    def stay_drained(self, drain: AnyDrain) -> contract.RequestedDrainBody:
        """Take back a cancel whose data cannot go back: moved data stays, and the rest follows. Raises ServiceProblem
        409 if this way out is not among `drain.ways_out`.
        """
        return self._request_drain(drain, "stay_drained")

    def choose_other_targets(self, drain: AnyDrain) -> contract.RequestedDrainBody:
        """Plan again without the targets that are full, down, out or of unknown size. Raises ServiceProblem 409 if this
        way out is not open.
        """
        return self._request_drain(drain, "choose_other_targets")

    def give_up_cancel(self, drain: AnyDrain) -> contract.RequestedDrainBody:
        """End a cancel: settings go back; upmap items and weights stay and are listed. Needs the scope `admin`. Raises
        ServiceProblem 409 if this way out is not open.
        """
        return self._request_drain(drain, "give_up_cancel")

    def insist(
        self, drain: AnyDrain, guards: Sequence[str], reason: str, *, confirm: str, minutes: float = 60.0
    ) -> contract.RequestedDrainBody:
        """Let the drain pass `guards` that refuse it now, for its present step and for `minutes` at most.

        confirm: the drain's OSD, as a person typed it. Needs the scope `admin`. Raises ServiceProblem 409 if a person
        may not insist like this.
        """
        body = {"guards": list(guards), "reason": reason, "confirm": confirm, "minutes": minutes}
        return self._request_drain(drain, "insist", body)

    def read_halt(self) -> contract.HaltBody:
        """Return whether everything is halted, and why."""
        return _decode_answer(contract.HaltBody, self._wire.get("halt"))

    def halt(self, why: str) -> contract.HaltBody:
        """Halt everything: no command is sent to the cluster from now on."""
        return _decode_answer(contract.HaltBody, self._wire.send_action("POST", "halt", {"reason": why}))

    def lift_halt(self) -> contract.HaltBody:
        """Lift the halt: commands may be sent again."""
        return _decode_answer(contract.HaltBody, self._wire.send_action("POST", "halt", {"reason": None}))

    def send_readings(
        self, documents: Sequence[Mapping[str, Any]], host: str | None = None
    ) -> contract.IngestedBody:
        """Deliver envelopes, or outputs of `smartctl -x --json` of `host`. An accepted reading is never lost."""
        path = f"readings?host={_quote_path_segment(host)}" if host else "readings"
        return _decode_answer(contract.IngestedBody, self._wire.deliver(path, list(documents)))

    def _request_drain(
        self, drain: AnyDrain, verb: str, body: Mapping[str, Any] | None = None
    ) -> contract.RequestedDrainBody:
        return _decode_answer(
            contract.RequestedDrainBody,
            self._wire.send_action("POST", f"{self._drains}/{_quote_path_segment(drain.id)}/{verb}", body),
        )

    def _all(self, kind: type[_ListPage[Row]], path: str, **query: str | None) -> Iterator[Row]:
        cursor: str | None = None
        while True:
            page = _decode_answer(kind, self._wire.get(path, cursor=cursor, **query))
            yield from page.items
            cursor = page.next
            if cursor is None:
                return


def _decode_answer(kind: type[Shape], answer: HttpAnswer) -> Shape:
    try:
        return msgspec.json.decode(answer.content, type=kind)
    except msgspec.MsgspecError as error:
        raise Unreachable(f"no predrain that this client knows answers there ({error})") from error


def _quote_path_segment(name: str) -> str:
    return quote(name, safe="")
