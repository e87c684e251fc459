"""The mgr executor: takes signed steps from the service, judges each by its own guards, executes it and reports.

A step is written to the store before its command is sent, and its answer afterwards. A step that was begun is
never executed a second time, by this mgr or by the next.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

from .accepted_steps import UnknownStepKind, mon_commands, parse_order
from .json_fields import Fields, InvalidField
from .kept_texts import read_kept, write_kept
from .mgr_commands import (
    CephStateUnknown,
    MgrApi,
    find_ok_to_stop_objection,
    halt_word,
    read_mgr_view,
    send_mon_commands,
)
from .service_requests import Declined, Service, send_service_request
from .signed_steps import EXPIRY_MAX_SECONDS, TEXT_MAX, RequestedStep, UnsignedStep, parse_signed_step
from .step_guards import StepVerdict, check_step_expiry, judge_step

STORE = "steps"
WAITING_MAX = 16
REMEMBERED_SECONDS = 2 * EXPIRY_MAX_SECONDS
SECONDS = 5.0


@dataclass(frozen=True)
class StepAnswer:
    """The result of a step. `refused`: the mgr executor refused it before anything was sent."""

    ok: bool
    text: str
    epoch: int | None = None
    refused: bool = False


@dataclass(frozen=True)
class TakenStep:
    """A step that was begun at `at`. It has no answer while its command runs."""

    at: float
    answer: StepAnswer | None = None


UNKNOWN = StepAnswer(False, "the mgr ended while it was carried out; whether it was done is not known")


class StepExecutor:
    """The mgr executor of one cluster. Only `serve()` uses it."""

    def __init__(self, mgr: MgrApi) -> None:
        self._mgr = mgr
        self._taken: dict[str, TakenStep] | None = None
        self._waits: tuple[str, float] | None = None
        """The reason why the last mgr's record of steps is not used, and the time until which no step is begun
        because of that.
        """
        self.last = ""
        """The last action, as a sentence."""

    def execute_waiting_steps(self, service: Service, key: str, now: float, peering_max: int) -> None:
        """Fetch the waiting steps, execute them and report their answers.

        Raises what `send_service_request` raises, InvalidField and CephStateUnknown.
        """
        if not self._is_ready(key, now):
            return
        halted = halt_word(self._mgr)
        path = "executor/steps" if halted is None else "executor/steps?" + urlencode({"halted": halted})
        said = send_service_request(service, "GET", path, seconds=SECONDS, limit=WAITING_MAX * 2 * TEXT_MAX)
        for row in Fields(said.body, "the steps").rows("items", WAITING_MAX):
            text, given = row.exact_text("step", TEXT_MAX), row.exact_text("signature", 64)
            id_, answer = self.execute_step(key, text, given, now, peering_max)
            if id_ and answer is not None:
                self._tell(service, id_, answer)

    def execute_step(
        self, key: str, text: str, given: str, now: float, peering_max: int
    ) -> tuple[str, StepAnswer | None]:
        """Execute one step. Return its id ("" if unknown) and its answer (None while the step waits)."""
        try:
            step = parse_signed_step(key, text, given)
        except UnsignedStep as error:
            return _claimed_id(text), self._say(
                "?", StepAnswer(False, f"the mgr executor refuses it: {error}", refused=True)
            )
        if not self._is_ready(key, now):
            return step.id, None
        known = self._taken_up.get(step.id)
        if known is not None:
            return step.id, known.answer or UNKNOWN
        verdict = check_step_expiry(step, now)
        if verdict.word == "go":
            verdict, commands = self._judged(step, now, peering_max)
        else:
            commands = ()
        if verdict.word == "wait":
            return step.id, None
        if verdict.word == "refuse":
            answer = StepAnswer(False, f"the mgr executor refuses it: {verdict.sentence}", refused=True)
        elif verdict.already:
            answer = StepAnswer(True, f"{step.key} is {step.value!r} already")
        else:
            self._note(key, step.id, TakenStep(now), now)
            answer = StepAnswer(*send_mon_commands(self._mgr, commands))
        self._note(key, step.id, TakenStep(now, answer), now)
        return step.id, self._say(step.key, answer)

    def _judged(
        self, step: RequestedStep, now: float, peering_max: int
    ) -> tuple[StepVerdict, tuple[dict[str, Any], ...]]:
        """Return the verdict and the step's commands."""
        try:
            wanted = parse_order(step.key, step.value)
            halted = halt_word(self._mgr)
            sent = sum(
                1
                for one in self._taken_up.values()
                if now - 60 < one.at <= now and not (one.answer and one.answer.refused)
            )
            verdict = judge_step(step, wanted, read_mgr_view(self._mgr), halted, sent, peering_max)
            if verdict.word == "go" and not verdict.already and wanted.empties_osd:
                veto = find_ok_to_stop_objection(self._mgr, wanted.osd)
                if veto is not None:
                    verdict = StepVerdict("refuse", veto)
            return verdict, mon_commands(wanted)
        except (UnknownStepKind, CephStateUnknown) as error:
            return StepVerdict("refuse", str(error)), ()

    def _tell(self, service: Service, id_: str, answer: StepAnswer) -> None:
        body = {"ok": answer.ok, "text": answer.text, "epoch": answer.epoch, "refused": answer.refused}
        with suppress(Declined):  # the service no longer waits for the answer
            send_service_request(
                service, "POST", f"executor/steps/{quote(id_, safe='')}/result", body, seconds=SECONDS
            )

    def _say(self, key: str, answer: StepAnswer) -> StepAnswer:
        self.last = f"{key}: {answer.text}"
        return answer

    def _note(self, key: str, id_: str, taken: TakenStep, now: float) -> None:
        self._taken = {k: one for k, one in self._taken_up.items() if one.at > now - REMEMBERED_SECONDS}
        self._taken[id_] = taken
        write_kept(self._mgr, STORE, key, _encode_taken_steps(self._taken))

    @property
    def _taken_up(self) -> dict[str, TakenStep]:
        """Return the steps that were begun, by id."""
        return self._taken or {}

    def _is_ready(self, key: str, now: float) -> bool:
        """Return whether the steps that were begun are known. If the stored record of them is not used, no step is
        begun until every step that it may hold has expired.
        """
        if self._taken is None:
            found = read_kept(self._mgr, STORE, key)
            self._taken = _decode_taken_steps(None if found.doubt else found.text)
            self._waits = (found.doubt, now + REMEMBERED_SECONDS) if found.doubt else None
        if self._waits is not None and now < self._waits[1]:
            self.last = f"{self._waits[0]}, and no step is taken up for {self._waits[1] - now:.0f} s"
            return False
        self._waits = None
        return True


def _encode_taken_steps(taken: Mapping[str, TakenStep]) -> str:
    return json.dumps(
        {
            id_: [
                one.at,
                one.answer and [one.answer.ok, one.answer.text[:80], one.answer.epoch, one.answer.refused],
            ]
            for id_, one in taken.items()
        }
    )


def _decode_taken_steps(text: str | None) -> dict[str, TakenStep]:
    try:
        rows: dict[str, list[Any]] = json.loads(text or "{}")
        return {
            id_: TakenStep(
                float(at), StepAnswer(bool(said[0]), str(said[1]), said[2], bool(said[3])) if said else None
            )
            for id_, (at, said) in rows.items()
        }
    except (ValueError, TypeError, KeyError, IndexError, AttributeError):
        return {}


def _claimed_id(text: str) -> str:
    """Return the id that a text with a wrong signature claims. It serves only to answer the text."""
    try:
        return Fields(json.loads(text), "the step").exact_text("id", 64)
    except (ValueError, RecursionError, InvalidField):
        return ""
