"""The mgr module runs without the application: on Python 3.9 of the release containers, and without any package."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import predrain.actions.ceph_mgr.predrain as module

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
        ("health_checks.py", r'"(PREDRAIN_\w+)"', r"\| `{}` \|"),
        ("accepted_steps.py", r'"prefix": f?"(?:osd )?([a-z-]+)', r"{}"),
    ],
    ids=["commands", "settings", "health checks", "what the executor does"],
)
def test_the_reference_tells_of_everything_that_is_there(file: str, named: str, shown: str) -> None:
    text = (ROOT / "docs" / "reference" / "mgr.md").read_text()
    names = re.findall(named, (FILES[0].parent / file).read_text())
    assert len(names) > 3
    for name in names:
        if name in ("set", "unset", "config", "crush", "rm-pg-upmap-items"):
            continue  # described in other words
        assert re.search(shown.format(name), text), name


def test_ceph_mgr_loads_the_module_beside_an_installed_package_of_the_same_name(tmp_path: Path) -> None:
    """ceph-mgr puts its folder of modules before the packages of its interpreter (PyModule::load)."""
    modules = tmp_path / "mgr"
    modules.mkdir()
    (modules / "predrain").symlink_to(FILES[0].parent, target_is_directory=True)
    (modules / "mgr_module.py").write_text(
        "class MgrModule: pass\n"
        "def HandleCommandResult(*args, **kwargs): pass\n"
        "def Option(**kwargs): return kwargs\n"
        "def CLICommand(*args, **kwargs): return lambda function: function\n"
        "CLIReadCommand = CLIWriteCommand = CLICommand\n"
    )
    told = "import sys, predrain; print(predrain.__file__, predrain.Module.__name__, *sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", told],
        cwd=tmp_path,  # an empty folder: -c puts the current one first
        env={"PYTHONPATH": f"{modules}:{ROOT}"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert loaded[:2] == [str(modules / "predrain" / "__init__.py"), "Module"]
    assert not {"predrain.service", "predrain.actions", "predrain.data"} & set(loaded)
