"""Finds places where a program reads prose: a comparison, a match or a search with a literal of two or more words,
or of a value that is a sentence for people.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping

_TWO_WORDS = re.compile(r"[A-Za-z0-9]+(?:'s)?[,:;]? +[A-Za-z0-9]*[A-Za-z]{2,}")
_SEARCHES = frozenset(
    {"startswith", "endswith", "partition", "rpartition", "split", "rsplit", "find", "index"}
    | {"match", "search", "fullmatch", "compile", "finditer", "findall"}
)
_SENTENCES = frozenset(
    {"held_by", "sentence", "sentences", "decided", "ended_why", "end_reason", "bottleneck", "state_text"}
)
"""Fields that hold sentences, in values and in REST; programs compare the typed fields beside them."""
_SENTENCE_MAKERS = ("describe_", "explain_")
"""Beginnings of the names of functions that return sentences."""
_SENTENCE_OF_PAGE = re.compile(
    rf"\b(?:{'|'.join(sorted(_SENTENCES))}|refusals)(?:\[\w+\])?(?:\?)?"
    r"(?: ?[!=]==?(?!=| ?(?:\"\"|''|null|undefined))|\.(?:startsWith|endsWith|includes|indexOf|split|match|search)\()"
)
_PAGE = re.compile(r"""(?:\.(?:startsWith|endsWith|includes|indexOf|split)\(|[!=]==? ?)(["'`])(.*?)\1""")


def find_prose_readings(source: str) -> list[int]:
    """Return the lines of Python source that compare, match or search with a literal that reads as prose, or that
    compare or search a field with a sentence, or a sentence that a function returns.

    A constant of the module that holds such a literal counts as the literal. A comparison with an empty text or tuple
    asks whether there is a sentence, and is no reading.
    """
    tree = ast.parse(source)
    constants = {
        target.id: list(_list_strings(node.value, {}))
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name) and isinstance(node.value, ast.Constant | ast.Tuple)
    }
    found = set()
    for node in ast.walk(tree):
        for operand in _list_operands(node):
            if any(_TWO_WORDS.search(text) for text in _list_strings(operand, constants)):
                found.add(node.lineno)  # type: ignore[attr-defined]
        if any(map(_is_sentence, _list_compared(node))):
            found.add(node.lineno)  # type: ignore[attr-defined]
    return sorted(found)


def find_prose_readings_of_page(source: str) -> list[int]:
    """Return the lines of TypeScript source that compare or search with a literal that reads as prose."""
    return [
        number
        for number, line in enumerate(source.splitlines(), 1)
        if _SENTENCE_OF_PAGE.search(line)
        or any(_TWO_WORDS.search(match[2]) for match in _PAGE.finditer(line))
    ]


def find_sentence_tables(source: str) -> list[str]:
    """Return the names of module constants that map members of an enum to words, of which one has two or more."""
    found = []
    for node in ast.parse(source).body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Dict(keys=keys, values=values)):
                pass
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.Dict(keys=keys, values=values)):
                pass
            case _:
                continue
        are_members = all(isinstance(key, ast.Attribute) and key.attr.isupper() for key in keys)
        words = [text for value in values for text in _list_strings(value, {})]
        if keys and are_members and any(_TWO_WORDS.search(text) for text in words):
            found.append(name)
    return found


def _list_operands(node: ast.AST) -> Iterator[ast.expr]:
    match node:
        case ast.Compare(left=left, comparators=others):
            yield from (left, *others)
        case ast.Call(func=ast.Attribute(attr=name, value=value), args=arguments) if name in _SEARCHES:
            is_regex = isinstance(value, ast.Name) and value.id == "re"
            yield from arguments[:1] if is_regex else arguments
        case ast.MatchValue(value=value):
            yield value


def _list_compared(node: ast.AST) -> Iterator[ast.expr]:
    """Yield the values that a node compares or searches, unless they are compared with nothing."""
    match node:
        case ast.Compare(left=left, comparators=others):
            if not any(_is_empty(operand) for operand in (left, *others)):
                yield from (left, *others)
        case ast.Call(func=ast.Attribute(attr=name, value=value), args=arguments) if name in _SEARCHES:
            yield from (value, *arguments)
        case ast.Match(subject=subject):
            yield subject


def _is_empty(node: ast.expr) -> bool:
    match node:
        case ast.Constant(value=None | ""):
            return True
        case ast.Tuple(elts=[]) | ast.List(elts=[]):
            return True
        case _:
            return False


def _is_sentence(node: ast.expr) -> bool:
    """Return whether an expression is a field with sentences, one of them, or what a function of sentences returns."""
    match node:
        case ast.Attribute(attr=name):
            return name in _SENTENCES
        case ast.Subscript(value=value, slice=ast.Constant(value=str(name))):
            return name in _SENTENCES or _is_sentence(value)
        case ast.Subscript(value=value):
            return _is_sentence(value)
        case ast.Call(func=ast.Name(id=name)) | ast.Call(func=ast.Attribute(attr=name)):
            return name.startswith(_SENTENCE_MAKERS)
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            return any(map(_is_sentence, parts))
        case _:
            return False


def _list_strings(node: ast.expr, constants: Mapping[str, list[str]]) -> Iterator[str]:
    """Yield the literals of an operand: a string, a tuple, list or set of strings, or the parts of an f-string."""
    match node:
        case ast.Constant(value=str(text)):
            yield text
        case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts) | ast.JoinedStr(values=parts):
            for part in parts:
                yield from _list_strings(part, constants)
        case ast.BinOp(left=left, right=right):
            yield from _list_strings(left, constants)
            yield from _list_strings(right, constants)
        case ast.Name(id=name):
            yield from constants.get(name, ())
        case _:
            return
