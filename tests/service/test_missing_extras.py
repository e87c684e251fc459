"""A command whose packages are not installed says which extra of predrain holds them."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib

import pytest

from predrain.service.cli.missing_extras import EXTRA_OF
from tests.measure.source import ROOT


def _read_extras() -> dict[str, list[str]]:
    return dict(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"])


def test_every_package_of_an_extra_is_in_the_table_with_an_extra_that_holds_it() -> None:
    held = {
        extra: {re.split(r"[\[><=]", requirement)[0] for requirement in requirements}
        for extra, requirements in _read_extras().items()
    }
    required = {name for names in held.values() for name in names} - {"predrain"}
    required.add("pydantic")  # the settings' own, through pydantic-settings
    held["service"].add("pydantic")
    assert {distribution for distribution, _ in EXTRA_OF.values()} == required
    assert [name for name, extra in EXTRA_OF.values() if name not in held[extra]] == []


@pytest.mark.parametrize(
    ("package", "command", "sentence"),
    [
        ("numpy", ["train", "missing.parquet", "--out", "bundle"], r"numpy.*predrain\[ml\]"),
        ("uvicorn", ["up"], r"uvicorn.*predrain\[service\]"),
        ("pydantic_settings", ["drain", "list"], r"pydantic-settings.*predrain\[service\]"),
        ("predrain.service.processes.up", ["up"], "holds the collector alone"),
    ],
)
@pytest.mark.slow
def test_a_command_without_its_packages_names_the_extra_to_install(
    package: str, command: list[str], sentence: str, tmp_path: object
) -> None:
    program = (
        f"import sys; sys.modules[{package!r}] = None\n"
        f"from predrain.service.cli import main; sys.exit(main({command!r}))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd=str(tmp_path)
    )
    assert ran.returncode == 1
    assert re.search(sentence, ran.stderr), ran.stderr
    assert "Traceback" not in ran.stderr
