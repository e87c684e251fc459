"""The death of a process at a chosen call: a fuse on the commands and on the writes of store and cluster keys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from predrain.actions.cluster.cluster_port import Command, CommandResult
from predrain.actions.cluster.cluster_view import ClusterView
from tests.actions.made_config_keys import KeepInMemory
from tests.actions.run import Run

_WRITES = ("save_drain", "add_journal")


class Killed(BaseException):
    """The process is gone; nothing of it may run any more."""


class Fuse:
    """Counts calls that change something, and kills before or after the chosen one."""

    def __init__(self, at: int, *, after: bool) -> None:
        self.at, self.after, self.calls = at, after, 0

    def burn(self, call: Any, *arguments: Any) -> Any:
        self.calls += 1
        if self.calls == self.at and not self.after:
            raise Killed
        result = call(*arguments)
        if self.calls == self.at and self.after:
            raise Killed
        return result


class FusedCluster:
    """The cluster's port, with a fuse on every command."""

    def __init__(self, run: Run, fuse: Fuse) -> None:
        self.run, self.fuse = run, fuse

    def view(self) -> ClusterView:
        return self.run.watched.view()

    def apply(self, command: Command) -> CommandResult:
        answer: CommandResult = self.fuse.burn(self.run.watched.apply, command)
        return answer


class FusedStore:
    """The store, with a fuse on every write."""

    def __init__(self, run: Run, fuse: Fuse) -> None:
        self.run, self.fuse = run, fuse

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.run.store, name)
        return (lambda *arguments: self.fuse.burn(found, *arguments)) if name in _WRITES else found


@dataclass
class FusedKeep:
    """The config_key store of the cluster, with a fuse on every write."""

    real: KeepInMemory
    fuse: Fuse

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.real, name)
        return (lambda *given: self.fuse.burn(found, *given)) if name in ("write", "remove") else found
