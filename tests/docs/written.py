"""Pages hold words of people and, between two marks, what the code says: `<!-- written: NAME -->` to `<!-- end -->`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

_BLOCK = re.compile(r"(<!-- written: (\S+) -->\n).*?(<!-- end -->)", re.DOTALL)


class UnknownBlock(Exception):
    """A page asks for what the code does not give."""


def rewritten(page: Path, blocks: Mapping[str, Callable[[], str]]) -> str:
    """The page with every block as the code has it now. Raises UnknownBlock."""

    def fresh(found: re.Match[str]) -> str:
        if found[2] not in blocks:
            raise UnknownBlock(f"{page.name} asks for {found[2]}; there is {', '.join(blocks)}")
        return f"{found[1]}{blocks[found[2]]()}\n{found[3]}"

    return _BLOCK.sub(fresh, page.read_text())


def asked(page: Path) -> Iterator[str]:
    """The names of the blocks that a page holds."""
    for found in _BLOCK.finditer(page.read_text()):
        yield found[2]
