"""What a person asks of a controller that does not lead, laid in the cluster for the one that does.

A petition is a text `requests/ID` in the keep; the leader carries it out at its next look, writes `answers/ID`, then
removes the petition. Killed between any two of these it is carried out once more, so that must change nothing: what
already is as wished is answered with the drain as it stands (`fulfilled`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from actions.cluster.port import Damaged, Keep
from data.drain import Drain, DrainState, Intent
from data.wire.shape import Misshapen, Shape

STANDS = timedelta(minutes=10)
"""How long a petition may wait to be heard, and an answer to be read. Clocks differ by less: monitors see to that."""
REQUESTS, ANSWERS = "requests/", "answers/"
_AT_ONCE = 50
_LONGEST = 16_384


class Wish(StrEnum):
    """What may be asked."""

    PROPOSE = "propose"
    APPROVE = "approve"
    PAUSE = "pause"
    RESUME = "resume"
    CANCEL = "cancel"
    HAND_OVER = "hand_over"


@dataclass(frozen=True, slots=True)
class Petition:
    """One wish of one caller. `id`: unlike any other's. A proposal has a target, all others a drain."""

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


@dataclass(frozen=True, slots=True)
class Heard:
    """What became of a petition: the drain's id, or the sentence that refused it."""

    at: datetime
    drain: str = ""
    refused: str = ""


_PETITION, _HEARD = Shape(Petition), Shape(Heard)

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
    Wish.PAUSE: frozenset({DrainState.PAUSED}),
    Wish.CANCEL: frozenset({DrainState.CANCELLING, DrainState.CANCELLED}),
    Wish.HAND_OVER: frozenset({DrainState.HANDED_OVER}),
}


def fulfilled(petition: Petition, drain: Drain) -> bool:
    """Whether the drain already is as wished; of a proposal, whether the drain is the one that it made."""
    if petition.wish is not Wish.PROPOSE:
        return drain.state in _FULFILLED[petition.wish]
    asked = (petition.caller, petition.reason, petition.intent)
    return drain.state is DrainState.PROPOSED and asked == (drain.asked_by, drain.reason, drain.intent)


@dataclass(frozen=True, slots=True)
class Petitions:
    """Petitions and answers in a keep. Each method raises ClusterUnreachable."""

    keep: Keep

    def lay(self, petition: Petition) -> None:
        """Write it down for whoever leads. Raises Misshapen."""
        self.keep.write(REQUESTS + petition.id, _PETITION.write(petition).decode())

    def answer_to(self, id_: str) -> Heard | None:
        """The answer; None while there is none, or none that can be read."""
        text = self.keep.read(ANSWERS + id_)
        try:
            return None if text is None else _HEARD.read(text.encode())
        except Misshapen:
            return None

    def forget(self, id_: str) -> None:
        """Remove petition and answer: the caller knows."""
        self.keep.remove(REQUESTS + id_)
        self.keep.remove(ANSWERS + id_)

    def waiting(self, now: datetime) -> tuple[Petition, ...]:
        """Those to be carried out, oldest first. What is too old, or is no petition, is answered with a sentence."""
        return tuple(sorted(self._read(now), key=lambda petition: (petition.at, petition.id)))

    def answer(self, id_: str, heard: Heard) -> None:
        """Say what became of it; it waits no longer."""
        self.keep.write(ANSWERS + id_, _HEARD.write(heard).decode())
        self.keep.remove(REQUESTS + id_)

    def tidy(self, now: datetime) -> None:
        """Remove answers that nobody came for."""
        for name in self.keep.names(ANSWERS):
            heard = self.answer_to(name.removeprefix(ANSWERS))
            if heard is None or abs(now - heard.at) > STANDS:
                self.keep.remove(name)

    def _read(self, now: datetime) -> Iterator[Petition]:
        for name in self.keep.names(REQUESTS)[:_AT_ONCE]:
            id_ = name.removeprefix(REQUESTS)
            try:
                text = self.keep.read(name)
                if text is None:
                    continue
                if len(text) > _LONGEST:
                    raise Misshapen(f"it has {len(text)} letters, the most is {_LONGEST}")
                petition = _PETITION.read(text.encode())
                if petition.id != id_:
                    raise Misshapen("it lies under another name than its own")
            except (Damaged, Misshapen) as error:
                self.answer(id_, Heard(now, refused=f"The request cannot be read: {error}."))
                continue
            if abs(now - petition.at) <= STANDS:
                yield petition
            else:
                self.answer(id_, Heard(now, refused=_late(petition, now)))


def _late(petition: Petition, now: datetime) -> str:
    minutes = STANDS.total_seconds() / 60
    return (
        f"The request was made at {petition.at:%H:%M} UTC and found at {now:%H:%M} UTC; one is heard within "
        f"{minutes:.0f} minutes. Ask again, or set the clocks."
    )
