"""The names that people and programs meet: those that were renamed are gone from every reference."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from predrain.service.config.renamed_settings import RENAMED

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "reference" / "renamed-settings-and-fields.md").read_text()
OWN_WORDS = (
    "drain", "intent", "outlook", "bundle", "landmark", "guard", "hold", "halt", "walk", "ladder", "fill", "quarantine",
    "base, claim", "ways out", "insist", "fast maps", "notch", "cause", "announcement", "advice, prescription", "fate",
    "residence", "slot", "scorebook", "concern", "mgr executor", "mass suspicion",
)  # fmt: skip
"""The words of settings, REST, commands and metrics that are predrain's own."""


def rows_of(section: str) -> list[tuple[str, ...]]:
    text = PAGE.split(f"## {section}\n")[1].split("\n## ")[0]
    return [
        tuple(re.findall(r"`([^`]+)`", line))
        for line in text.splitlines()
        if line.startswith("| ") and "`" in line
    ]


def reference(name: str) -> str:
    return (DOCS / "reference" / name).read_text()


def properties_of(body: str) -> set[str]:
    schemas = json.loads(reference("openapi.json"))["components"]["schemas"]
    return set(schemas[body]["properties"])


@pytest.mark.parametrize("word", OWN_WORDS)
def test_a_word_that_stays_predrains_own_is_in_the_glossary(word: str) -> None:
    assert re.search(rf"^\| {re.escape(word)} \|", (DOCS / "glossary.md").read_text(), re.MULTILINE)


def test_the_page_of_renamed_names_lists_every_renamed_setting() -> None:
    assert set(rows_of("Settings")) == set(RENAMED.items())


@pytest.mark.parametrize(("old", "new"), rows_of("Settings"))
def test_the_reference_of_settings_has_the_new_name_alone(old: str, new: str) -> None:
    keys = re.findall(r"^\| `([a-z_]+\.[a-z_]+)` \|", reference("settings.md"), re.MULTILINE)
    assert new in keys
    assert old not in keys


@pytest.mark.parametrize(("body", "old", "new"), rows_of("Fields of REST"))
def test_a_body_of_rest_has_the_new_field_alone(body: str, old: str, new: str) -> None:
    assert new in properties_of(body)
    assert old not in properties_of(body)


@pytest.mark.parametrize(("old", "new"), rows_of("Routes and headers of REST"))
def test_rest_has_the_new_route_or_header_alone(old: str, new: str) -> None:
    text = reference("rest-routes.md") + reference("rest.md")
    assert new in text
    assert old not in text


@pytest.mark.parametrize(("old", "new"), rows_of("Metrics"))
def test_the_reference_of_metrics_has_the_new_name_alone(old: str, new: str) -> None:
    names = set(re.findall(r"`(predrain_[a-z0-9_]+)`", reference("metrics.md")))
    assert new in names
    assert old not in names


@pytest.mark.parametrize(("old", "new"), rows_of("Commands and options"))
def test_the_reference_of_commands_has_the_new_word_alone(old: str, new: str) -> None:
    def has(words: str) -> bool:
        command, _, option = words.removeprefix("predrain ").partition(" --")
        sections = {part.split("\n")[0]: part for part in reference("commands.md").split("\n## ")}
        return command in sections and (not option or f"`--{option}`" in sections[command])

    assert has(new)
    assert not has(old)
