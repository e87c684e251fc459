"""Reads the prose of a Markdown page or of a Python module as paragraphs."""

from __future__ import annotations

import ast
import inspect
import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

_NOT_PROSE: Final = re.compile(
    r"^( *)```.*?^\1```$|<!-- written: .*?<!-- end -->|^ *>.*?$|^#.*?$|<!--.*?-->", re.MULTILINE | re.DOTALL
)
_PARAGRAPH: Final = re.compile(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )|\n(?=\|)|(?<=\S) \|(?= |$)")

_DOCSTRING_PARAGRAPH: Final = re.compile(r"\n\s*\n|\n(?=\w+\n +\S)")
"""A blank line, or the line before a parameter with an indented description."""

_TEXT: Final = re.compile(r"[A-Za-z]+,? [A-Za-z]+,? [A-Za-z]+")
_SQL: Final = re.compile(r"\s*(?:SELECT|WITH|INSERT|UPDATE|DELETE|CREATE|ALTER|DROP|COPY|PRAGMA)\b")


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Sentences that stand together. `kind` is page, docstring, comment, message or text.

    A message is a whole sentence. A text is part of one, such as an error without its end or the help of an option.
    """

    place: str
    kind: str
    text: str


def read_page(file: str, text: str) -> Iterator[Paragraph]:
    """Yield paragraphs, list items and table cells, without code, headings, quotations and written blocks."""
    blank = _NOT_PROSE.sub(lambda found: "\n" * found[0].count("\n"), text)
    ends = [*(found.end() for found in _PARAGRAPH.finditer(blank)), len(blank)]
    for begin, end in zip([0, *ends], ends, strict=False):
        piece = re.sub(r"^(?:[-*]|\d+\.) ", "", blank[begin:end].strip()).strip(" |")
        yield Paragraph(f"{file}:{blank.count(chr(10), 0, begin) + 1}", "page", " ".join(piece.split()))


def read_code(file: str, text: str) -> Iterator[Paragraph]:
    """Yield docstrings, comments, and the string constants that are messages or texts."""
    nodes = list(ast.walk(ast.parse(text)))
    documented = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    inner = {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in nodes:
        if isinstance(node, ast.Constant | ast.JoinedStr) and id(node) not in inner:
            parts = [getattr(part, "value", None) for part in getattr(node, "values", [node])]
            said = "".join(part if isinstance(part, str) else "`x`" for part in parts)
            if id(node) in documented:
                for paragraph in _DOCSTRING_PARAGRAPH.split(inspect.cleandoc(said)):
                    yield Paragraph(f"{file}:{node.lineno}", "docstring", " ".join(paragraph.split()))
            elif re.match(r"[A-Z][^\n]* [^\n]* [^\n]*[.?!]$", said):
                yield Paragraph(f"{file}:{node.lineno}", "message", said)
            elif _TEXT.search(said) and not _SQL.match(said):
                yield Paragraph(f"{file}:{node.lineno}", "text", said)
    group, last = "", 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT and not re.match(r"# ?(?:noqa|type:|fmt:|pyright|!)", token.string):
            if group and token.start[0] != last + 1:
                yield Paragraph(f"{file}:{last}", "comment", group)
                group = ""
            group, last = f"{group} {token.string.lstrip('# ')}".strip(), token.start[0]
    yield Paragraph(f"{file}:{last}", "comment", group)
