"""The trace of entered functions, on a small module whose functions are known."""

from __future__ import annotations

import importlib.util
import threading
from pathlib import Path
from types import ModuleType

import pytest

from tests.measure.__main__ import choose_exit_code, describe_figure
from tests.measure.figures import Figure, Measurement
from tests.measure.tracing import FunctionTrace, recording

SOURCE = """
class Answer:
    def __init__(self, number):
        self.number = number

class Unused: ...

def double(number):
    return sum([n for n in (number, number)])

def answer_question(number):
    class Local: ...
    return (Answer(double(number)),)

def look_below(below):
    return below()
"""


@pytest.fixture
def module(tmp_path: Path) -> ModuleType:
    path = tmp_path / "traced.py"
    path.write_text(SOURCE)
    spec = importlib.util.spec_from_file_location("traced_package", path)
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def start_trace(folder: Path, below: tuple[str, ...] = ()) -> FunctionTrace:
    return FunctionTrace(f"{folder}/", below, "traced_package", is_on=True)


def test_each_entered_function_is_counted_once_and_neither_comprehensions_nor_class_bodies(
    module: ModuleType, tmp_path: Path
) -> None:
    with recording(start_trace(tmp_path)) as trace:
        module.answer_question(1)
        module.answer_question(2)
    assert trace.list_functions() == [
        "traced.py Answer.__init__",
        "traced.py answer_question",
        "traced.py double",
    ]
    assert (trace.functions, trace.files) == (3, 1)


def test_functions_of_a_thread_that_starts_meanwhile_are_counted(module: ModuleType, tmp_path: Path) -> None:
    with recording(start_trace(tmp_path)) as trace:
        thread = threading.Thread(target=module.double, args=(1,))
        thread.start()
        thread.join()
    assert trace.list_functions() == ["traced.py double"]


def test_types_are_those_that_were_made_or_returned(module: ModuleType, tmp_path: Path) -> None:
    with recording(start_trace(tmp_path)) as trace:
        module.answer_question(1)
    assert trace.list_types() == ["traced_package.Answer"]


def test_functions_called_from_a_left_out_folder_are_left_out_of_the_trace(
    module: ModuleType, tmp_path: Path
) -> None:
    below = tmp_path / "below"
    below.mkdir()
    path = below / "simulated.py"
    path.write_text("def view(then):\n    return then(1)\n")
    code: dict[str, object] = {}
    exec(compile(path.read_text(), str(path), "exec"), code)
    with recording(start_trace(tmp_path, (f"{below}/",))) as trace:
        module.look_below(lambda: code["view"](module.double))  # type: ignore[operator]
        module.answer_question(1)
    assert "traced.py double" in trace.list_functions()
    assert not [name for name in trace.list_functions() if "simulated" in name]
    with recording(start_trace(tmp_path, (f"{below}/",))) as trace:
        module.look_below(lambda: code["view"](module.double))  # type: ignore[operator]
    assert trace.list_functions() == ["traced.py look_below"]


def test_a_trace_lasts_from_the_entry_of_one_function_to_the_return_of_another(
    module: ModuleType, tmp_path: Path
) -> None:
    trace = start_trace(tmp_path)
    trace.is_on = False
    trace.begins_at, trace.ends_at = module.answer_question.__code__, module.double.__code__
    with recording(trace):
        module.look_below(int)
        module.answer_question(1)
        module.answer_question(2)
    assert trace.list_functions() == ["traced.py answer_question", "traced.py double"]


def test_a_figure_over_its_limit_is_missed_and_one_without_a_limit_is_not_judged() -> None:
    over, at, free = Figure("a", 41.25, "%", 40.0), Figure("b", 40.0, "%", 40.0), Figure("c", 1e6, "lines")
    assert [describe_figure(one) for one in (over, at, free)] == [
        ("a", "41.2 %", "40 %", "missed"),
        ("b", "40.0 %", "40 %", "met"),
        ("c", "1,000,000 lines", "", ""),
    ]


def test_a_missed_limit_fails_the_command_only_when_it_is_strict() -> None:
    missed = Measurement((Figure("a", 41.0, "%", 40.0), Figure("b", 1.0, "%", 40.0)), ())
    met = Measurement((Figure("a", 40.0, "%", 40.0), Figure("c", 1e6, "lines")), ())
    assert [choose_exit_code(missed, strict=strict) for strict in (False, True)] == [0, 1]
    assert [choose_exit_code(met, strict=strict) for strict in (False, True)] == [0, 0]
