"""`--help`: each command says what it does and shows an example; a list of commands says what each does."""

from __future__ import annotations

import subprocess
from typing import get_args

import pytest

from predrain.service.cli import COMMANDS as COMMANDS_BY_GROUP
from predrain.service.cli import app, main
from predrain.service.cli.command_catalogue import find_commands, list_commands

COMMANDS = [list(words) for words, _ in find_commands(app)]


@pytest.mark.slow
@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_command_shows_an_example_that_begins_with_its_own_words(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*words, "--help"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert f"Example: predrain {' '.join(words)}" in shown
    example = shown.partition("Example: ")[2].partition("╭")[0]
    assert subprocess.run(["/bin/sh", "-n", "-c", example], check=False).returncode == 0


def test_the_list_of_commands_says_what_each_does(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    lines = [line.strip("│ ") for line in shown.splitlines() if line.startswith("│ ")]
    listed = {line.split()[0]: line.split()[1:] for line in lines}
    assert all(listed[words[0]] for words in COMMANDS if len(words) == 1)


UNITS = (
    "days",
    "hours",
    "minutes",
    "seconds",
    "number",
    "tcp port",
    "version",
    "events",
    "calls",
    "rows",
    "seed",
)
"""The words for units: the help of each option with a number names one of them. A seed has no unit."""


@pytest.mark.slow
def test_each_option_has_a_help_and_each_number_says_what_it_counts() -> None:
    options = [(page.words, one) for page in list_commands() for one in page.options]
    assert [(words, one.names) for words, one in options if not one.help] == []
    numbers = [(words, one) for words, one in options if set(get_args(one.kind) or [one.kind]) & {int, float}]
    assert len(numbers) > 20
    silent = [
        (words, one.names, one.help)
        for words, one in numbers
        if not any(unit in one.help.casefold() for unit in UNITS)
    ]
    assert silent == []


def test_the_list_of_commands_has_a_heading_for_each_group(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    places = [shown.index(group.name) for group in COMMANDS_BY_GROUP]
    assert places == sorted(places)
    assert {name for names in COMMANDS_BY_GROUP.values() for name in names} == {
        words[0] for words in COMMANDS
    }
