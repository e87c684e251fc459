"""The extra of predrain that a missing package belongs to, so that a command can say what to install.

The extras and their packages are read from the metadata of the installed predrain.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from importlib import metadata
from pathlib import Path
from typing import Final

DISTRIBUTION_OF: Final[Mapping[str, str]] = {
    "kafka": "kafka-python",
    "mlflow": "mlflow-skinny",
    "sklearn": "scikit-learn",
}
"""The distribution of a package that is imported under another name. Metadata do not tell it of what is missing."""

SMALLER_EXTRA: Final[Mapping[str, str]] = {
    "collect": "collector",
    "data": "ml",
    "evaluate": "ml",
    "score": "ml",
    "train": "ml",
}
"""The extra with which a command runs, by its first word. The other commands run with `service`."""

_REQUIREMENT = re.compile(r"(?P<name>[\w.-]+)\s*(?:\[(?P<extras>[^]]*)\])?")
_EXTRA_OF_MARKER = re.compile(r"""\bextra\s*==\s*["']([\w.-]+)["']""")
_RECEIPTS: Final[Mapping[str, str]] = {
    "uv-receipt.toml": "uv tool install",
    "pipx_metadata.json": "pipx install --force",
}
"""The file that an installer of commands leaves in the environment, and the words by which it installs again."""
PACKAGE_INSTALLER: Final = "package-installer"
"""The file in the environment of the service's package that holds the words by which a host installs packages."""
TRAINING_PACKAGE: Final = "predrain-training"
"""The package that brings all that the service's package lacks of the extras that it is made of."""


def explain_missing_package(error: ImportError, words: Iterable[str]) -> str | None:
    """Return the sentence that names the extra to install for the command `words`, or None if no package of an extra
    is missing.

    Cyclopts wraps the error of a command's module in another one.
    """
    missing: BaseException | None = error
    while missing is not None and not isinstance(missing, ModuleNotFoundError):
        missing = missing.__cause__
    imported = (missing.name or "").partition(".")[0] if missing is not None else ""
    if imported == "predrain":
        return "this package of predrain holds the collector alone: install the service's package for this command"
    command = next((word for word in words if not word.startswith("-")), "")
    packages = read_packages_of_extras(metadata.requires("predrain") or ())
    distribution = normalize_name(DISTRIBUTION_OF.get(imported, imported))
    extra = choose_extra(packages, distribution, SMALLER_EXTRA.get(command, "service"))
    if extra is None:
        return None
    return f"`predrain {command}` needs {distribution}, which is not installed: {name_installation(extra)}"


def name_installation(extra: str, environment: Path = Path(sys.prefix)) -> str:
    """Return the command line that adds an extra to the environment that predrain is installed in."""
    packaged = environment / PACKAGE_INSTALLER
    if extra in ("ml", "service") and packaged.exists():
        return f"{packaged.read_text().strip()} {TRAINING_PACKAGE}"
    installer = next(
        (line for file, line in _RECEIPTS.items() if (environment / file).exists()), "pip install"
    )
    return f"{installer} 'predrain[{extra}]'"


def choose_extra(packages: Mapping[str, frozenset[str]], distribution: str, wanted: str) -> str | None:
    """Return the extra `wanted` if it has the distribution, else the smallest one that has it; None if none has."""
    having = [extra for extra, names in packages.items() if distribution in names]
    return (
        wanted if wanted in having else min(having, key=lambda one: (len(packages[one]), one), default=None)
    )


def read_packages_of_extras(requirements: Iterable[str]) -> dict[str, frozenset[str]]:
    """Return the distributions of each extra, with those of the extras that it includes.

    `requirements` are those of predrain's metadata, such as `predrain[kafka]; extra == "service"`.
    """
    direct: dict[str, set[str]] = {}
    included: dict[str, set[str]] = {}
    for requirement in requirements:
        marker, read = _EXTRA_OF_MARKER.search(requirement), _REQUIREMENT.match(requirement)
        if marker is None or read is None:
            continue
        name = normalize_name(read["name"])
        if name == "predrain":
            others = (one.strip() for one in (read["extras"] or "").split(","))
            included.setdefault(marker[1], set()).update(others)
        else:
            direct.setdefault(marker[1], set()).add(name)

    def collect(extra: str) -> frozenset[str]:
        return frozenset(direct.get(extra, ())).union(*(collect(one) for one in included.get(extra, ())))

    return {extra: collect(extra) for extra in direct.keys() | included.keys()}


def normalize_name(name: str) -> str:
    """Return the name of a distribution in the one form in which names are compared."""
    return re.sub(r"[-_.]+", "-", name).lower()
