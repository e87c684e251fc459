"""A thread that serves only halts. It runs before it is needed, and only halts queue in it. All other requests share a
pool of threads, which waiting requests of any class may fill.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

import structlog
from starlette.concurrency import run_in_threadpool
from starlette.types import Scope as AsgiScope

from predrain.service.rest.caller_classes import CallerClass

ANSWER_SECONDS = 1.0
"""The time to write a halt. After it the halt is answered from memory, and its line of the audit comes later."""
CLASS_STATE = "caller_class"
LANE_STATE = "halt_lane"

Result = TypeVar("Result")


class HaltLane:
    """One thread, which starts with the object and ends with the process."""

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        threading.Thread(target=self._work, name="halt", daemon=True).start()

    async def run(self, work: Callable[..., Result], *args: Any) -> Result:
        """Carry out `work` in the thread and return its result. Raises what `work` raises."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Result] = loop.create_future()

        def job() -> None:
            try:
                result = work(*args)
            except Exception as error:  # noqa: BLE001  (whoever waits for it gets it)
                _settle_future_from_thread(loop, answer, partial(answer.set_exception, error))
            else:
                _settle_future_from_thread(loop, answer, partial(answer.set_result, result))

        self._jobs.put(job)
        return await answer

    def _work(self) -> None:
        while True:
            self._jobs.get()()


def _settle_future_from_thread(
    loop: asyncio.AbstractEventLoop, answer: asyncio.Future[Any], settle: Callable[[], None]
) -> None:
    def unless_cancelled() -> None:
        if not answer.done():
            settle()

    with suppress(RuntimeError):  # the loop has ended: no request waits any longer
        loop.call_soon_threadsafe(unless_cancelled)


async def run_within(
    scope: AsgiScope, seconds: float, work: Callable[..., Result], *args: Any
) -> Result | None:
    """Return the result of `run_blocking`, or None if it takes more than `seconds`. Then the work goes on by itself,
    before later work of the same thread.
    """
    task = asyncio.ensure_future(run_blocking(scope, work, *args))
    done, _ = await asyncio.wait({task}, timeout=seconds)
    if done:
        return task.result()
    _LATE.add(task)  # no other reference keeps the task alive
    task.add_done_callback(_tell_late)
    return None


_LATE: set[asyncio.Future[Any]] = set()


def _tell_late(task: asyncio.Future[Any]) -> None:
    _LATE.discard(task)
    error = None if task.cancelled() else task.exception()
    if error is not None:
        structlog.get_logger().error("a halt was answered before it was written", reason=str(error))


async def run_blocking(scope: AsgiScope, work: Callable[..., Result], *args: Any) -> Result:
    """Carry out `work` in the thread of halts if the request is a halt, else in the shared pool. Return its result."""
    state = scope.get("state", {})
    if state.get(CLASS_STATE) is CallerClass.HALT:
        lane: HaltLane = state[LANE_STATE]
        return await lane.run(work, *args)
    return await run_in_threadpool(work, *args)
