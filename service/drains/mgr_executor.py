"""Drain through the mgr executor: each command becomes a signed step, which the mgr module fetches, checks and
answers.

The service then needs a key that only reads. The mgr executor alone acts, and its module asks one service only,
so there is neither a lease nor a copy in the cluster. A halt in the cluster arrives with the module's questions.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path

import structlog

from predrain.actions.ceph_mgr.predrain.signed_steps import (
    EXPIRY_MAX_SECONDS,
    RequestedStep,
    sign_step,
    text_of,
)
from predrain.actions.ceph_mgr.predrain.text_signing import KEY_MIN
from predrain.actions.cluster.cluster_port import (
    Cluster,
    ClusterUnreachable,
    Command,
    CommandResult,
    DeviceLight,
    PublishLife,
    WithdrawLife,
)
from predrain.actions.cluster.cluster_view import ClusterView
from predrain.actions.core.claimed_settings import is_same_setting_value, key_of, read_setting_value, value_of
from predrain.actions.core.state_machine import ACTIVE
from predrain.data.clock import Clock, is_within_last
from predrain.data.drain import Drain
from predrain.data.refusal import Refusal
from predrain.data.setting import Setting
from predrain.data.store.store_port import Store
from predrain.service.access.audit import AuditedCall, audit_line
from predrain.service.access.canonical_requests import describe_act
from predrain.service.drains.live_cluster import LiveClusterParts

PATIENCE_SECONDS = 20.0
"""The seconds for which a step is valid and is awaited; one value, so that no step is carried out after we gave
up on it.
"""
ABSENT_AFTER = timedelta(seconds=15)
"""Time without a question after which the module counts as absent; it asks every second."""
NOBODY = "-"


class NoMgrExecutorKey(Refusal):
    """The file with the key for steps is unreadable or holds no key."""


class StepNotAwaited(Refusal):
    """An answer to a step that is not awaited (any longer)."""


@dataclass(frozen=True, slots=True)
class OutgoingStep:
    """A step in the form in which the module fetches it."""

    id: str
    text: str
    signature: str
    gives_back: bool = False
    """True if the step clears a flag that an earlier step set; a halt does not stop such a step."""


@dataclass(slots=True)
class _Waiting:
    sealed: OutgoingStep
    done: threading.Event = field(default_factory=threading.Event)
    answer: CommandResult | None = None


class MgrExecutor:
    """Steps for the mgr module, and its answers. Any thread may call."""

    def __init__(self, key: str, clock: Clock, patience: float = PATIENCE_SECONDS) -> None:
        assert 0 < patience <= EXPIRY_MAX_SECONDS
        self._key, self._clock, self._patience = key, clock, patience
        self._waiting: dict[str, _Waiting] = {}
        self._lock = threading.Lock()
        self._asked_at: datetime | None = None

    @classmethod
    def with_key_of(cls, path: Path, clock: Clock) -> MgrExecutor:
        """Make an executor with the key in `path`, the same that the module has. Raises NoMgrExecutorKey."""
        try:
            key = path.read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise NoMgrExecutorKey(
                f"{path} cannot be read ({error}); write the mgr's executor_key into it"
            ) from error
        if len(key) < KEY_MIN:
            raise NoMgrExecutorKey(
                f"{path} holds no key of at least {KEY_MIN} letters; make one: openssl rand -base64 32"
            )
        return cls(key, clock)

    def explain_absence(self) -> str:
        """Return the reason why no step would be taken now; empty while the module asks."""
        if self._asked_at is not None and is_within_last(self._asked_at, self._clock.now(), ABSENT_AFTER):
            return ""
        since = f"since {self._asked_at:%H:%M:%S}Z" if self._asked_at else "yet"
        return f"the mgr module has not asked for steps {since}; see `ceph predrain status`"

    def carry_out_step(self, step: RequestedStep) -> CommandResult:
        """Have a step carried out; its expiry is set here. Raises ClusterUnreachable if no answer came."""
        if why := self.explain_absence():
            raise ClusterUnreachable(why)
        expires_at = self._clock.now().timestamp() + self._patience
        text = text_of(replace(step, expires_at=expires_at))
        waiting = _Waiting(OutgoingStep(step.id, text, sign_step(self._key, text), step.gives_back))
        with self._lock:
            self._waiting[step.id] = waiting
        waiting.done.wait(self._patience)
        with self._lock:
            self._waiting.pop(step.id, None)
        if waiting.answer is None:
            raise ClusterUnreachable(f"the mgr module gave no answer within {self._patience:.0f} s")
        return waiting.answer

    def fetch_waiting_steps(self) -> tuple[OutgoingStep, ...]:
        """Return the waiting steps, oldest first, and note that the module asked."""
        with self._lock:
            self._asked_at = self._clock.now()
            return tuple(one.sealed for one in self._waiting.values() if one.answer is None)

    def record_answer(self, id_: str, answer: CommandResult) -> None:
        """Record the result of a step. Raises StepNotAwaited."""
        with self._lock:
            waiting = self._waiting.get(id_)
            if waiting is None or waiting.answer is not None:
                raise StepNotAwaited(f"no step {id_} waits for an answer; it was answered, or given up on")
            waiting.answer = answer
            waiting.done.set()


@dataclass(slots=True)
class MgrExecutorCluster:
    """A cluster that is polled with a key that only reads, and changed through the mgr executor.

    `drains`: the drains that the store has now; a step names the drain and revision whose `ours` holds its value.
    """

    looking: Cluster
    hand: MgrExecutor
    drains: Callable[[], Iterable[Drain]]
    record: Callable[[RequestedStep, str], None] = lambda _step, _answered: None
    """Records a step and its answer in the audit."""
    _view: ClusterView | None = None
    _written: dict[Setting, str] = field(default_factory=dict)
    """The settings that were written since the last poll, since a step may set a flag and clear it."""
    _epoch: int = 0

    def view(self) -> ClusterView:
        """Poll the cluster. Raises ClusterUnreachable, also if a drain is active and the mgr executor is absent."""
        self._view = self.looking.view()
        self._written.clear()
        self._epoch = max(self._epoch, self._view.epoch)
        if (why := self.hand.explain_absence()) and any(drain.state in ACTIVE for drain in self.drains()):
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
        from predrain.actions.cluster.live_ceph import (
            LiveCluster,  # a start without a cluster does not wait for it
        )

        if isinstance(self.looking, LiveCluster):
            self.looking.reader.note_command(command, self.looking.now())
        try:
            answer = self.hand.carry_out_step(step)
        except ClusterUnreachable as silent:
            self.record(step, f"no answer: {silent}")
            raise
        self.record(step, f"{'done' if answer.ok else 'refused'}: {answer.text}")
        self._epoch = max(self._epoch, answer.epoch or 0)
        if answer.ok:
            self._written[key] = value
        return answer

    def _expected(self, command: Command, view: ClusterView) -> str | None:
        """Return the value that the map holds for the command's setting, by the last poll and the writes since.

        Returns None for a setting that no map shows.
        """
        if isinstance(command, PublishLife | WithdrawLife | DeviceLight):
            return None
        key = key_of(command)
        return self._written.get(key, read_setting_value(view, key))

    def _owner(self, key: Setting, value: str) -> Drain | None:
        """Return the drain whose `ours` holds this write: it was stored before the command came here."""
        return next(
            (
                drain
                for drain in self.drains()
                if key in drain.ours and is_same_setting_value(key, drain.ours[key], value)
            ),
            None,
        )


def beyond_the_hand(why: str | None) -> str:
    """Return what a halt of the service, or its lifting (None), does not reach if the mgr executor acts."""
    if why is None:
        return "A halt in the cluster itself, if there is one, stands; `ceph predrain unhalt` lifts both."
    return (
        f"The cluster's own key is not set, since this service may only read: a step that the mgr executor has taken "
        f"is carried out within {PATIENCE_SECONDS:.0f} s still. `ceph predrain halt` stops the mgr executor, too."
    )


def make_step_recorder(store: Store, clock: Clock) -> Callable[[RequestedStep, str], None]:
    """Return a function that appends steps to the audit of `store`.

    A step that was taken stays taken, so a failure of the store is only logged.
    """

    def record(step: RequestedStep, answered: str) -> None:
        said = {
            "drain": step.drain,
            "revision": step.revision,
            "key": step.key,
            "value": step.value,
            "id": step.id,
        }
        call = AuditedCall("controller", "mgr executor", describe_act("step", said), answered)
        try:
            store.add_journal([audit_line(call, clock.now())])
        except (Refusal, OSError) as error:
            structlog.get_logger().error("a step is not on record", step=call.asked, reason=str(error))

    return record


def delegate_steps(live: LiveClusterParts, hand: MgrExecutor, store: Store, clock: Clock) -> LiveClusterParts:
    """Return the live cluster with its commands delegated to the mgr executor."""
    cluster = MgrExecutorCluster(live.cluster, hand, store.drains, make_step_recorder(store, clock))
    return replace(live, cluster=cluster, keep=None, lease=None)
