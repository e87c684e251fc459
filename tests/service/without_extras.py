"""A Python process that lacks the packages of every extra, as it is after `pip install predrain`."""

from __future__ import annotations

import subprocess
import sys
import tomllib

from predrain.service.cli.missing_extras import DISTRIBUTION_OF, read_packages_of_extras
from tests.measure.source import ROOT

_MISSING = """
import importlib.metadata, re, sys
missing, renamed = {missing!r}, {renamed!r}
class NotInstalled:
    def find_spec(self, name, path=None, target=None):
        first = name.partition(".")[0]
        if re.sub("[-_.]+", "-", renamed.get(first, first)).lower() in missing:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, NotInstalled())
importlib.metadata.requires = lambda name: {requirements!r}
"""


def list_requirements() -> list[str]:
    """Return the requirements of the checkout, as the metadata of its wheel say them."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras: dict[str, list[str]] = project["optional-dependencies"]
    return [
        *project["dependencies"],
        *(f'{one}; extra == "{extra}"' for extra, required in extras.items() for one in required),
    ]


def run_without_extras(program: str, *, keep: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run Python code in a process that has the packages of the extra `keep` alone, or those of none."""
    packages = read_packages_of_extras(list_requirements())
    missing = frozenset[str]().union(*packages.values()) - packages.get(keep or "", frozenset())
    begin = _MISSING.format(missing=missing, renamed=dict(DISTRIBUTION_OF), requirements=list_requirements())
    return subprocess.run(
        [sys.executable, "-c", begin + program], capture_output=True, text=True, check=False, timeout=240
    )
