"""Counts over the source text: names of functions, names of classes, lines, lengths of functions and of files.

Every counter takes the paths that it reads, so that a test gives it a small package with known numbers. The rules of
`tests/test_code_rules.py` and the table of `python -m tests.measure` use the same counters.
"""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("collector", "features", "models", "service", "actions", "data")
"""The product's packages."""
_IRREGULAR_PARTICIPLES = (
    "begun born bound built caught chosen done drawn felt found given gone grown heard held hidden kept known laid "
    "led left lent lost made met paid said seen sent shown spent stood taken taught thought told won worn written"
)
PARTICIPLES = frozenset(_IRREGULAR_PARTICIPLES.split(" "))
"""Irregular participles. `read`, `set` and `put` are left out, because they are verbs, too."""
LONGEST_BODY = 70
"""Lines of a function's body, without its signature and docstring."""
_GENERATED = re.compile(r"\bgenerated (?:by|from)\b|@generated", re.IGNORECASE)
_HEAD_CHARACTERS = 300
"""A generated file says so within these."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


def list_tracked_files(pattern: str) -> list[Path]:
    """List the files of the checkout that git tracks, or would track, and that match `pattern`."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", pattern],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return [ROOT / line for line in listed.stdout.splitlines() if (ROOT / line).is_file()]


def find_package(path: Path) -> str:
    """Find the top-level folder of the checkout that a file is in."""
    return path.relative_to(ROOT).parts[0]


def list_product_files(pattern: str = "*.py") -> list[Path]:
    """List the files of the product's packages."""
    return [path for path in list_tracked_files(pattern) if find_package(path) in PACKAGES]


def is_generated(path: Path) -> bool:
    """Tell whether the head of a file says that a program wrote it."""
    return _GENERATED.search(path.read_text()[:_HEAD_CHARACTERS]) is not None


def iterate_functions(paths: Iterable[Path]) -> Iterator[tuple[Path, Function]]:
    """Give every `def` of the files, methods and nested functions included."""
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, Function):
                yield path, node


def has_one_word_name(name: str) -> bool:
    """Tell whether a name has no underscore between two words: `_read` has one word, `read_drain` two."""
    return "_" not in name.strip("_")


@dataclass(frozen=True, slots=True)
class NameCount:
    """How many functions there are, and how many of them have a name of one word."""

    functions: int
    one_word: int

    @property
    def share(self) -> float:
        """The share of one-word names in percent; 0 where there is no function."""
        return 100 * self.one_word / self.functions if self.functions else 0.0


def count_function_names(paths: Iterable[Path]) -> NameCount:
    """Count the functions of the files and those with a one-word name. Dunder methods are left out."""
    names = [
        function.name
        for _, function in iterate_functions(paths)
        if not (function.name.startswith("__") and function.name.endswith("__"))
    ]
    return NameCount(len(names), sum(has_one_word_name(name) for name in names))


def find_shared_class_names(paths: Iterable[Path], root: Path = ROOT) -> Mapping[str, Sequence[str]]:
    """Find the public class names that more than one class at the top of a module bears, each with its files."""
    places: dict[str, list[str]] = {}
    for path in paths:
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(str(path.relative_to(root)))
    return {name: files for name, files in places.items() if len(files) > 1}


def find_shared_module_names(paths: Iterable[Path], root: Path = ROOT) -> Mapping[str, Sequence[str]]:
    """Find the names that two modules of one top-level package bear, each with its files."""
    places: dict[tuple[str, str], list[str]] = {}
    for path in paths:
        if path.stem != "__init__":
            within = path.relative_to(root)
            places.setdefault((within.parts[0], path.stem), []).append(str(within))
    return {name: files for (_, name), files in places.items() if len(files) > 1}


def find_participle_functions(paths: Iterable[Path], root: Path = ROOT) -> Mapping[str, str]:
    """Find the public functions and methods whose whole name is a participle: `file:line` and the name.

    A property may have such a name, since it is a state and no action.
    """
    found = {}
    for path in paths:
        tree = ast.parse(path.read_text())
        bodies = [tree.body, *(node.body for node in tree.body if isinstance(node, ast.ClassDef))]
        for function in (node for body in bodies for node in body if isinstance(node, Function)):
            name = function.name
            is_property = any(ast.unparse(one).endswith("property") for one in function.decorator_list)
            if not is_property and (re.fullmatch(r"[a-z]*[^e]ed", name) or name in PARTICIPLES):
                found[f"{path.relative_to(root)}:{function.lineno}"] = name
    return found


def list_class_files() -> list[Path]:
    """List the product's files whose public class names must differ: all that no program wrote."""
    return [path for path in list_product_files() if not is_generated(path)]


def count_body_lines(function: Function) -> int:
    """Count the lines of a function's body, without its signature and docstring."""
    first = function.body[1 if ast.get_docstring(function) and len(function.body) > 1 else 0]
    return (function.end_lineno or 0) - first.lineno + 1


def find_long_functions(
    paths: Iterable[Path], longest: int = LONGEST_BODY, root: Path = ROOT
) -> Mapping[str, int]:
    """Find the functions with more than `longest` lines of body: `file:line name` and the number of lines."""
    return {
        f"{path.relative_to(root)}:{function.lineno} {function.name}": lines
        for path, function in iterate_functions(paths)
        if (lines := count_body_lines(function)) > longest
    }


def count_lines(paths: Iterable[Path]) -> Mapping[Path, int]:
    """Count the lines of every file that is not generated."""
    return {path: len(path.read_text().splitlines()) for path in paths if not is_generated(path)}


def list_longest_files(lines: Mapping[Path, int], count: int) -> list[tuple[Path, int]]:
    """List the `count` longest files, the longest first."""
    return sorted(lines.items(), key=lambda one: (-one[1], str(one[0])))[:count]
