"""The checker of prose finds what CONTRIBUTING.md forbids, and the project has none of it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.prose import checker
from tests.prose.checker import find_all_offences, find_offences
from tests.prose.paragraphs import Paragraph, read_code, read_page


def find_rules(text: str, kind: str = "page") -> set[str]:
    """Find the rules that a paragraph breaks."""
    return {offence.rule for offence in find_offences(Paragraph("page.md:1", kind, text))}


@pytest.mark.parametrize(
    ("rule", "kind", "before", "after"),
    [
        ("fragment", "docstring", "Whether an OSD is out.", "Return True if the OSD is out."),
        ("fragment", "docstring", "For messages.", "Name the block in messages."),
        ("subject", "page", "Who acts needs the token.", "A request that changes something needs the token."),
        ("subject", "page", "What is cut ends in a dot.", "A text that is cut ends in a dot."),
        ("pronoun", "page", "It expires after 60 s.", "The lease expires after 60 s."),
        ("pronoun", "docstring", "This is kept in memory.", "The signal is kept in memory."),
        ("term", "page", "Each rung peers PGs.", "Each reweight step peers PGs."),
        ("term", "page", "The OSD leads eight PGs.", "The OSD is the primary of eight PGs."),
        ("term", "message", "The pin was dropped.", "The monitor dropped the upmap item."),
        ("term", "comment", "as people are told", "as messages report it"),
        ("term", "text", "kept where it is by a pin", "kept where it is by an upmap item"),
        ("actor", "text", "it was changed by somebody", "another party changed it"),
        ("inversion", "page", "So does the controller.", "The controller does the same."),
        ("inversion", "page", "At the end stands a table.", "The demo ends with a table."),
        ("unit", "page", "The limit is 16 mb.", "The limit is 16 MB."),
        ("actor", "page", "Whoever halts gives a reason.", "The person who halts gives a reason."),
        ("length", "page", " ".join(["csrf_token"] * 46), " ".join(["csrf_token"] * 45)),
        ("plain", "page", "The plan is made anew.", "The controller makes the plan again."),
        (
            "link",
            "page",
            "PGs move one at a time ([why](a.md)).",
            "PGs move one at a time ([peering](a.md)).",
        ),
    ],
)
def test_a_rule_finds_the_sentence_before_and_passes_the_one_after(
    rule: str, kind: str, before: str, after: str
) -> None:
    assert rule in find_rules(before, kind)
    assert find_rules(after, kind) == set()


@pytest.mark.parametrize(
    "text",
    [
        "Who may approve a drain?",
        "What to check after an upgrade.",
        "What-if plans change nothing.",
        "This page describes the limits.",
        "The command `rung pin told` is code.",
        "The controller leads while it holds the lease.",
        "So that nothing is lost, the spool is flushed.",
    ],
)
def test_a_sentence_in_plain_english_passes(text: str) -> None:
    assert find_rules(text) == set()


def test_a_page_is_read_without_code_headings_quotations_and_written_blocks() -> None:
    page = (
        "# What rung\n\nFirst.\nSecond.\n\n```\nrung\n```\n\n> rung\n\n"
        "<!-- written: x -->\nrung\n<!-- end -->\n- Item one.\n- Item two.\n\n| cell | other |\n|---|---|\n"
    )
    texts = [paragraph.text for paragraph in read_page("page.md", page)]
    assert [text for text in texts if text.strip("-| ")] == [
        "First. Second.", "Item one.", "Item two.", "cell", "other"
    ]  # fmt: skip


def test_an_offence_of_a_page_names_its_line() -> None:
    page = "# Title\n\n```\ncode\n```\n\nIt is here.\n"
    places = [one.place for paragraph in read_page("page.md", page) for one in find_offences(paragraph)]
    assert places == ["page.md:7"]


def test_docstrings_comments_and_messages_of_a_module_are_read() -> None:
    code = (
        '"""Module text."""\n# one\n# two\nx = 1  # noqa: E501\nraise E(f"The OSD {x} is full.")\ny = "key name"\n'
        'z = f"full is the osd {x}"\nq = "SELECT one from some table"\n'
    )
    found = {(paragraph.kind, paragraph.text) for paragraph in read_code("a.py", code) if paragraph.text}
    assert found == {
        ("docstring", "Module text."), ("comment", "one two"), ("message", "The OSD `x` is full."),
        ("text", "full is the osd `x`"),
    }  # fmt: skip


def test_each_parameter_of_a_docstring_is_a_paragraph_of_its_own() -> None:
    code = '"""Train.\n\nParameters\n----------\nseed\n    of the draw.\nout\n    folder.\n"""\n'
    assert [paragraph.text for paragraph in read_code("a.py", code) if paragraph.text] == [
        "Train.", "Parameters ----------", "seed of the draw.", "out folder."
    ]  # fmt: skip


def test_of_a_test_the_docstrings_and_comments_are_checked_and_its_strings_are_not(
    tmp_path: Path,
) -> None:
    code = '"""What a rung is."""\n# as people are told\nassert say() == "A pin was dropped."\n'
    for folder in ("tests", "service"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.py").write_text(code)
    for command in ("init", "add ."):
        subprocess.run(["git", *command.split()], cwd=tmp_path, check=True, capture_output=True)
    places = [offence.place for offence in find_all_offences(tmp_path)]
    assert sorted({*places}) == [
        "service/a.py:1",
        "service/a.py:2",
        "service/a.py:3",
        "tests/a.py:1",
        "tests/a.py:2",
    ]


@pytest.mark.slow
def test_the_project_has_no_offence(capsys: pytest.CaptureFixture[str]) -> None:
    assert checker.main() == 0, capsys.readouterr().out


@pytest.mark.slow
def test_every_exception_is_a_place_with_offences_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    exceptions = [*checker.WORDS_FREE]
    monkeypatch.setattr(checker, "WORDS_FREE", {"-": ""})
    places = {one.place for one in find_all_offences(checker.ROOT)}
    assert [one for one in exceptions if not any(place.startswith(one) for place in places)] == []
