"""Going back to the copy of the store that an upgrade made: what would be lost, what refuses it, and the act itself."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from predrain.actions.core.state_machine import ENDED
from predrain.data.clock import Clock
from predrain.data.drain import Drain, DrainState, JournalEntry
from predrain.data.refusal import Refusal
from predrain.data.store.sqlite_rollback import SinceCopy, compare_with_copy, find_copies, put_copy_in_place
from predrain.data.store.sqlite_store import version_of_file
from predrain.service.access.audit import THIS_MACHINE, AuditedCall, audit_line, was_refused
from predrain.service.access.canonical_requests import describe_act
from predrain.service.storage.audit_ends import RESTORE

_AT_REST = ENDED | {DrainState.PROPOSED}
"""The states of a drain that is not under way."""


class CannotGoBack(Refusal):
    """There is no copy to go back to, a drain is under way, or another list was confirmed. Nothing was changed."""


@dataclass(frozen=True, slots=True)
class StoreRollback:
    """One way back: from the file of version `held` to its copy of version `to`, which was made at `made_at`."""

    path: Path
    held: int
    to: int
    copy: Path
    made_at: datetime
    since: SinceCopy

    @property
    def acts(self) -> tuple[JournalEntry, ...]:
        """Return the lines of the audit since the copy whose acts were carried out."""
        return tuple(line for line in self.since.audit if not was_refused(line))

    @property
    def under_way(self) -> tuple[Drain, ...]:
        """Return the drains that are under way now."""
        return tuple(drain for drain in self.since.drains_now if drain.state not in _AT_REST)

    @property
    def begun_again(self) -> tuple[Drain, ...]:
        """Return the drains, as the copy has them, that were under way then and are not now."""
        now = {drain.id for drain in self.under_way}
        return tuple(
            drain for drain in self.since.drains_before if drain.state not in _AT_REST and drain.id not in now
        )

    @property
    def list_id(self) -> str:
        """Return twelve hex digits that name exactly this way back and what it loses."""
        since = self.since
        said = (
            *(self.held, self.to, self.made_at.isoformat(), since.readings, since.outcomes, since.halt),
            *((one.now.id, one.now.revision) for one in since.drains),
            *((line.at.isoformat(), line.decided) for line in since.audit),
        )
        return hashlib.sha256(f"store rollback 1\n{said!r}".encode()).hexdigest()[:12]

    def require_rest(self) -> None:
        """Raise CannotGoBack if a drain is under way now, or would be with the copy."""
        keep = f"`predrain store migrate --to {self.to}` goes back and keeps everything"
        if self.under_way:
            raise CannotGoBack(
                f"{_name_drains(self.under_way)}: an older predrain would not know how far it is. Let it end, or cancel"
                f" it (`predrain drain cancel ID`) and wait until all is back; {keep}"
            )
        if self.begun_again:
            raise CannotGoBack(
                f"the copy of before the upgrade holds drains as under way that have ended since:"
                f" {_name_drains(self.begun_again)}. An older predrain would begin them again; {keep}"
            )


def find_rollback(path: Path, to: int | None) -> StoreRollback:
    """Return the way back from the store's file to its copy of version `to` (None: the newest version below its own).

    Raises CannotGoBack, StoreUnreadable, StoreBusy.
    """
    held = version_of_file(path)
    older = {version: copy for version, copy in find_copies(path).items() if version < held}
    if not older or (to is not None and to not in older):
        there = (
            f"there are copies of version {', '.join(map(str, sorted(older)))}" if older else "there is none"
        )
        wanted = "an earlier version" if to is None else f"version {to}"
        raise CannotGoBack(
            f"the store {path} has version {held}, and no copy of {wanted} is beside it ({there}):"
            " `predrain store migrate --to VERSION` goes back without a copy"
        )
    version = max(older) if to is None else to
    copy = older[version]
    if (found := version_of_file(copy)) != version:
        raise CannotGoBack(
            f"{copy} has version {found} and not {version}: it is no copy of before an upgrade"
        )
    made_at = datetime.fromtimestamp(copy.stat().st_mtime, UTC)
    return StoreRollback(path, held, version, copy, made_at, compare_with_copy(path, copy))


def carry_out_rollback(rollback: StoreRollback, list_id: str, *, by: str, clock: Clock) -> Path:
    """Put the copy in the place of the store's file; return the name under which the newer file is kept.

    The caller holds the state directory. Raises CannotGoBack, and what data.store.sqlite_rollback raises.
    """
    rollback.require_rest()
    if list_id != rollback.list_id:
        raise CannotGoBack(
            f"the list is another one by now, with the id {rollback.list_id}: read it, and confirm that one"
        )
    said = {
        "made_at": rollback.made_at.isoformat(),
        "signed_by": None,
        "from_version": rollback.held,
        "to_version": rollback.to,
    }
    line = audit_line(AuditedCall(by, THIS_MACHINE, describe_act(RESTORE, said), "done"), clock.now())
    return put_copy_in_place(rollback.path, rollback.held, rollback.to, line)


def _name_drains(drains: tuple[Drain, ...]) -> str:
    return ", ".join(
        f"drain {drain.id} of {', '.join(f'osd.{osd}' for osd in drain.osds)} is {drain.state.value}"
        for drain in drains
    )
