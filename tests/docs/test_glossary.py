"""The glossary names where each of predrain's own words is in the code."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

GLOSSARY = Path(__file__).parents[2] / "docs" / "glossary.md"
NAMED = sorted(set(re.findall(r"`((?:actions|data|models|service)\.[\w.]+)`", GLOSSARY.read_text())))


@pytest.mark.parametrize("name", NAMED)
def test_a_class_or_module_that_the_glossary_names_exists(name: str) -> None:
    parts = name.split(".")
    if parts[-1][0].isupper():
        assert hasattr(import_module(f"predrain.{'.'.join(parts[:-1])}"), parts[-1])
    else:
        import_module(f"predrain.{name}")


def test_each_word_of_the_glossary_is_explained_once() -> None:
    rows = [row.split("|") for row in GLOSSARY.read_text().splitlines() if row.startswith("| ")][1:]
    words = [row[1].strip() for row in rows]
    assert len(words) == len(set(words)) > 12
    assert all(row[2].strip() and "`" in row[3] for row in rows)
