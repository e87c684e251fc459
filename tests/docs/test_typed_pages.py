"""The commands that pages show are typed line by line into one shell and print what the pages say.

The tutorial is the most important of these pages.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.console import Shell, Typed, typed
from tests.docs.pages import ROOT, TUTORIAL, blocks, pages
from tests.processes import ends


@pytest.mark.slow
@pytest.mark.system
@pytest.mark.timeout(1500)
@pytest.mark.parametrize("page", [page for page in pages() if any(typed(page))], ids=lambda page: page.stem)
def test_every_line_that_is_typed_prints_what_stands_below_it(tmp_path: Path, page: Path) -> None:
    home, folder = tmp_path / "home", tmp_path / "folder"
    home.mkdir()
    folder.mkdir()
    (home / "predrain").symlink_to(ROOT)
    environment = {
        "HOME": str(home), "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "TERM": "dumb", "COLUMNS": "110"
    }  # fmt: skip
    with Shell(folder, environment) as shell:
        for one in typed(page):
            text = shell.await_(one)
            assert one.printed(text), f"{one.place}: {one.command}\n{text}\n-- awaited:\n{one.awaited}"


def test_the_tutorial_reads_approves_pauses_resumes_halts_and_cancels() -> None:
    lines = "\n".join(one.command for one in typed(TUTORIAL))
    for command in (
        "up", "smart parse", "causes", "demo", "drain plan", "drain apply", "drain approve", "drain pause",
        "drain resume", "halt", "unhalt", "drain cancel",
    ):  # fmt: skip
        assert f"predrain {command}" in lines


def test_untyped_commands_of_the_tutorial_are_targets_of_make() -> None:
    targets = (ROOT / "Makefile").read_text()
    for block in blocks(TUTORIAL, ""):
        for line in block.text.splitlines():
            assert line == "cd ~/predrain" or f"\n{line.removeprefix('make ')}:" in targets, line


@pytest.mark.parametrize(
    ("awaited", "text", "fits"),
    [
        ("done", "done\n", True),
        ("done", "", False),
        ("", "cat: no such file", False),
        ("at http://...:80", "at http://127.0.0.1:80", True),
        ("at ... now", "at one\n now", False),
        ("id state", " id    state ", True),
        ("first\n...\nlast", "first\n1\n2\nlast", True),
        ("first\n...", "second\nfirst", False),
        ("a.c", "abc", False),
    ],
)
def test_dots_stand_for_anything_and_all_else_for_itself(awaited: str, text: str, fits: bool) -> None:
    assert Typed("here", "", awaited).printed(text) is fits


def test_a_line_goes_on_below_it(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```console\n$ echo one \\\n>   two\none two\n$ true\n```\n\n```\n$ not typed\n```\n")
    commands = [(one.command, one.awaited) for one in typed(page)]
    assert commands == [("echo one \\\n  two", "one two"), ("true", "")]


def test_a_shell_keeps_what_was_set_and_takes_what_it_started_with_it(tmp_path: Path) -> None:
    with Shell(tmp_path, {"PATH": "/usr/bin:/bin"}) as shell:
        shell.type("SET=kept; sleep 1000 &")
        assert shell.type("echo $SET; jobs -p").splitlines()[0] == "kept"
        pid = int(shell.type("jobs -p"))
    assert ends(pid)
