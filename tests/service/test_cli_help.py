"""`--help`: each command says what it does and shows an example; a list of commands says what each does."""

from __future__ import annotations

import subprocess

import pytest

from predrain.service.cli import app, main
from predrain.service.cli.command_catalogue import find_commands

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
