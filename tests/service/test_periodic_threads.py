"""Loops of a service: the first wait, and the end."""

from __future__ import annotations

import threading

from predrain.service.runtime.periodic_threads import PeriodicThreads


def begin_loop(
    first_seconds: float, first_after: threading.Event | None = None
) -> tuple[PeriodicThreads, threading.Event]:
    loops, begun = PeriodicThreads(lambda: None), threading.Event()

    def step() -> None:
        begun.set()
        loops.wait(600.0)

    loops.start_loop("loop", step, first_seconds=first_seconds, first_after=first_after)
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


def test_a_loop_begins_once_the_event_that_it_waits_for_is_set() -> None:
    ready = threading.Event()
    loops, begun = begin_loop(first_seconds=600.0, first_after=ready)
    assert not begun.wait(0.2)
    ready.set()
    assert begun.wait(60.0)
    loops.request_stop()
    loops.join(60.0)


def test_a_loop_begins_after_its_first_wait_though_its_event_is_never_set() -> None:
    loops, begun = begin_loop(first_seconds=0.01, first_after=threading.Event())
    assert begun.wait(60.0)
    loops.request_stop()
    loops.join(60.0)


def test_a_loop_that_is_stopped_while_it_waits_for_an_event_never_begins() -> None:
    loops, begun = begin_loop(first_seconds=600.0, first_after=threading.Event())
    loops.request_stop()
    loops.join(60.0)
    assert not begun.is_set()
    assert not any(thread.is_alive() for thread in loops._threads)
