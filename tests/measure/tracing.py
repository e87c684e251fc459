"""Records which functions of the product a piece of work enters, in every thread.

A function is a code object that a `def` made. Comprehensions, generator expressions, lambdas, class bodies and modules
are not counted: they belong to the function around them, or run once at an import. Python 3.11 has no
`sys.monitoring`, so `sys.setprofile` and `threading.setprofile` are used: a thread that was started before `recording`
is not seen, unless it is the current one.
"""

from __future__ import annotations

import inspect
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import predrain

PRODUCT = f"{Path(predrain.__file__).parent}/"
"""Where the product's files lie, as code objects name them."""
SIMULATOR = f"{PRODUCT}actions/simulator/"
"""The simulated cluster stands where a service has a real one: what it does is not the service's work."""


@dataclass(slots=True)
class FunctionTrace:
    """The functions that were entered, and the types of the values that they made or returned.

    `below`: folders whose functions are left out, with all that they call. `begins_at`, `ends_at`: the function at
    whose entry the recording is switched on, and the one at whose first return it is switched off for good.
    """

    product: str = PRODUCT
    below: Sequence[str] = (SIMULATOR,)
    package: str = "predrain"
    begins_at: CodeType | None = None
    ends_at: CodeType | None = None
    is_on: bool = False
    is_over: bool = False
    codes: set[CodeType] = field(default_factory=set)
    types: set[type] = field(default_factory=set)
    _muted_by: dict[int, FrameType] = field(default_factory=dict)
    """By thread: the frame under which nothing is recorded."""

    @property
    def functions(self) -> int:
        """The number of functions that were entered."""
        return len(self.codes)

    @property
    def files(self) -> int:
        """The number of files that hold these functions."""
        return len({code.co_filename for code in self.codes})

    def list_functions(self) -> list[str]:
        """List the functions that were entered, by file and name."""
        return sorted(
            f"{code.co_filename.removeprefix(self.product)} {code.co_qualname}" for code in self.codes
        )

    def list_types(self) -> list[str]:
        """List the types that were met, by module and name."""
        return sorted(f"{one.__module__.removeprefix('predrain.')}.{one.__qualname__}" for one in self.types)

    def note_event(self, frame: FrameType, event: str, value: Any) -> None:
        """Take one event of the interpreter's profiler."""
        thread = threading.get_ident()
        muted_by = self._muted_by.get(thread)
        if muted_by is not None:
            if event == "return" and frame is muted_by:
                del self._muted_by[thread]
            return
        if event == "call":
            self._note_call(frame, thread)
        elif event == "return" and self.is_on and frame.f_code in self.codes:
            self._note_value(value)
            if frame.f_code is self.ends_at:
                self.is_on, self.is_over = False, True

    def _note_call(self, frame: FrameType, thread: int) -> None:
        code = frame.f_code
        if code is self.begins_at and not self.is_over:
            self.is_on = True
        if any(code.co_filename.startswith(folder) for folder in self.below):
            self._muted_by[thread] = frame
        elif self.is_on:
            if code.co_name == "__init__" and code.co_argcount:
                self._note_type(type(frame.f_locals.get(code.co_varnames[0])))
            if code.co_filename.startswith(self.product) and is_function(code):
                self.codes.add(code)

    def _note_value(self, value: Any) -> None:
        """Note the type of a returned value, and of what a container of at most one level holds."""
        self._note_type(type(value))
        if isinstance(value, tuple | list | set | frozenset):
            self.types.update(kind for one in value if self._is_ours(kind := type(one)))
        elif type(value) is dict:
            self.types.update(kind for one in value.values() if self._is_ours(kind := type(one)))

    def _note_type(self, kind: type) -> None:
        if self._is_ours(kind):
            self.types.add(kind)

    def _is_ours(self, kind: type) -> bool:
        return kind.__module__ == self.package or kind.__module__.startswith(f"{self.package}.")


def is_function(code: CodeType) -> bool:
    """Tell whether a `def` made the code object: class bodies and modules lack the flag, the others a name."""
    return bool(code.co_flags & inspect.CO_OPTIMIZED) and not code.co_name.startswith("<")


@contextmanager
def recording(trace: FunctionTrace) -> Iterator[FunctionTrace]:
    """Let `trace` see every call of this thread and of threads that start meanwhile; it notes them while `is_on`."""
    # A profiler that is set already, such as that of a coverage tool, is set again afterwards.
    before, before_in_threads = sys.getprofile(), threading.getprofile()
    threading.setprofile(trace.note_event)
    sys.setprofile(trace.note_event)
    try:
        yield trace
    finally:
        sys.setprofile(before)
        threading.setprofile(before_in_threads)
        trace.is_on = False
