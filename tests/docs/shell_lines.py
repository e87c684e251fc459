"""Lines of a shell, cut into the commands in them: enough of a shell's grammar for what documentation shows."""

from __future__ import annotations

import itertools
import re
import shlex
from collections.abc import Iterator

BEFORE = ("--", "sudo", "exec")
"""After which a word is a command again."""
Words = tuple[str, ...]
_INNER = re.compile(r"\$\([^)]*\)")
"""A command inside a command, for which a word stands."""


def lines(text: str) -> Iterator[str]:
    """Whole lines: prompts taken off, continued ones joined, answers of a console and arrows of a drawing left out."""
    console = any(line.startswith("$ ") for line in text.splitlines())
    whole = text.replace("\\\n> ", "").replace("\\\n", "")
    for line in whole.splitlines():
        if (console and not line.startswith("$ ")) or "-->" in line:
            continue
        yield line.removeprefix("$ ").strip()


def commands(line: str, program: str) -> Iterator[Words]:
    """Yield the arguments of each call of `program` in the line."""
    lexer = shlex.shlex(_INNER.sub("INNER", line), posix=True, punctuation_chars="();<>|&")
    lexer.whitespace_split = True
    try:
        words = list(lexer)
    except ValueError:  # a quote that ends in a later line
        return
    for part in _split(words):
        for at, word in enumerate(part):
            said = word.rpartition("/")[2] == program
            if said and (all("=" in one for one in part[:at]) or part[at - 1] in BEFORE):
                yield tuple(part[at + 1 :])
                break


def spoken(text: str, program: str) -> Iterator[Words]:
    """The same for code inside a sentence, where `a|b` means either."""
    try:
        first, *rest = shlex.split(_INNER.sub("INNER", text))
    except ValueError:
        return
    if first == program and "=" not in text.partition(" --")[0]:
        yield from itertools.product(
            *(word.strip("[]").split("|") for word in rest if word not in ("...", "\u2026"))
        )


def _split(words: list[str]) -> Iterator[list[str]]:
    part: list[str] = []
    for word in words:
        if word and set(word) <= set("();<>|&"):
            yield part[:-1] if word[0] in "<>" and part and part[-1].isdigit() else part
            part = []
        else:
            part.append(word)
    yield part
