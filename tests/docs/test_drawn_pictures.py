"""The pictures of the architecture show what the code is now."""

from __future__ import annotations

import ast
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from tests.docs.imports import PackageUnit, arrange_units, find_clusters, read_contracts, read_imports
from tests.docs.pages import DOCS
from tests.docs.pictures import FOLDER, PICTURES
from tests.docs.reading_way import ROWS, BrokenLink, Link, Stage, check_way, is_called, name_module
from tests.measure.source import ROOT


@pytest.mark.slow
@pytest.mark.parametrize("name", PICTURES)
def test_a_committed_picture_is_what_the_code_draws_now(name: str) -> None:
    assert (FOLDER / name).read_text() == PICTURES[name](), "run: .venv/bin/python -m tests.docs.write"


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_well_formed_and_describes_itself(name: str) -> None:
    root = ET.parse(FOLDER / name).getroot()
    described = root.find("{http://www.w3.org/2000/svg}desc")
    assert described is not None
    assert described.text
    assert f"pictures/{name}" in (DOCS / "architecture.md").read_text()


def test_every_function_of_the_way_stands_in_the_file_that_the_picture_names() -> None:
    for stage in (stage for row in ROWS for stage in row):
        for piece in stage.pieces:
            names = {
                node.name
                for node in ast.walk(ast.parse((ROOT / name_module(piece)).read_text()))
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
            }
            assert piece.__name__ in names, f"{name_module(piece)} has no {piece.__name__}"


def test_a_call_that_the_code_does_not_make_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert is_called(check_way, is_called)
    assert not is_called(is_called, check_way)
    broken = Stage("made up", (is_called, check_way))
    monkeypatch.setattr("tests.docs.reading_way.ROWS", (*ROWS, (broken,)))
    with pytest.raises(BrokenLink, match="is_called does not call check_way"):
        check_way()


def test_a_medium_that_the_code_does_not_know_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    link = Link(check_way, is_called, "the post", lambda: False)
    broken = Stage("made up", (check_way, is_called), (link,))
    monkeypatch.setattr("tests.docs.reading_way.ROWS", ((broken,),))
    with pytest.raises(BrokenLink, match="through the post"):
        check_way()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A package of three subpackages, of which two import each other and the third is imported by both."""
    for name, text in {
        "high": "from predrain.actions.middle import thing\n",
        "middle": "def find():\n    from predrain.actions import high\n\nimport predrain.actions.low.part\n",
        "low": "from predrain.data.reading import Reading\nimport json\n",
    }.items():
        folder = tmp_path / "actions" / name
        folder.mkdir(parents=True)
        (folder / "part.py").write_text(text)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "reading.py").write_text("class Reading: ...\n")
    return tmp_path


def test_imports_are_read_with_those_inside_functions(checkout: Path) -> None:
    found = read_imports(checkout, sorted(checkout.rglob("*.py")))
    high, middle, low = (PackageUnit("actions", name) for name in ("high", "middle", "low"))
    assert found.imports == {(high, middle), (middle, high), (middle, low), (low, PackageUnit("data"))}
    assert found.find_package_imports() == {("actions", "data")}


def test_subpackages_that_import_each_other_share_a_level_above_what_they_import(checkout: Path) -> None:
    found = read_imports(checkout, sorted(checkout.rglob("*.py")))
    high, middle, low = (PackageUnit("actions", name) for name in ("high", "middle", "low"))
    assert find_clusters(found.list_units("actions"), found) == [(high, middle), (low,)]
    free = read_contracts(_write_contracts(checkout, inner=""))
    assert arrange_units(found, "actions", free) == [[(high, middle)], [(low,)]]


def test_a_contract_of_levels_decides_before_the_imports_do(checkout: Path) -> None:
    found = read_imports(checkout, sorted(checkout.rglob("*.py")))
    high, middle, low = (PackageUnit("actions", name) for name in ("high", "middle", "low"))
    inner = '[[tool.importlinter.contracts]]\ntype = "layers"\ncontainers = ["predrain.actions"]\n'
    contracts = read_contracts(_write_contracts(checkout, f'{inner}layers = ["high", "low : middle"]\n'))
    assert arrange_units(found, "actions", contracts) == [[(high,)], [(low,), (middle,)]]


def test_a_package_may_import_a_lower_one_unless_a_contract_forbids_it() -> None:
    contracts = read_contracts()
    assert contracts.allows("service", "data")
    assert not contracts.allows("data", "service")
    assert not contracts.allows("actions", "features")


def _write_contracts(folder: Path, inner: str) -> Path:
    path = folder / "pyproject.toml"
    path.write_text(
        '[[tool.importlinter.contracts]]\ntype = "layers"\nlayers = ["predrain.actions", "predrain.data"]\n'
        + inner
    )
    return path
