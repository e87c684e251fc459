"""Loops of a service: the first wait, and the end."""

from __future__ import annotations

import threading

from predrain.service.runtime.periodic_threads import PeriodicThreads


def begin_loop(first_seconds: float) -> tuple[PeriodicThreads, threading.Event]:
    loops, begun = PeriodicThreads(lambda: None), threading.Event()

    def step() -> None:
        begun.set()
        loops.wait(600.0)

    loops.start_loop("loop", step, first_seconds=first_seconds)
    return loops, begun


def test_a_loop_begins_after_its_first_wait() -> None:
    loops, begun = begin_loop(first_seconds=0.01)
    assert begun.wait(60.0)
    loops.request_stop()
    loops.join(60.0)


def test_a_loop_that_is_stopped_in_its_first_wait_never_begins() -> None:
    loops, begun = begin_loop(first_seconds=600.0)
    assert not begun.wait(0.2)
    loops.request_stop()
    loops.join(60.0)
    assert not begun.is_set()
    assert not any(thread.is_alive() for thread in loops._threads)
