"""Requests of a person to a controller that does not hold the lease, forwarded through the cluster to the one that
does.

A forwarded request is a text `requests/ID` in the config-key store. The controller with the lease executes it at its
next poll, writes `answers/ID`, records the id in `heard`, then removes the request. If it is killed before the record,
the request is executed once more. This must change nothing, so a request that is already fulfilled is answered with
the drain as it is (`is_request_fulfilled`). A request that is put back after the record is removed, so that an old
signed request is not executed a second time.

A request that the store cannot verify (`SignedKeys`) is neither executed nor answered nor removed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from predrain.actions.cluster.cluster_port import ConfigKeyStore, DamagedConfigKey
from predrain.actions.cluster.signed_keys import ANSWERS, REQUESTS, Unverified
from predrain.actions.controller.person_request import PersonRequest
from predrain.data.ids import parse_cluster_id
from predrain.data.outside_text import (
    CALLER,
    CLUSTER_WORDS,
    PATTERN,
    REASON,
    clean_identifier,
    clean_text,
)
from predrain.data.wire.strict_json import InvalidValue, JsonShape

__all__ = ["ANSWERS", "REQUESTS", "STANDS", "ForwardedRequests", "ForwardedResult"]

STANDS = timedelta(minutes=10)
"""The longest time that a request may wait to be executed, and an answer to be read. Clocks differ by less, because
the monitors require it.
"""
_HEARD_IDS = "heard"
_AT_ONCE = 50
_LONGEST = 16_384


@dataclass(frozen=True, slots=True)
class ForwardedResult:
    """The result of a forwarded request: the drain's id, or the sentence that refused it, with the drain in the way."""

    at: datetime
    drain: str = ""
    refused: str = ""


_REQUEST, _HEARD = JsonShape(PersonRequest), JsonShape(ForwardedResult)


@dataclass(slots=True)
class ForwardedRequests:
    """Forwarded requests and answers in a config-key store. Each method raises ClusterUnreachable."""

    keep: ConfigKeyStore
    unverified: dict[str, str] = field(default_factory=dict)
    """Requests and answers that could not be verified: the sentence with the reason, by name."""

    def submit_request(self, request: PersonRequest) -> None:
        """Write the request for the controller with the lease. Raises InvalidValue."""
        self.keep.write(REQUESTS + request.id, _REQUEST.write(request).decode())

    def answer_to(self, id_: str) -> ForwardedResult | None:
        """Return the answer; None while there is none, or none that can be read."""
        text = self.keep.read(ANSWERS + id_)
        try:
            heard = None if text is None else _HEARD.read(text.encode())
        except InvalidValue:
            return None
        return heard and replace(heard, refused=clean_text(heard.refused, CLUSTER_WORDS.limit))

    def forget(self, id_: str) -> None:
        """Remove request and answer, because the caller knows the result."""
        self.keep.remove(REQUESTS + id_)
        self.keep.remove(ANSWERS + id_)

    def withdraw(self, id_: str, now: datetime) -> None:
        """Remove a request that its caller executes, and record its id: a request that is put back is not executed
        again.
        """
        self._note_heard(id_, now)
        self.forget(id_)

    def list_waiting_requests(self, now: datetime) -> tuple[PersonRequest, ...]:
        """Return the requests to be executed, oldest first. Answer one that is too old or cannot be read with a
        sentence.
        """
        return tuple(sorted(self._read(now), key=lambda request: (request.at, request.id)))

    def answer(self, id_: str, heard: ForwardedResult) -> None:
        """Write the result of a request, which then waits no longer."""
        self.keep.write(ANSWERS + id_, _HEARD.write(heard).decode())
        self._note_heard(id_, heard.at)
        self.keep.remove(REQUESTS + id_)

    def remove_stale_answers(self, now: datetime) -> None:
        """Remove answers that no caller has read."""
        for name in self.keep.names(ANSWERS):
            try:
                heard = self.answer_to(name.removeprefix(ANSWERS))
            except (Unverified, DamagedConfigKey) as fault:
                self.unverified[name] = str(fault)
                continue
            if heard is None or abs(now - heard.at) > STANDS:
                self.keep.remove(name)

    def _read(self, now: datetime) -> Iterator[PersonRequest]:
        names, heard_ids = self.keep.names(REQUESTS), self._read_heard(now)
        self.unverified = {name: why for name, why in self.unverified.items() if name in names}
        # Unverified requests come last, so that forged ones cannot keep genuine ones from being executed.
        for name in sorted(names, key=lambda name: (name in self.unverified, name))[:_AT_ONCE]:
            id_ = name.removeprefix(REQUESTS)
            try:
                text = self.keep.read(name)
                if text is None:
                    continue
                if id_ in heard_ids:
                    self.keep.remove(name)
                    continue
                if len(text) > _LONGEST:
                    raise InvalidValue(f"it has {len(text)} letters, the most is {_LONGEST}")
                request = _clean_request(_REQUEST.read(text.encode()))
                if request.id != id_:
                    raise InvalidValue("it lies under another name than its own")
            except (Unverified, DamagedConfigKey) as fault:
                self.unverified[name] = str(fault)
                continue
            except InvalidValue as error:
                self.answer(id_, ForwardedResult(now, refused=f"The request cannot be read: {error}."))
                continue
            self.unverified.pop(name, None)
            if abs(now - request.at) <= STANDS:
                yield request
            else:
                self.answer(id_, ForwardedResult(now, refused=_explain_late_request(request, now)))

    def _read_heard(self, now: datetime) -> dict[str, datetime]:
        """Return when each request was executed, for those that are still recent enough to be executed again."""
        lines = (line.split(" ") for line in (self.keep.read(_HEARD_IDS) or "").splitlines())
        heard = {words[0]: datetime.fromisoformat(words[1]) for words in lines if len(words) == 2}
        return {id_: at for id_, at in heard.items() if abs(now - at) <= 2 * STANDS}

    def _note_heard(self, id_: str, now: datetime) -> None:
        heard = {**self._read_heard(now), id_: now}
        self.keep.write(_HEARD_IDS, "\n".join(f"{known} {at.isoformat()}" for known, at in heard.items()))


def _clean_request(request: PersonRequest) -> PersonRequest:
    """Return the request with sanitized texts, since any process with write access below `requests/` could have
    written them. Raises InvalidValue if its cluster is no fsid.
    """
    if request.cluster is not None and parse_cluster_id(request.cluster) != request.cluster:
        raise InvalidValue("its cluster is no fsid")
    return replace(
        request,
        caller=clean_identifier(request.caller, CALLER.limit),
        reason=clean_text(request.reason, REASON.limit),
        target=clean_text(request.target, PATTERN.limit),
        guards=tuple(clean_identifier(guard, CALLER.limit) for guard in request.guards),
        confirm=clean_text(request.confirm, PATTERN.limit),
    )


def _explain_late_request(request: PersonRequest, now: datetime) -> str:
    minutes = STANDS.total_seconds() / 60
    return (
        f"The request was made at {request.at:%H:%M} UTC and found at {now:%H:%M} UTC; one is heard within "
        f"{minutes:.0f} minutes. Ask again, or set the clocks."
    )
