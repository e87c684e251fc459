"""The service as a program sees it."""

from __future__ import annotations

import ssl
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import msgspec

from predrain.service.client import shapes
from predrain.service.client.wire import HttpAnswer, Unreachable, Wire

Shape = TypeVar("Shape")


class Predrain:
    """One running service. Thread-safe.

    Every method raises Problem with the service's own sentence, and Unreachable. What failed for want of an answer, or
    since the service was busy, is asked again up to twice: an act carries a key, by which it is carried out once.
    """

    def __init__(
        self, url: str, token: str | None = None, *, ca: Path | None = None, seconds: float = 30.0
    ) -> None:
        """url: as the service prints it. ca: PEM file of who signed its certificate. seconds: for one answer."""
        tls = ssl.create_default_context(cafile=ca) if ca else None
        self._wire = Wire(url, token, tls=tls, seconds=seconds)

    def status(self) -> shapes.Status:
        """Cluster, forecast, freshness, and whether drains may act."""
        return _as(shapes.Status, self._wire.get("status"))

    def devices(self) -> Iterator[shapes.Device]:
        """Every device in order of ids, page by page as it is iterated; devices may come and go meanwhile."""
        return self._all(shapes.Device, "devices")

    def device(self, device: str) -> shapes.WholeDevice:
        """One device."""
        return _as(shapes.WholeDevice, self._wire.get(f"devices/{_quoted(device)}"))

    def outlooks(self, status: str | None = None) -> Iterator[shapes.Outlook]:
        """Newest forecasts in order of device ids, of one status (`bad`, `warning`, `good`, `unknown`) or of all."""
        return self._all(shapes.Outlook, "outlooks", status=status)

    def drains(self) -> Iterator[shapes.Drain]:
        """All drains, newest first."""
        return self._all(shapes.Drain, "drains")

    def drain(self, drain: str) -> shapes.WholeDrain:
        """One drain, with what every guard says of it."""
        return _as(shapes.WholeDrain, self._wire.get(f"drains/{_quoted(drain)}"))

    def propose(self, target: str, reason: str = "", *, intent: str = "replace") -> shapes.Drain:
        """Ask for a drain of `osd.N` or of a device; it begins when it is approved."""
        body = {"target": target, "reason": reason, "intent": intent}
        return _as(shapes.Drain, self._wire.act("POST", "drains", body))

    def approve(self, drain: shapes.Drain) -> shapes.Drain:
        """Let it begin on the plan that `drain` shows. Where that has changed: Problem 412, with it as it is now in
        `body["drain"]`.
        """
        return _as(
            shapes.Drain,
            self._wire.act("POST", f"drains/{_quoted(drain.id)}/approve", if_match=drain.etag),
        )

    def reject(self, drain: shapes.Drain) -> shapes.Drain:
        """End it while it is proposed. Problem 409, and nothing is changed, where it was approved meanwhile."""
        return self._wish(drain, "reject")

    def pause(self, drain: shapes.Drain) -> shapes.Drain:
        """No further step; PGs in flight arrive."""
        return self._wish(drain, "pause")

    def resume(self, drain: shapes.Drain) -> shapes.Drain:
        """Let it go on."""
        return self._wish(drain, "resume")

    def cancel(self, drain: shapes.Drain) -> shapes.Drain:
        """Give it up and put everything back as it was found."""
        return self._wish(drain, "cancel")

    def stay_drained(self, drain: shapes.Drain) -> shapes.Drain:
        """Take back a cancel whose data cannot go back: what has moved stays, and the rest follows. Problem 409 where
        this way out is not among `drain.ways_out`.
        """
        return self._wish(drain, "stay_drained")

    def choose_other_targets(self, drain: shapes.Drain) -> shapes.Drain:
        """Plan anew without the targets that are full, down, out or of unknown size. Problem 409 where this way out is
        not open.
        """
        return self._wish(drain, "choose_other_targets")

    def give_up_cancel(self, drain: shapes.Drain) -> shapes.Drain:
        """End a cancel: settings go back, upmaps and weights stay and are listed. Needs the scope `admin`; Problem 409
        where this way out is not open.
        """
        return self._wish(drain, "give_up_cancel")

    def insist(
        self, drain: shapes.Drain, guards: Sequence[str], reason: str, *, confirm: str, minutes: float = 60.0
    ) -> shapes.Drain:
        """Let the drain pass `guards` that refuse it now, for its step and for `minutes` at most. confirm: the drain's
        OSD, as a person typed it. Needs the scope `admin`; Problem 409 where nobody may insist like this.
        """
        body = {"guards": list(guards), "reason": reason, "confirm": confirm, "minutes": minutes}
        return self._wish(drain, "insist", body)

    def halted(self) -> shapes.Halt:
        """Whether and why everything is halted."""
        return _as(shapes.Halt, self._wire.get("halt"))

    def halt(self, why: str) -> shapes.Halt:
        """No command is sent to the cluster from now on."""
        return _as(shapes.Halt, self._wire.act("POST", "halt", {"why": why}))

    def lift_halt(self) -> shapes.Halt:
        """Commands may be sent again."""
        return _as(shapes.Halt, self._wire.act("POST", "halt", {"why": None}))

    def send_readings(
        self, documents: Sequence[Mapping[str, Any]], host: str | None = None
    ) -> shapes.Ingested:
        """Deliver envelopes, or outputs of `smartctl -x --json` of `host`; what is accepted is never lost."""
        path = f"readings?host={_quoted(host)}" if host else "readings"
        return _as(shapes.Ingested, self._wire.deliver(path, list(documents)))

    def _wish(self, drain: shapes.Drain, wish: str, body: Mapping[str, Any] | None = None) -> shapes.Drain:
        return _as(shapes.Drain, self._wire.act("POST", f"drains/{_quoted(drain.id)}/{wish}", body))

    def _all(self, kind: type[Shape], path: str, **query: str | None) -> Iterator[Shape]:
        cursor: str | None = None
        while True:
            page = _as(shapes.Page[kind], self._wire.get(path, cursor=cursor, **query))  # type: ignore[valid-type]
            yield from page.items
            cursor = page.next
            if cursor is None:
                return


def _as(kind: type[Shape], answer: HttpAnswer) -> Shape:
    try:
        return msgspec.json.decode(answer.content, type=kind)
    except msgspec.MsgspecError as error:
        raise Unreachable(f"what answers there is no predrain that this client knows ({error})") from error


def _quoted(name: str) -> str:
    return quote(name, safe="")
