"""Checks one package and those that import it: `python -m tests.rooms actions`, which `make check ROOM=actions` runs.

Format, lint, import contracts, both type checkers on the package and on those that import it, and the package's quick
tests, side by side. With warm caches it takes less than a minute on two idle cores.
"""

from __future__ import annotations

import sys

from tests import check_runner

IMPORTERS = {
    "data": ("features", "models", "actions", "collector", "service"),
    "features": ("models", "service"),
    "models": ("service",),
    "actions": ("service",),
    "collector": ("service",),
    "service": (),
}
"""Which packages import a package; the import contracts of pyproject.toml allow no others."""
TESTS = {
    "data": ("tests/data",),
    "features": ("tests/features",),
    "models": ("tests/models",),
    "actions": ("tests/actions", "tests/properties"),
    "collector": ("tests/collector",),
    "service": ("tests/service",),
}


def list_parts(room: str) -> list[str]:
    """Return the parts for `tests.check_runner`, each as NAME=COMMAND."""
    checked = (room, *IMPORTERS[room])
    packages = " ".join(f"-p predrain.{name}" for name in checked)
    return [
        f"quick-tests=.venv/bin/pytest -n 2 --dist worksteal -m 'not slow and not system' {' '.join(TESTS[room])}",
        "format=.venv/bin/ruff format --check -q . && .venv/bin/ruff check -q .",
        "layers=.venv/bin/lint-imports --no-logo",
        f"mypy=.venv/bin/mypy {packages}",
        f"basedpyright=.venv/bin/basedpyright --level error {' '.join(f'predrain/{name}' for name in checked)}",
    ]


def main(words: list[str]) -> int:
    """Check the package that is named."""
    if len(words) != 1 or words[0] not in IMPORTERS:
        print(f"name one package: make check ROOM={'|'.join(IMPORTERS)}", file=sys.stderr)
        return 2
    return check_runner.main([*list_parts(words[0]), "--last", "--minutes", "1"])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
