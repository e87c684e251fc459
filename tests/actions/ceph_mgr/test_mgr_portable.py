"""The mgr module runs where nothing of this house is: Python 3.9 of the release containers, and no package at all."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

import pytest

import actions.ceph_mgr.predrain as module

ROOT = Path(__file__).resolve().parents[3]
FILES = sorted(Path(str(module.__file__)).parent.glob("*.py"))
CEPHS_OWN = {"mgr_module"}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_file_of_the_module_is_grammar_of_python_3_9(file: Path) -> None:
    ast.parse(file.read_text(), feature_version=(3, 9))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_file_of_the_module_imports_the_standard_library_and_itself_alone(file: Path) -> None:
    for node in ast.walk(ast.parse(file.read_text())):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.level == 0:
            names = [str(node.module)]
        for name in names:
            assert name.split(".")[0] in sys.stdlib_module_names | CEPHS_OWN, name


def test_outside_ceph_mgr_the_package_is_imported_without_the_module() -> None:
    assert "mgr_module" not in sys.modules
    assert not hasattr(module, "Module")


@pytest.mark.parametrize(
    ("file", "named", "shown"),
    [
        ("module.py", r'CLI(?:Read|Write)Command\("predrain (\w+)"\)', r"`ceph predrain (?:\S*\|)?{}\b"),
        ("module.py", r'Option\(\s*name="(\w+)"', r"\| `{}` \|"),
        ("checks.py", r'"(PREDRAIN_\w+)"', r"\| `{}` \|"),
        ("orders.py", r'"prefix": f?"(?:osd )?([a-z-]+)', r"{}"),
    ],
    ids=["commands", "settings", "health checks", "what the hand does"],
)
def test_the_reference_tells_of_everything_that_is_there(file: str, named: str, shown: str) -> None:
    text = (ROOT / "docs" / "reference" / "mgr.md").read_text()
    names = re.findall(named, (FILES[0].parent / file).read_text())
    assert len(names) > 3
    for name in names:
        if name in ("set", "unset", "config", "crush", "rm-pg-upmap-items"):
            continue  # told in other words
        assert re.search(shown.format(name), text), name
