"""Programs under a deadline: side by side, spread, bounded, and none of them able to hold up the others."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from predrain.collector.disks.process import KEPT_WORDS, ProcessResult, ProgramCall, Programs
from predrain.data.smart import LARGEST_DOCUMENT
from tests.processes import ends


def _shell(key: str, words: str, start_after: float = 0) -> ProgramCall:
    return ProgramCall(key, ("/bin/sh", "-c", words), start_after)


def _run(*jobs: ProgramCall, parallel: int = 4, seconds: float = 20) -> dict[str, ProcessResult]:
    return dict(Programs(parallel).run(jobs, seconds))


def test_output_words_and_status_come_back_apart() -> None:
    assert _run(_shell("a", "echo out; echo err >&2; exit 68"))["a"] == ProcessResult(68, b"out\n", "err")


@settings(max_examples=15)
@given(size=st.integers(0, 300_000), words=st.integers(0, 20_000))
def test_output_of_any_size_is_whole_and_words_are_bounded(size: int, words: int) -> None:
    ended = _run(_shell("a", f"head -c {words} /dev/zero | tr '\\0' e >&2; head -c {size} /dev/zero"))["a"]
    assert ended.out == bytes(size)
    assert ended.err == "e" * min(words, KEPT_WORDS)


def test_output_is_bounded_to_the_byte() -> None:
    most = _run(
        _shell("a", f"head -c {LARGEST_DOCUMENT} /dev/zero"),
        _shell("b", f"head -c {LARGEST_DOCUMENT + 1} /dev/zero"),
    )
    assert most["a"].why is None
    assert most["b"].why == "printed more than 16 MiB"


@pytest.mark.slow
def test_a_hung_one_takes_its_children_with_it(tmp_path: Path) -> None:
    mark = tmp_path / "child"
    ended = _run(_shell("a", f"sleep 1000 & echo $! > {mark}; trap '' TERM; wait"), seconds=2.0)["a"]
    assert ended.why == "did not answer within 2 s"
    assert ends(int(mark.read_text()))


def test_no_more_run_at_once_than_allowed_and_the_next_is_taken_when_there_is_room(tmp_path: Path) -> None:
    count = f"cd {tmp_path}; touch $$; ls | wc -l; sleep 0.05; rm $$"
    ended = _run(*(_shell(str(i), count) for i in range(12)), parallel=3)
    at_once = [int(each.out) for each in ended.values()]
    assert len(at_once) == 12
    assert max(at_once) <= 3


@pytest.mark.slow
def test_one_that_hangs_lets_the_others_finish_first() -> None:
    jobs = [_shell("hung", "sleep 1000"), *(_shell(str(i), "true") for i in range(8))]
    order = [key for key, _ in Programs(2).run(jobs, 1.5)]
    assert order[-1] == "hung"


def test_starts_are_spread() -> None:
    begun = time.time()
    ended = _run(_shell("now", "date +%s.%N"), _shell("later", "date +%s.%N", 0.5))
    assert float(ended["later"].out) >= begun + 0.5


@pytest.mark.slow
def test_a_caller_that_takes_results_slowly_makes_no_program_miss_its_deadline() -> None:
    def slowly() -> Iterator[tuple[str, ProcessResult]]:
        for told in Programs(2).run(
            [_shell("a", "true"), _shell("b", "head -c 300000 /dev/zero; sleep 0.2")], 0.8
        ):
            time.sleep(1)
            yield told

    assert dict(slowly())["b"] == ProcessResult(0, bytes(300_000))


def test_a_program_that_cannot_be_started_is_reported_and_the_others_run() -> None:
    ended = _run(
        ProgramCall("a", ("/nowhere/smartctl",)), ProgramCall("b", ("/bin/true\0",)), _shell("c", "echo c")
    )
    assert ended["a"].why == "could not be run (/nowhere/smartctl: No such file or directory)"
    assert "could not be run" in (ended["b"].why or "")
    assert ended["c"].out == b"c\n"


def test_programs_see_no_input_no_environment_and_an_unlocalised_world(monkeypatch: object) -> None:
    ended = _run(_shell("a", "cat; env | cut -d= -f1 | sort | tr '\\n' ' '; pwd"))["a"]
    assert ended.out.decode().split() == ["LC_ALL", "PATH", "PWD", "/"]
