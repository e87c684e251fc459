"""The hand: takes sealed steps from the service, judges each by its own guards, carries it out, answers in a sentence.

A step is written to the store before its command goes out, and its answer after: one that was taken up once is never
carried out again, by this mgr or by the next.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

from .asking import Declined, Service, ask
from .cluster import MgrApi, Unread, halt_word, send, unstoppable, world
from .guards import StepVerdict, judge, lasting
from .kept_texts import read_kept, write_kept
from .orders import NotOnTheList, mon_commands, order
from .reading import Fields, NotBelieved
from .steps import EXPIRY_MAX_SECONDS, TEXT_MAX, NotOurs, RequestedStep, opened

STORE = "steps"
WAITING_MAX = 16
REMEMBERED_SECONDS = 2 * EXPIRY_MAX_SECONDS
SECONDS = 5.0


@dataclass(frozen=True)
class StepAnswer:
    """What became of a step. `refused`: by the hand itself, before anything was sent."""

    ok: bool
    text: str
    epoch: int | None = None
    refused: bool = False


@dataclass(frozen=True)
class Taken:
    """A step that was taken up at `at`; without an answer while its command is on the way."""

    at: float
    answer: StepAnswer | None = None


UNKNOWN = StepAnswer(False, "the mgr ended while it was carried out; whether it was done is not known")


class StepExecutor:
    """One hand over one cluster, used by `serve()` only."""

    def __init__(self, mgr: MgrApi) -> None:
        self._mgr = mgr
        self._taken: dict[str, Taken] | None = None
        self._waits: tuple[str, float] | None = None
        """Why what the last mgr kept is not believed, and until when no step is taken up therefore."""
        self.last = ""
        """What it did last, in a sentence."""

    def round(self, service: Service, key: str, now: float, peering_max: int) -> None:
        """Take what waits, and answer. Raises what `ask` raises, NotBelieved, Unread."""
        if not self._is_ready(key, now):
            return
        halted = halt_word(self._mgr)
        path = "hand/steps" if halted is None else "hand/steps?" + urlencode({"halted": halted})
        said = ask(service, "GET", path, seconds=SECONDS, limit=WAITING_MAX * 2 * TEXT_MAX)
        for row in Fields(said.body, "the steps").rows("items", WAITING_MAX):
            text, given = row.exact("step", TEXT_MAX), row.exact("signature", 64)
            id_, answer = self.consider(key, text, given, now, peering_max)
            if id_ and answer is not None:
                self._tell(service, id_, answer)

    def consider(
        self, key: str, text: str, given: str, now: float, peering_max: int
    ) -> tuple[str, StepAnswer | None]:
        """The step's id ("" where it cannot be known) and its answer; None while it waits."""
        try:
            step = opened(key, text, given)
        except NotOurs as error:
            return _claimed_id(text), self._say(
                "?", StepAnswer(False, f"the hand refuses it: {error}", refused=True)
            )
        if not self._is_ready(key, now):
            return step.id, None
        known = self._taken_up.get(step.id)
        if known is not None:
            return step.id, known.answer or UNKNOWN
        verdict = lasting(step, now)
        if verdict.word == "go":
            verdict, commands = self._judged(step, now, peering_max)
        else:
            commands = ()
        if verdict.word == "wait":
            return step.id, None
        if verdict.word == "refuse":
            answer = StepAnswer(False, f"the hand refuses it: {verdict.sentence}", refused=True)
        elif verdict.already:
            answer = StepAnswer(True, f"{step.key} is {step.value!r} already")
        else:
            self._note(key, step.id, Taken(now), now)
            answer = StepAnswer(*send(self._mgr, commands))
        self._note(key, step.id, Taken(now, answer), now)
        return step.id, self._say(step.key, answer)

    def _judged(
        self, step: RequestedStep, now: float, peering_max: int
    ) -> tuple[StepVerdict, tuple[dict[str, Any], ...]]:
        """The verdict, and the commands that it lets go."""
        try:
            wanted = order(step.key, step.value)
            halted = halt_word(self._mgr)
            sent = sum(
                1
                for one in self._taken_up.values()
                if now - 60 < one.at <= now and not (one.answer and one.answer.refused)
            )
            verdict = judge(step, wanted, world(self._mgr), halted, sent, peering_max)
            if verdict.word == "go" and not verdict.already and wanted.empties:
                veto = unstoppable(self._mgr, wanted.osd)
                if veto is not None:
                    verdict = StepVerdict("refuse", veto)
            return verdict, mon_commands(wanted)
        except (NotOnTheList, Unread) as error:
            return StepVerdict("refuse", str(error)), ()

    def _tell(self, service: Service, id_: str, answer: StepAnswer) -> None:
        body = {"ok": answer.ok, "text": answer.text, "epoch": answer.epoch, "refused": answer.refused}
        with suppress(Declined):  # it waits for the answer no longer
            ask(service, "POST", f"hand/steps/{quote(id_, safe='')}/answer", body, seconds=SECONDS)

    def _say(self, key: str, answer: StepAnswer) -> StepAnswer:
        self.last = f"{key}: {answer.text}"
        return answer

    def _note(self, key: str, id_: str, taken: Taken, now: float) -> None:
        self._taken = {k: one for k, one in self._taken_up.items() if one.at > now - REMEMBERED_SECONDS}
        self._taken[id_] = taken
        write_kept(self._mgr, STORE, key, _kept(self._taken))

    @property
    def _taken_up(self) -> dict[str, Taken]:
        """The steps that were taken up, by id."""
        return self._taken or {}

    def _is_ready(self, key: str, now: float) -> bool:
        """Whether it is known which steps were taken up. Where that was kept and is not believed, none is taken up
        until every step that may have been has expired.
        """
        if self._taken is None:
            found = read_kept(self._mgr, STORE, key)
            self._taken = _remembered(None if found.doubt else found.text)
            self._waits = (found.doubt, now + REMEMBERED_SECONDS) if found.doubt else None
        if self._waits is not None and now < self._waits[1]:
            self.last = f"{self._waits[0]}, and no step is taken up for {self._waits[1] - now:.0f} s"
            return False
        self._waits = None
        return True


def _kept(taken: Mapping[str, Taken]) -> str:
    return json.dumps(
        {
            id_: [
                one.at,
                one.answer and [one.answer.ok, one.answer.text[:80], one.answer.epoch, one.answer.refused],
            ]
            for id_, one in taken.items()
        }
    )


def _remembered(text: str | None) -> dict[str, Taken]:
    try:
        rows: dict[str, list[Any]] = json.loads(text or "{}")
        return {
            id_: Taken(
                float(at), StepAnswer(bool(said[0]), str(said[1]), said[2], bool(said[3])) if said else None
            )
            for id_, (at, said) in rows.items()
        }
    except (ValueError, TypeError, KeyError, IndexError, AttributeError):
        return {}


def _claimed_id(text: str) -> str:
    """The id of a text whose seal is wrong, only to be answered."""
    try:
        return Fields(json.loads(text), "the step").exact("id", 64)
    except (ValueError, RecursionError, NotBelieved):
        return ""
