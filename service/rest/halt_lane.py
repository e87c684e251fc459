"""A thread that serves halts and nothing else: it is there before it is needed, and nobody queues in it but other
halts. Everything else shares a pool of threads, which callers of any class may fill with what waits.
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
"""A halt that is not written within this time is answered from memory, and its line of the audit comes later."""
CLASS_STATE = "caller_class"
LANE_STATE = "halt_lane"

Result = TypeVar("Result")


class HaltLane:
    """One thread that starts with the object and ends with the process."""

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        threading.Thread(target=self._work, name="halt", daemon=True).start()

    async def run(self, work: Callable[..., Result], *args: Any) -> Result:
        """What `work` returns, carried out in the thread. Raises what it raises."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Result] = loop.create_future()

        def job() -> None:
            try:
                result = work(*args)
            except Exception as error:  # noqa: BLE001  (whoever waits for it gets it)
                _settle(loop, answer, partial(answer.set_exception, error))
            else:
                _settle(loop, answer, partial(answer.set_result, result))

        self._jobs.put(job)
        return await answer

    def _work(self) -> None:
        while True:
            self._jobs.get()()


def _settle(loop: asyncio.AbstractEventLoop, answer: asyncio.Future[Any], settle: Callable[[], None]) -> None:
    def unless_cancelled() -> None:
        if not answer.done():
            settle()

    with suppress(RuntimeError):  # the loop has ended: nobody waits any longer
        loop.call_soon_threadsafe(unless_cancelled)


async def run_within(
    scope: AsgiScope, seconds: float, work: Callable[..., Result], *args: Any
) -> Result | None:
    """What `run_blocking` gives, or None where it takes more than `seconds`: then the work goes on by itself, before
    what comes later into the same thread.
    """
    task = asyncio.ensure_future(run_blocking(scope, work, *args))
    done, _ = await asyncio.wait({task}, timeout=seconds)
    if done:
        return task.result()
    _LATE.add(task)  # nobody else holds it
    task.add_done_callback(_tell_late)
    return None


_LATE: set[asyncio.Future[Any]] = set()


def _tell_late(task: asyncio.Future[Any]) -> None:
    _LATE.discard(task)
    error = None if task.cancelled() else task.exception()
    if error is not None:
        structlog.get_logger().error("a halt was answered before it was written", why=str(error))


async def run_blocking(scope: AsgiScope, work: Callable[..., Result], *args: Any) -> Result:
    """What `work` returns, in the thread of halts where the request is one, else in the shared pool."""
    state = scope.get("state", {})
    if state.get(CLASS_STATE) is CallerClass.HALT:
        lane: HaltLane = state[LANE_STATE]
        return await lane.run(work, *args)
    return await run_in_threadpool(work, *args)
