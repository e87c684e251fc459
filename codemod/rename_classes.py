"""Rename public classes: `python codemod/rename_classes.py TABLE`, a line per class: module path, old name, new name.

A name is followed through `from ... import`, also where a package hands it on, and through `module.Name`. Words in
strings and docstrings are changed where they stand in backticks in a file that has the class.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
import tokenize
from pathlib import Path


def main(table: Path) -> None:
    wanted: dict[tuple[str, str], str] = {}
    for line in table.read_text().splitlines():
        if line.strip():
            path, old, new = line.split()
            wanted[_module(path), old] = new
    listed = subprocess.check_output(["git", "ls-files", "*.py"], text=True)  # noqa: S607
    files = listed.split()
    trees = {path: ast.parse(Path(path).read_text()) for path in files}
    taken = {
        node.name for tree in trees.values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)
    }
    for (module, old), new in wanted.items():
        if new in taken:
            sys.exit(f"{new} (for {module}.{old}) is taken")
    exported = dict(wanted)
    for _ in range(4):
        for path, tree in trees.items():
            for module, alias, bound in _imports(path, tree):
                if (module, alias) in exported and bound == alias:
                    exported[_module(path), alias] = exported[module, alias]
    for path, tree in trees.items():
        own = {old: new for (module, old), new in wanted.items() if module == _module(path)}
        aliases: dict[str, str] = {}
        for module, alias, bound in _imports(path, tree):
            if (module, alias) in exported:
                own.setdefault(alias, exported[module, alias])
                if bound != alias:
                    aliases[alias] = exported[module, alias]
        modules = _modules(path, tree)
        attributes = {
            (name, old): new
            for name, module in modules.items()
            for (at, old), new in exported.items()
            if at == module
        }
        if own or attributes:
            _rewrite(Path(path), own, attributes)


def _module(path: str) -> str:
    name = path.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
    return name if name.startswith("tests") else f"predrain.{name}"


def _imports(path: str, tree: ast.AST) -> list[tuple[str, str, str]]:
    package = _module(path).split(".")
    if not path.endswith("__init__.py"):
        package = package[:-1]
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            found += [(module, alias.name, alias.asname or alias.name) for alias in node.names]
    return found


def _modules(path: str, tree: ast.AST) -> dict[str, str]:
    bound = {bound: f"{module}.{name}" for module, name, bound in _imports(path, tree)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            bound |= {alias.asname: alias.name for alias in node.names if alias.asname}
    return bound


def _rewrite(path: Path, own: dict[str, str], attributes: dict[tuple[str, str], str]) -> None:
    text = path.read_text()
    lines = text.splitlines(keepends=True)
    tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    edits: list[tuple[int, int, int, str]] = []
    for index, token in enumerate(tokens):
        before = tokens[index - 1].string if index else ""
        if token.type == tokenize.NAME:
            if before == "." and (tokens[index - 2].string, token.string) in attributes:
                new = attributes[tokens[index - 2].string, token.string]
            elif before != "." and token.string in own:
                new = own[token.string]
            else:
                continue
            edits.append((token.start[0], token.start[1], token.end[1], new))
    for row, start, end, new in sorted(edits, reverse=True):
        line = lines[row - 1]
        lines[row - 1] = line[:start] + new + line[end:]
    text = "".join(lines)
    for old, new in own.items():
        text = re.sub(rf"(?<!`)`{old}(?=[`(\[.])", f"`{new}", text)
        text = re.sub(rf"([\[\"' ]|cast\()(\"){old}\"(?=[\],)])", rf'\1\2{new}"', text)
    path.write_text(text)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
