"""What a person asks of a controller that does not lead, laid in the cluster for the one that does.

A petition is a text `requests/ID` in the keep; the leader carries it out at its next look, writes `answers/ID`, notes
the id in `heard`, then removes the petition. Killed before the note it is carried out once more, so that must change
nothing: what already is as wished is answered with the drain as it stands (`fulfilled`). Put back after the note it is
removed: an old signed request is carried out no second time.

A petition that the keep cannot verify (`SignedKeys`) is neither carried out nor answered nor removed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum

from predrain.actions.cluster.port import Damaged, Keep
from predrain.actions.cluster.signed_keys import ANSWERS, REQUESTS, Unverified
from predrain.data.drain import Drain, DrainState, Intent
from predrain.data.outside_text import (
    CALLER,
    CLUSTER_WORDS,
    PATTERN,
    REASON,
    clean_identifier,
    clean_text,
)
from predrain.data.wire.shape import JsonShape, Misshapen

__all__ = [
    "ANSWERS",
    "REQUESTS",
    "STANDS",
    "ForwardedResult",
    "Petition",
    "Petitions",
    "Wish",
    "fulfilled",
    "is_granted",
]

STANDS = timedelta(minutes=10)
"""How long a petition may wait to be heard, and an answer to be read. Clocks differ by less: monitors see to that."""
_HEARD_IDS = "heard"
_AT_ONCE = 50
_LONGEST = 16_384


class Wish(StrEnum):
    """What may be asked."""

    PROPOSE = "propose"
    APPROVE = "approve"
    REJECT = "reject"
    PAUSE = "pause"
    RESUME = "resume"
    CANCEL = "cancel"
    HAND_OVER = "hand_over"
    STAY_DRAINED = "stay_drained"
    GIVE_UP_CANCEL = "give_up_cancel"
    CHOOSE_OTHER_TARGETS = "choose_other_targets"
    INSIST = "insist"


@dataclass(frozen=True, slots=True)
class Petition:
    """One wish of one caller. `id`: unlike any other's. A proposal has a target, all others a drain. `origin`: the
    process that knows the caller, as the lease and the step counter name it.
    """

    id: str
    wish: Wish
    at: datetime
    caller: str
    drain: str = ""
    seal: str = ""
    """Of the plan that an approval rests on."""
    target: str = ""
    reason: str = ""
    intent: Intent = Intent.REPLACE
    spare_reads: bool = False
    guards: tuple[str, ...] = ()
    """Past which the caller insists, `minutes` long, having typed `confirm`."""
    minutes: float = 0.0
    confirm: str = ""
    origin: str = ""


@dataclass(frozen=True, slots=True)
class ForwardedResult:
    """What became of a petition: the drain's id, or the sentence that refused it, with the drain in the way."""

    at: datetime
    drain: str = ""
    refused: str = ""


_PETITION, _HEARD = JsonShape(Petition), JsonShape(ForwardedResult)

_RUNS = frozenset(
    {
        DrainState.APPROVED,
        DrainState.PREPARING,
        DrainState.DRAINING,
        DrainState.HOLDING,
        DrainState.DRAINED,
        DrainState.VERIFIED,
    }
)
_FULFILLED = {
    Wish.APPROVE: _RUNS,
    Wish.RESUME: _RUNS,
    Wish.REJECT: frozenset({DrainState.CANCELLED}),
    Wish.PAUSE: frozenset({DrainState.PAUSED}),
    Wish.CANCEL: frozenset({DrainState.CANCELLING, DrainState.CANCELLED}),
    Wish.HAND_OVER: frozenset({DrainState.HANDED_OVER}),
    Wish.STAY_DRAINED: frozenset({DrainState.PREPARING, DrainState.DRAINING, DrainState.HOLDING}),
}


def fulfilled(petition: Petition, drain: Drain) -> bool:
    """Whether the drain already is as wished; of a proposal, whether the drain is the one that it made."""
    said = drain.insistence
    match petition.wish:
        case Wish.GIVE_UP_CANCEL:
            return drain.given_up is not None
        case Wish.INSIST:
            asked = (petition.caller, petition.reason, petition.guards)
            until = petition.at + timedelta(minutes=petition.minutes)
            return said is not None and (said.by, said.reason, said.guards) == asked and said.until >= until
        case Wish.PROPOSE:
            return _is_proposed(petition, drain)
        case _:
            return is_granted(petition.wish, drain.state)


def _is_proposed(petition: Petition, drain: Drain) -> bool:
    asked = (petition.caller, petition.reason, petition.intent)
    return drain.state is DrainState.PROPOSED and asked == (drain.asked_by, drain.reason, drain.intent)


