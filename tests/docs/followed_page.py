"""A page that tells how to add something, as steps that a program follows: blocks to apply, commands to type.

A block has its file as its title, and above it a line that says where it goes ("How a page is followed" in
docs/how-to/contribute/README.md).
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.docs.pages import ROOT

_STEP = re.compile(
    r"^(?P<says>A new file:|(?:Above|Below|In place of) (?P<code>``? ?[^\n]+? ?``?)(?:, add)?:)\n\n"
    r"```\w+ title=\"(?P<file>[^\"]+)\"\n(?P<block>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_HOW = {"A new": "new", "Above": "above", "Below": "below", "In place of": "replace"}
_TITLED = re.compile(r"^```\w+ title=", re.MULTILINE)
_TYPED = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND_SECONDS = 900.0
LEFT_OUT = ("docs/pictures/", "tests/system/", "tests/golden/wire/", "service/page/package-lock.json")
"""Tracked files that no page needs; most bytes of the tree are in them."""


class CannotFollow(AssertionError):
    """A step of a page does not fit the tree."""


@dataclass(frozen=True, slots=True)
class Step:
    """One block of a page, and where it goes."""

    how: str
    """`new`, `above`, `below` or `replace`."""
    file: str
    anchor: str
    """The beginning of the one line above, below or in place of which the block goes; empty for a new file."""
    block: str

    def apply(self, tree: Path) -> None:
        """Change the tree. Raises CannotFollow."""
        path = tree / self.file
        if self.how == "new":
            if path.exists():
                raise CannotFollow(f"{self.file} is there already")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self.block)
            return
        lines = path.read_text().splitlines(keepends=True)
        found = [number for number, line in enumerate(lines) if line.strip().startswith(self.anchor)]
        if len(found) != 1:
            raise CannotFollow(f"{len(found)} lines of {self.file} begin with {self.anchor}; name one")
        (place,) = found
        first = place + 1 if self.how == "below" else place
        rest = place + 1 if self.how == "replace" else first
        path.write_text("".join([*lines[:first], self.block, *lines[rest:]]))


def list_steps(page: Path) -> list[Step]:
    """The blocks of a page in order. Raises CannotFollow for a block with a title that no line places."""
    text = page.read_text()
    steps = []
    for found in _STEP.finditer(text):
        how = next(how for word, how in _HOW.items() if found["says"].startswith(word))
        code = found["code"] or ""
        anchor = code.removeprefix("`` ").removesuffix(" ``") if code.startswith("``") else code.strip("`")
        steps.append(Step(how, found["file"], anchor, found["block"]))
    titled = len(_TITLED.findall(text))
    if titled != len(steps):
        raise CannotFollow(
            f"{page.name} has {titled} blocks with a title, and says of {len(steps)} where they go"
        )
    return steps


def list_commands(page: Path) -> Iterator[str]:
    """The commands of a page in order."""
    for found in _TYPED.finditer(page.read_text()):
        yield from found[1].splitlines()


def copy_tree(tree: Path) -> Path:
    """A copy of the working tree's tracked files, with this interpreter as its `.venv`."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    for line in listed.stdout.splitlines():
        source, target = ROOT / line, tree / line
        if line.startswith(LEFT_OUT) or not (source.exists() or source.is_symlink()) or line == ".venv":
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_symlink():
            target.symlink_to(source.readlink())
        else:
            shutil.copyfile(source, target)
    (tree / ".venv").symlink_to(sys.prefix)
    # The pictures of the code are drawn from the files that git lists.
    subprocess.run(["git", "init", "--quiet"], cwd=tree, check=True)
    return tree


def run_in(tree: Path, command: str) -> str:
    """Type a command in a tree, which it imports; what it printed. Raises CannotFollow where it fails."""
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("PREDRAIN_", "PYTEST_"))
    }
    done = subprocess.run(
        ["/bin/bash", "-c", command],
        cwd=tree, env={**environment, "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True, text=True, timeout=COMMAND_SECONDS, check=False,
    )  # fmt: skip
    if done.returncode != 0:
        raise CannotFollow(
            f"{command}\nended with {done.returncode}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
        )
    return done.stdout


def run_python(tree: Path, *lines: str) -> str:
    """Run lines of Python in a tree; what they printed."""
    script = tree / "followed_probe.py"
    script.write_text("\n".join(lines) + "\n")
    try:
        return run_in(tree, f".venv/bin/python {script.name}")
    finally:
        script.unlink()


def follow(page: Path, tree: Path) -> set[str]:
    """Apply every block of a page to a copy of the tree, then type its commands. Returns the files of the blocks."""
    steps = list_steps(page)
    copy_tree(tree)
    for step in steps:
        step.apply(tree)
    for command in list_commands(page):
        run_in(tree, command)
    return {step.file for step in steps}
