"""A command whose packages are not installed says in one sentence which extra of predrain holds them."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

import pytest

from predrain.service.cli.command_catalogue import list_commands
from predrain.service.cli.missing_extras import (
    DISTRIBUTION_OF,
    choose_extra,
    name_installation,
    normalize_name,
    read_packages_of_extras,
)
from tests.measure.source import list_product_files
from tests.service.without_extras import list_requirements, run_without_extras

OF_CEPH = {"rados", "ceph_argparse", "mgr_module", "bcrypt"}
"""The modules that the cluster's own packages bring."""


def run_main(words: list[str]) -> str:
    """Return the code that runs a command."""
    return f"from predrain.service.cli import main; sys.exit(main({words!r}))"


def find_foreign_imports(file: Path) -> set[str]:
    """Return the first words of the absolute imports of a file that are neither Python's nor predrain's."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            found |= {one.name.partition(".")[0] for one in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.partition(".")[0])
    return found - set(sys.stdlib_module_names) - {"predrain"} - OF_CEPH


def test_every_package_that_the_code_imports_is_required_always_or_by_an_extra() -> None:
    requirements = list_requirements()
    held = frozenset[str]().union(*read_packages_of_extras(requirements).values())
    held |= {normalize_name(re.split(r"[\[><=;]", one)[0]) for one in requirements if "extra ==" not in one}
    imported = {name for file in list_product_files() for name in find_foreign_imports(file)}
    assert {name for name in imported if normalize_name(DISTRIBUTION_OF.get(name, name)) not in held} == set()
    assert set(DISTRIBUTION_OF) <= imported


def test_an_extra_has_the_packages_of_those_that_it_includes() -> None:
    packages = read_packages_of_extras(
        ["rich>=15", 'numpy>=2; extra == "ml"', "Foo_Bar>=1; extra == 'all'", 'predrain[ml]; extra == "all"']
    )
    assert packages == {"ml": {"numpy"}, "all": {"foo-bar", "numpy"}}


def test_the_extra_of_the_command_is_named_if_it_has_the_package_and_else_the_smallest_that_has_it() -> None:
    packages = read_packages_of_extras(list_requirements())
    assert choose_extra(packages, "numpy", "service") == "service"
    assert choose_extra(packages, "numpy", "ml") == "ml"
    assert choose_extra(packages, "matplotlib", "service") == "report"
    assert choose_extra(packages, "zstandard", "ml") == "kafka"
    assert choose_extra(packages, "greenlet", "service") is None


@pytest.mark.parametrize(
    ("receipt", "line"),
    [
        (None, "pip install 'predrain[ml]'"),
        ("uv-receipt.toml", "uv tool install 'predrain[ml]'"),
        ("pipx_metadata.json", "pipx install --force 'predrain[ml]'"),
    ],
)
def test_the_sentence_has_the_words_of_the_installer_that_made_the_environment(
    receipt: str | None, line: str, tmp_path: Path
) -> None:
    if receipt:
        (tmp_path / receipt).touch()
    assert name_installation("ml", tmp_path) == line


@pytest.mark.parametrize(
    ("extra", "line"),
    [("ml", "dnf install predrain-training"), ("tracking", "pip install 'predrain[tracking]'")],
)
def test_the_service_package_names_the_package_for_training(extra: str, line: str, tmp_path: Path) -> None:
    (tmp_path / "package-installer").write_text("dnf install\n")
    assert name_installation(extra, tmp_path) == line


@pytest.mark.parametrize(
    ("command", "needed"),
    [
        (["up"], "service"),
        (["store", "status"], "service"),
        (["models", "list"], "service"),
        (["policy", "preview"], "service"),
        (["backtest", "none.parquet", "--split", "2018-01-01"], "service"),
        (["train", "none.parquet", "--out", "bundle"], "ml"),
        (["data", "import", "backblaze", "none.csv"], "ml"),
    ],
)
@pytest.mark.slow
def test_a_command_names_the_one_extra_that_it_needs(command: list[str], needed: str, tmp_path: Path) -> None:
    program = f"import os; os.chdir({str(tmp_path)!r})\n{run_main(command)}"
    bare = run_without_extras(program)
    assert bare.returncode == 1
    assert re.fullmatch(
        rf"predrain: `predrain {command[0]}` needs \S+, which is not installed: pip install 'predrain\[{needed}\]'\n",
        bare.stderr,
    ), bare.stderr
    if command != ["up"]:  # it would run until it is stopped
        enough = run_without_extras(program, keep=needed)
        assert "is not installed" not in enough.stderr, enough.stderr


@pytest.mark.slow
def test_a_command_that_asks_a_service_says_how_to_name_one() -> None:
    asked = run_without_extras(run_main(["disks"]))
    assert asked.returncode == 1
    assert re.search(r"--url.*pip install 'predrain\[service\]'", asked.stderr), asked.stderr


@pytest.mark.slow
def test_the_package_of_the_collector_names_the_other_package() -> None:
    program = "import sys; sys.modules['predrain.service.processes.up'] = None\n"
    asked = run_without_extras(program + run_main(["up"]), keep="service")
    assert (asked.returncode, "holds the collector alone" in asked.stderr) == (1, True), asked.stderr


@pytest.mark.slow
def test_every_command_is_listed_and_explained_without_any_extra() -> None:
    program = (
        "from predrain.service.cli import main\n"
        "from predrain.service.cli.command_catalogue import list_commands\n"
        "for page in list_commands():\n"
        "    print(*page.words)\n"
        "    assert main([*page.words, '--help']) == 0, page.words\n"
    )
    listed = run_without_extras(program)
    assert listed.returncode == 0, listed.stderr
    words = {" ".join(page.words) for page in list_commands()}
    assert len(words) > 50
    assert words <= set(listed.stdout.splitlines())