def is_granted(wish: Wish, state: DrainState) -> bool:
    """Whether a drain in this state already is as wished; not for a proposal, and not for what no state shows."""
    return state in _FULFILLED.get(wish, frozenset())


@dataclass(slots=True)
class Petitions:
    """Petitions and answers in a keep. Each method raises ClusterUnreachable."""

    keep: Keep
    unverified: dict[str, str] = field(default_factory=dict)
    """Requests and answers that were found and are not believed: the sentence that says why, by name."""

    def lay(self, petition: Petition) -> None:
        """Write it down for whoever leads. Raises Misshapen."""
        self.keep.write(REQUESTS + petition.id, _PETITION.write(petition).decode())

    def answer_to(self, id_: str) -> ForwardedResult | None:
        """The answer; None while there is none, or none that can be read."""
        text = self.keep.read(ANSWERS + id_)
        try:
            heard = None if text is None else _HEARD.read(text.encode())
        except Misshapen:
            return None
        return heard and replace(heard, refused=clean_text(heard.refused, CLUSTER_WORDS.limit))

    def forget(self, id_: str) -> None:
        """Remove petition and answer: the caller knows."""
        self.keep.remove(REQUESTS + id_)
        self.keep.remove(ANSWERS + id_)

    def withdraw(self, id_: str, now: datetime) -> None:
        """Remove a petition that its caller carries out: put back, it is not carried out again."""
        self._note_heard(id_, now)
        self.forget(id_)

    def waiting(self, now: datetime) -> tuple[Petition, ...]:
        """Those to be carried out, oldest first. What is too old, or is no petition, is answered with a sentence."""
        return tuple(sorted(self._read(now), key=lambda petition: (petition.at, petition.id)))

    def answer(self, id_: str, heard: ForwardedResult) -> None:
        """Say what became of it; it waits no longer."""
        self.keep.write(ANSWERS + id_, _HEARD.write(heard).decode())
        self._note_heard(id_, heard.at)
        self.keep.remove(REQUESTS + id_)

    def tidy(self, now: datetime) -> None:
        """Remove answers that nobody came for."""
        for name in self.keep.names(ANSWERS):
            try:
                heard = self.answer_to(name.removeprefix(ANSWERS))
            except (Unverified, Damaged) as fault:
                self.unverified[name] = str(fault)
                continue
            if heard is None or abs(now - heard.at) > STANDS:
                self.keep.remove(name)

    def _read(self, now: datetime) -> Iterator[Petition]:
        names, heard_ids = self.keep.names(REQUESTS), self._read_heard(now)
        self.unverified = {name: why for name, why in self.unverified.items() if name in names}
        # Those that were not believed come last, so that forged ones cannot keep true ones from being heard.
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
                    raise Misshapen(f"it has {len(text)} letters, the most is {_LONGEST}")
                petition = _cleaned(_PETITION.read(text.encode()))
                if petition.id != id_:
                    raise Misshapen("it lies under another name than its own")
            except (Unverified, Damaged) as fault:
                self.unverified[name] = str(fault)
                continue
            except Misshapen as error:
                self.answer(id_, ForwardedResult(now, refused=f"The request cannot be read: {error}."))
                continue
            self.unverified.pop(name, None)
            if abs(now - petition.at) <= STANDS:
                yield petition
            else:
                self.answer(id_, ForwardedResult(now, refused=_late(petition, now)))

    def _read_heard(self, now: datetime) -> dict[str, datetime]:
        """When each request was heard that might still be young enough to be heard."""
        lines = (line.split(" ") for line in (self.keep.read(_HEARD_IDS) or "").splitlines())
        heard = {words[0]: datetime.fromisoformat(words[1]) for words in lines if len(words) == 2}
        return {id_: at for id_, at in heard.items() if abs(now - at) <= 2 * STANDS}

    def _note_heard(self, id_: str, now: datetime) -> None:
        heard = {**self._read_heard(now), id_: now}
        self.keep.write(_HEARD_IDS, "\n".join(f"{known} {at.isoformat()}" for known, at in heard.items()))


def _cleaned(petition: Petition) -> Petition:
    """Whoever may write below `requests/` chose these texts."""
    return replace(
        petition,
        caller=clean_identifier(petition.caller, CALLER.limit),
        reason=clean_text(petition.reason, REASON.limit),
        target=clean_text(petition.target, PATTERN.limit),
        guards=tuple(clean_identifier(guard, CALLER.limit) for guard in petition.guards),
        confirm=clean_text(petition.confirm, PATTERN.limit),
    )


def _late(petition: Petition, now: datetime) -> str:
    minutes = STANDS.total_seconds() / 60
    return (
        f"The request was made at {petition.at:%H:%M} UTC and found at {now:%H:%M} UTC; one is heard within "
        f"{minutes:.0f} minutes. Ask again, or set the clocks."
    )
