"""The house keeps its own rules: names that nobody else ships, rooms that say what they are for, no pickles."""

from __future__ import annotations

import ast
import importlib.metadata
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
OWN_CLOCK = {ROOT / "data" / "clock.py", ROOT / "actions" / "ceph_mgr" / "predrain" / "module.py"}
"""The clock itself, and what ceph-mgr starts: nobody hands it one."""
ROOMS = ("collector", "features", "models", "service", "actions", "data")


def _tracked(pattern: str) -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", pattern],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return [ROOT / line for line in listed.stdout.splitlines() if (ROOT / line).exists()]


@pytest.mark.slow
def test_no_installed_dependency_ships_one_of_our_top_level_names() -> None:
    taken = [
        f"{distribution.name} ships {file}"
        for distribution in importlib.metadata.distributions()
        if distribution.name != "predrain"
        for file in distribution.files or ()
        if file.parts[0] in ("predrain", "tests")
    ]
    assert taken == []


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_says_what_it_is_for(room: str) -> None:
    first = (ROOT / room / "__init__.py").read_text().splitlines()[0]
    assert re.match(rf'"""{room}: .+', first), f"{room}/__init__.py opens with: {first!r}"


def test_no_product_code_reads_or_writes_a_pickle() -> None:
    guilty = [
        path.relative_to(ROOT)
        for path in _tracked("*.py")
        if path.parts[len(ROOT.parts)] in ROOMS
        and re.search(r"^\s*(import|from) (pickle|joblib|cloudpickle)\b", path.read_text(), re.MULTILINE)
    ]
    assert guilty == []


CLIENT_SHAPES = ROOT / "service" / "client" / "shapes.py"
"""Its classes bear the names of the values whose JSON they read."""


def test_no_two_public_classes_have_one_name() -> None:
    places: dict[str, list[str]] = {}
    for path in _tracked("*.py"):
        if path.parts[len(ROOT.parts)] not in ROOMS or path == CLIENT_SHAPES:
            continue
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(str(path.relative_to(ROOT)))
    assert {name: paths for name, paths in places.items() if len(paths) > 1} == {}


LONGEST_BODY = 70
"""Lines of a function's body, without its signature and docstring."""


def test_no_function_has_grown_into_two_ideas() -> None:
    long = {
        f"{path.relative_to(ROOT)}:{function.lineno} {function.name}": lines
        for path in _tracked("*.py")
        for function in ast.walk(ast.parse(path.read_text()))
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        and (lines := _count_body_lines(function)) > LONGEST_BODY
    }
    assert long == {}


def _count_body_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    first = function.body[1 if ast.get_docstring(function) and len(function.body) > 1 else 0]
    return (function.end_lineno or 0) - first.lineno + 1


def test_no_room_but_service_reads_the_environment_or_the_clock() -> None:
    reads = re.compile(r"os\.environ|os\.getenv|datetime\.now\(|time\.time\(|datetime\.utcnow\(")
    guilty = [
        str(path.relative_to(ROOT))
        for path in _tracked("*.py")
        if path.parts[len(ROOT.parts)] in ROOMS
        and path.parts[len(ROOT.parts)] != "service"
        and path not in OWN_CLOCK
        and reads.search(path.read_text())
    ]
    assert guilty == []


def test_the_readme_names_the_two_commands() -> None:
    readme = (ROOT / "README.md").read_text()
    assert "make demo" in readme
    assert "make test" in readme


def test_every_make_target_explains_itself() -> None:
    makefile = (ROOT / "Makefile").read_text()
    phony = re.search(r"^\.PHONY: (.+)$", makefile, re.MULTILINE)
    assert phony is not None
    unexplained = [t for t in phony[1].split() if not re.search(rf"^{t}:.*## \S", makefile, re.MULTILINE)]
    assert unexplained == []


def test_every_test_file_has_a_name_of_its_own() -> None:
    """pytest imports them by name alone: of two with one name it would run the first and refuse the second."""
    names = [path.name for path in _tracked("tests/*.py") if path.name.startswith("test_")]
    assert sorted(name for name in set(names) if names.count(name) > 1) == []
