"""The blocks that the reference takes from the code are those that the code gives now."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import pytest
from annotated_types import Ge, Le

from predrain.service.config.settings import list_setting_keys
from tests.docs.kinds import Unnamed, kind
from tests.docs.pages import DOCS
from tests.docs.references import BLOCKS
from tests.docs.written import UnknownBlock, asked, rewritten

PAGES = sorted(page for page in (DOCS / "reference").glob("*.md") if any(asked(page)))


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_says_what_the_code_says(page: Path) -> None:
    assert page.read_text() == rewritten(page, BLOCKS), "run: .venv/bin/python -m tests.docs.write"


def test_all_that_the_code_can_say_stands_in_one_page() -> None:
    assert sorted(name for page in PAGES for name in asked(page)) == sorted(BLOCKS)


def test_every_setting_has_its_default_and_a_meaning() -> None:
    text = (DOCS / "reference" / "settings.md").read_text()
    for table, key, default, told in list_setting_keys():
        assert told, f"{table}.{key} has no description"
        assert f"`{'none' if default is None else json.dumps(default)}` | {told} |" in text


def test_a_block_that_the_code_does_not_give_is_refused(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("<!-- written: nothing -->\n<!-- end -->\n")
    with pytest.raises(UnknownBlock, match=r"page\.md asks for nothing"):
        rewritten(page, BLOCKS)


def test_words_of_people_around_a_block_stay(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- written: it -->\nold\n<!-- end -->\nafter\n")
    assert (
        rewritten(page, {"it": lambda: "new"}) == "before\n<!-- written: it -->\nnew\n<!-- end -->\nafter\n"
    )


def test_a_kind_says_what_may_be_written() -> None:
    assert kind(Annotated[int, Ge(1), Le(9)]) == "whole number, 1 to 9"
    assert kind(tuple[str, ...] | None) == "list of: text"
    with pytest.raises(Unnamed):
        kind(complex)
