"""Runs programs that may hang, side by side, each with a deadline, a bounded output and its own process group."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from predrain.data.smart import LARGEST_DOCUMENT

KEPT_WORDS = 4096
"""Bytes that are kept of a program's stderr."""

_ENVIRONMENT = {"LC_ALL": "C", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}  # C: decimal points, not commas
_PIECE = 1 << 16
_TICK_SECONDS = 0.02
_REAPING_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class ProgramCall:
    """One program to run: its absolute path and arguments, without a shell."""

    key: str
    """The object of the program. A second program of the same key does not run while an earlier one is alive."""
    argv: Sequence[str]
    start_after: float = 0.0
    """Earliest start in seconds after the first job; jobs come in this order."""


@dataclass(frozen=True, slots=True)
class ProcessResult:
    """The result of one run."""

    status: int | None
    """Exit status; None if the program did not exit by itself."""
    out: bytes = b""
    """Standard output; empty if the program was ended because it was late or printed too much."""
    err: str = ""
    why: str | None = None
    """The failure, worded to follow the program's name: `did not answer within 60 s`."""
    begun: bool = True
    """False if there was no such program, or no right to run it."""
    denied: bool = False
    """True if the right to run the program was missing."""
    late: bool = False
    """True if the program did not answer in time."""


class Programs:
    """Runs programs, and remembers those that could not be ended."""

    def __init__(self, parallel: int, ending: signal.Signals = signal.SIGKILL) -> None:
        """Set the number of programs that run at once, and the signal that ends a late program (`ending`).

        Under sudo the signal is SIGTERM: sudo passes it on to the program, which belongs to root and cannot be
        signalled from here. A sudo that is killed leaves its program behind.
        """
        self._parallel, self._ending = parallel, ending
        self._left: dict[str, subprocess.Popen[bytes]] = {}

    def run(self, jobs: Iterable[ProgramCall], seconds: float) -> Iterator[tuple[str, ProcessResult]]:
        """Run `jobs`, each for at most `seconds`, and yield the key and the result of each as it ends.

        The next job is taken from `jobs` only when it can start. A program that is killed at its deadline and does
        not end (it waits inside the kernel, or belongs to root) is left behind and delays no other. Closing the
        iterator kills the running programs.
        """
        waiting, begun = iter(jobs), time.monotonic()
        following = next(waiting, None)
        running: list[_Running] = []
        with selectors.DefaultSelector() as pipes:
            try:
                while running or following is not None:
                    ended: list[tuple[str, ProcessResult]] = []
                    while (
                        following
                        and len(running) < self._parallel
                        and begun + following.start_after <= time.monotonic()
                    ):
                        started = self._start(following, seconds, pipes)
                        if isinstance(started, ProcessResult):
                            ended.append((following.key, started))
                        else:
                            running.append(started)
                        following = next(waiting, None)
                    for ready, _ in pipes.select(
                        0 if ended else _compute_select_timeout(running, following, begun)
                    ):
                        ready.data.read(ready.fd)
                    for each in tuple(running):
                        if (end := each.poll_result(time.monotonic(), seconds)) is not None:
                            running.remove(each)
                            self._remember(each)
                            ended.append((each.key, end))
                    told = time.monotonic()
                    yield from ended
                    # The time that the caller takes is not counted against the programs.
                    for each in running:
                        each.deadline += time.monotonic() - told
            finally:
                for each in running:
                    each.stop()
                    self._remember(each)

    def _start(
        self, job: ProgramCall, seconds: float, pipes: selectors.BaseSelector
    ) -> _Running | ProcessResult:
        if (left := self._left.get(job.key)) is not None:
            if left.poll() is None:
                return ProcessResult(None, why="still hangs from an earlier look", late=True)
            del self._left[job.key]
        try:
            return _Running(job, time.monotonic() + seconds, pipes, self._ending)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            why, denied = f"could not be run ({job.argv[0]}: {reason})", isinstance(error, PermissionError)
            return ProcessResult(None, why=why, begun=False, denied=denied)

    def _remember(self, run: _Running) -> None:
        if run.process.returncode is None:
            self._left[run.key] = run.process


def _compute_select_timeout(
    running: Sequence[_Running], following: ProgramCall | None, begun: float
) -> float:
    if running or following is None:
        return _TICK_SECONDS
    return max(0.0, begun + following.start_after - time.monotonic())


class _Running:
    """A started program."""

    def __init__(
        self, job: ProgramCall, deadline: float, pipes: selectors.BaseSelector, ending: signal.Signals
    ) -> None:
        """Start the program. Raises OSError or ValueError when it cannot be started."""
        self.key, self.deadline = job.key, deadline
        self._pipes, self._ending = pipes, ending
        self.process = subprocess.Popen(  # noqa: S603 - a fixed program, no shell
            list(job.argv), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            bufsize=0, start_new_session=True, env=_ENVIRONMENT, cwd="/",
        )  # fmt: skip
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        self._out, self._err = self.process.stdout, self.process.stderr
        self._pieces: list[bytes] = []
        self._size = 0
        self._words = b""
        self._why: str | None = None
        self._late = False
        self._killed = 0.0
        for pipe in (self._out, self._err):
            os.set_blocking(pipe.fileno(), False)
            pipes.register(pipe, selectors.EVENT_READ, self)

    def read(self, descriptor: int) -> bool:
        """Read one piece from a pipe. Return whether there may be more."""
        try:
            piece = os.read(descriptor, _PIECE)
        except BlockingIOError:
            return False
        if not piece:
            with contextlib.suppress(KeyError):
                self._pipes.unregister(descriptor)
            return False
        if descriptor == self._err.fileno():
            self._words = (self._words + piece)[-KEPT_WORDS:]
        elif self._size + len(piece) > LARGEST_DOCUMENT:
            self.kill(f"printed more than {LARGEST_DOCUMENT // 2**20} MiB")
            return False
        else:
            self._size += len(piece)
            self._pieces.append(piece)
        return True

    def poll_result(self, now: float, seconds: float) -> ProcessResult | None:
        """Return the result, or None while the program may go on. A late program is killed here."""
        # The program is not reaped yet: until then no other process can have the number of its group.
        if os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            if self._why is None and now > self.deadline:
                self.kill(f"did not answer within {seconds:g} s")
                self._late = True
            if self._why is None or now < self._killed + _REAPING_SECONDS:
                return None
            return self._ended(None)
        while self._why is None and self.read(self._out.fileno()):
            pass
        self.read(self._err.fileno())
        self._signal()
        status = self.process.wait()
        if self._why is None and status < 0:
            self._why = f"was ended by signal {-status}"
        return self._ended(status if status >= 0 else None)

    def kill(self, why: str) -> None:
        """End the program and all that it started, as far as this process may."""
        if self._why is None:
            self._why, self._killed = why, time.monotonic()
            self._pieces.clear()
            self._signal()

    def stop(self) -> None:
        """End the program early."""
        self.kill("was stopped")
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(_REAPING_SECONDS)
        self._ended(None)

    def _signal(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, self._ending)

    def _ended(self, status: int | None) -> ProcessResult:
        for pipe in (self._out, self._err):
            with contextlib.suppress(KeyError):
                self._pipes.unregister(pipe)
            pipe.close()
        words = self._words.decode("utf-8", "replace").strip()
        return ProcessResult(status, b"".join(self._pieces), words, self._why, late=self._late)
