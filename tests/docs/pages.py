"""The documentation as data: its pages, their fenced blocks, and the code inside their sentences."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
TUTORIAL = DOCS / "tutorial.md"
_FENCED = re.compile(r"^( *)```(\w*)[^\n`]*\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"`([^`\n]+(?:\n[^`\n]+)?)`")


@dataclass(frozen=True, slots=True)
class Block:
    """A block between two fences, or a piece of code inside a sentence.

    `line` is the number of its first line, from 1. `kind` is the word after the fence, or `inline` in a sentence.
    """

    page: Path
    line: int
    kind: str
    text: str

    @property
    def place(self) -> str:
        """The page and the line of the block, for messages."""
        return f"{self.page.name}:{self.line}"


def pages() -> list[Path]:
    """Every page that tells people what to type. The design is a contract, with forms in place of commands."""
    written = [page for page in DOCS.rglob("*.md") if page.parent.name != "design"]
    others = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "deploy/README.md")]
    return sorted([*written, *others])


def blocks(page: Path, kind: str | None = None) -> Iterator[Block]:
    """The fenced blocks of a page, of one kind or of all."""
    text = page.read_text()
    for found in _FENCED.finditer(text):
        if kind is None or found[2] == kind:
            yield Block(page, text.count("\n", 0, found.start()) + 1, found[2], found[3])


def spoken(page: Path) -> Iterator[Block]:
    """The code inside sentences, line breaks as spaces."""
    text = _FENCED.sub(lambda found: "\n" * found[0].count("\n"), page.read_text())
    for found in _INLINE.finditer(text):
        said = " ".join(found[1].split())
        yield Block(page, text.count("\n", 0, found.start()) + 1, "inline", said)
