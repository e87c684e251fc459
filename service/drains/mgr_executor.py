"""Draining by the mgr's hand: each command becomes a sealed step that the mgr module takes, judges and answers.

The service then needs a key that only reads. The hand is the one that acts and its module asks one service only, so
there is neither lease nor copy in the cluster; a halt that stands in the cluster comes with its questions.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path

import structlog

from predrain.actions.ceph_mgr.predrain.signing import KEY_MIN
from predrain.actions.ceph_mgr.predrain.steps import EXPIRY_MAX_SECONDS, RequestedStep, seal, text_of
from predrain.actions.cluster.port import (
    Cluster,
    ClusterUnreachable,
    Command,
    CommandResult,
    DeviceLight,
    PublishLife,
    WithdrawLife,
)
from predrain.actions.cluster.view import ClusterView
from predrain.actions.core.claimed_settings import found, key_of, same, value_of
from predrain.actions.core.state_machine import ACTIVE
from predrain.data.clock import Clock, lately
from predrain.data.drain import Drain
from predrain.data.refusal import Refusal
from predrain.data.setting import Setting
from predrain.data.store.port import Store
from predrain.service.access.acts import describe_act
from predrain.service.access.audit import Call, audit_line
from predrain.service.live_cluster import Live

PATIENCE_SECONDS = 20.0
"""How long a step is good for and waited for; the same, so that none is carried out after we gave up on it."""
ABSENT_AFTER = timedelta(seconds=15)
"""The module asks every second."""
NOBODY = "-"


class NoHandKey(Refusal):
    """The file with the key for steps holds none."""


class NobodyWaits(Refusal):
    """An answer to a step that is not waited for (any longer)."""


@dataclass(frozen=True, slots=True)
class Sealed:
    """A step as it goes out."""

    id: str
    text: str
    signature: str
    gives_back: bool = False
    """It clears a flag that a step set, which a halt does not stop."""


@dataclass(slots=True)
class _Waiting:
    sealed: Sealed
    done: threading.Event = field(default_factory=threading.Event)
    answer: CommandResult | None = None


class MgrExecutor:
    """Steps on their way to the mgr module and its answers. Any thread may call."""

    def __init__(self, key: str, clock: Clock, patience: float = PATIENCE_SECONDS) -> None:
        assert 0 < patience <= EXPIRY_MAX_SECONDS
        self._key, self._clock, self._patience = key, clock, patience
        self._waiting: dict[str, _Waiting] = {}
        self._lock = threading.Lock()
        self._asked_at: datetime | None = None

    @classmethod
    def with_key_of(cls, path: Path, clock: Clock) -> MgrExecutor:
        """With the key in `path`, the same that the module has. Raises NoHandKey."""
        try:
            key = path.read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise NoHandKey(f"{path} cannot be read ({error}); write the mgr's hand_key into it") from error
        if len(key) < KEY_MIN:
            raise NoHandKey(
                f"{path} holds no key of at least {KEY_MIN} letters; make one: openssl rand -base64 32"
            )
        return cls(key, clock)

    def absent(self) -> str:
        """Why no step would be taken now; empty while the module asks."""
        if self._asked_at is not None and lately(self._asked_at, self._clock.now(), ABSENT_AFTER):
            return ""
        since = f"since {self._asked_at:%H:%M:%S}Z" if self._asked_at else "yet"
        return f"the mgr module has not asked for steps {since}; see `ceph predrain status`"

    def carry(self, step: RequestedStep) -> CommandResult:
        """Have a step carried out. Its expiry is set here. Raises ClusterUnreachable when no answer came."""
        if why := self.absent():
            raise ClusterUnreachable(why)
        expires_at = self._clock.now().timestamp() + self._patience
        text = text_of(replace(step, expires_at=expires_at))
        waiting = _Waiting(Sealed(step.id, text, seal(self._key, text), step.gives_back))
        with self._lock:
            self._waiting[step.id] = waiting
        waiting.done.wait(self._patience)
        with self._lock:
            self._waiting.pop(step.id, None)
        if waiting.answer is None:
            raise ClusterUnreachable(f"the mgr module gave no answer within {self._patience:.0f} s")
        return waiting.answer

    def taken(self) -> tuple[Sealed, ...]:
        """What waits, oldest first; asking shows that the module is there."""
        with self._lock:
            self._asked_at = self._clock.now()
            return tuple(one.sealed for one in self._waiting.values() if one.answer is None)

    def answered(self, id_: str, answer: CommandResult) -> None:
        """What became of a step. Raises NobodyWaits."""
        with self._lock:
            waiting = self._waiting.get(id_)
            if waiting is None or waiting.answer is not None:
                raise NobodyWaits(f"no step {id_} waits for an answer; it was answered, or given up on")
            waiting.answer = answer
            waiting.done.set()


@dataclass(slots=True)
class HandCluster:
    """A cluster that is looked at with a key that only reads, and acted on by the mgr's hand.

    `drains`: as the store has them now; a step names the drain and revision whose ledger holds it.
    """

    looking: Cluster
    hand: MgrExecutor
    drains: Callable[[], Iterable[Drain]]
    record: Callable[[RequestedStep, str], None] = lambda _step, _answered: None
    """Puts a step and what was answered on record."""
    _view: ClusterView | None = None
    _written: dict[Setting, str] = field(default_factory=dict)
    """What was carried out since the last look, by its key: a step may set a flag and clear it."""
    _epoch: int = 0

    def view(self) -> ClusterView:
        """Look. Raises ClusterUnreachable; so too while a drain is under way and the hand is away."""
        self._view = self.looking.view()
        self._written.clear()
        self._epoch = max(self._epoch, self._view.epoch)
        if (why := self.hand.absent()) and any(drain.state in ACTIVE for drain in self.drains()):
            raise ClusterUnreachable(why)
        return self._view

    def apply(self, command: Command) -> CommandResult:
        """Have one command carried out. Raises ClusterUnreachable."""
        assert self._view is not None, "look before you act"
        key, value = key_of(command), value_of(command)
        owner = self._owner(key, value)
        step = RequestedStep(
            id=uuid.uuid4().hex,
            drain=owner.id if owner else NOBODY,
            revision=owner.revision if owner else 0,
            epoch=self._epoch,
            expires_at=0.0,
            key=str(key),
            value=value,
            expects=self._expected(command, self._view),
        )
        from predrain.actions.cluster.live import (
            LiveCluster,  # which a start without a cluster does not wait for
        )

        if isinstance(self.looking, LiveCluster):
            self.looking.reader.sent(command, self.looking.now())
        try:
            answer = self.hand.carry(step)
        except ClusterUnreachable as silent:
            self.record(step, f"no answer: {silent}")
            raise
        self.record(step, f"{'done' if answer.ok else 'refused'}: {answer.text}")
        self._epoch = max(self._epoch, answer.epoch or 0)
        if answer.ok:
            self._written[key] = value
        return answer

    def _expected(self, command: Command, view: ClusterView) -> str | None:
        """What the map holds where the command writes, by the last look and what was carried out since; None where no
        map shows it."""
        if isinstance(command, PublishLife | WithdrawLife | DeviceLight):
            return None
        key = key_of(command)
        return self._written.get(key, found(view, key))

    def _owner(self, key: Setting, value: str) -> Drain | None:
        """The drain whose ledger holds this write: it was stored before the command came here."""
        return next(
            (drain for drain in self.drains() if key in drain.ours and same(key, drain.ours[key], value)),
            None,
        )


def beyond_the_hand(why: str | None) -> str:
    """What a halt of the service, or its lifting (None), does not reach where the mgr's hand acts."""
    if why is None:
        return "A halt in the cluster itself, if there is one, stands; `ceph predrain unhalt` lifts both."
    return (
        f"The cluster's own key is not set, since this service may only read: a step that the mgr's hand has taken is "
        f"carried out within {PATIENCE_SECONDS:.0f} s still. `ceph predrain halt` stops the hand, too."
    )


def make_step_recorder(store: Store, clock: Clock) -> Callable[[RequestedStep, str], None]:
    """Appends steps to the audit of `store`. A step that was taken is taken: a store that is away is only logged."""

    def record(step: RequestedStep, answered: str) -> None:
        said = {
            "drain": step.drain,
            "revision": step.revision,
            "key": step.key,
            "value": step.value,
            "id": step.id,
        }
        call = Call("controller", "the mgr's hand", describe_act("step", said), answered)
        try:
            store.add_journal([audit_line(call, clock.now())])
        except (Refusal, OSError) as error:
            structlog.get_logger().error("a step is not on record", step=call.asked, why=str(error))

    return record


def delegate_steps(live: Live, hand: MgrExecutor, store: Store, clock: Clock) -> Live:
    """A live cluster that only looks by itself."""
    cluster = HandCluster(live.cluster, hand, store.drains, make_step_recorder(store, clock))
    return replace(live, cluster=cluster, keep=None, lease=None)
