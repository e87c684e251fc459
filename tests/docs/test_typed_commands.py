"""The commands, options, settings, routes and targets of make that the documentation tells people to type exist."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from cyclopts import CoercionError, CycloptsError, MissingArgumentError

from predrain.service.cli import app
from predrain.service.config import collector_table
from predrain.service.config.settings import list_setting_keys, load_settings
from predrain.service.terminal.remote_service import parse_profile
from tests.docs import shell_lines
from tests.docs.pages import DOCS, ROOT, Block, blocks, pages, spoken
from tests.docs.routes import document

SHELLS = ("", "console", "sh", "shell", "bash")
FILES = (".md", ".yaml", ".sqlite", ".toml", ".py")
ROOMS = ("actions", "collector", "data", "deploy", "docs", "features", "models", "service", "tests")
PAGES = pages()


def typed(page: Path, program: str) -> Iterator[tuple[Block, shell_lines.Words]]:
    """Every call of a program in the blocks of a page."""
    for block in blocks(page):
        if block.kind in SHELLS:
            for line in shell_lines.lines(block.text):
                for words in shell_lines.commands(line, program):
                    yield block, words


def wrong(words: shell_lines.Words, *, whole: bool) -> str | None:
    """Return the error with which predrain refuses the words, or None.

    A word in capitals stands for a value. If `whole` is false, an argument may be missing.
    """
    given = [word for word in words if word != "--debug"]
    if {"--help", "--version"} & set(given):
        given = [word for word in given if not word.startswith("--")]
        whole = False
    chain, apps, _ = app.parse_commands(given)
    if apps[-1].default_command is None:
        rest = given[len(chain) :]
        return None if not whole and rest in ([], ["COMMAND"]) else f"no command {' '.join(given)}"
    try:
        app.parse_args(given, exit_on_error=False, print_error=False)
    except MissingArgumentError as error:
        return str(error) if whole else None
    except CoercionError as error:
        return None if re.search(r"[A-Z]{2,}|\.\.\.|\$", " ".join(given)) else str(error)
    except CycloptsError as error:
        return str(error)
    return None


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if not page.name.startswith("renamed-")],  # the old names
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_every_command_that_is_to_be_typed_exists(page: Path) -> None:
    found = [(block, words, True) for block, words in typed(page, "predrain")]
    found += [
        (one, words, False) for one in spoken(page) for words in shell_lines.spoken(one.text, "predrain")
    ]
    assert [
        f"{block.place}: predrain {' '.join(words)}: {objection}"
        for block, words, whole in found
        if (objection := wrong(words, whole=whole))
    ] == []


@pytest.mark.slow
def test_every_command_that_a_message_of_ours_names_exists() -> None:
    objections = [
        f"{file.relative_to(ROOT)}: predrain {' '.join(words)}: {objection}"
        for room in ROOMS
        if room != "tests"
        for file in (ROOT / room).rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        for said in re.findall(r"`(predrain [^`]+)`", node.value)
        for words in shell_lines.spoken(" ".join(said.split()), "predrain")
        if (objection := wrong(words, whole=False))
    ]
    assert objections == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_target_of_make_that_is_to_be_typed_exists(page: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    found = [words for _, words in typed(page, "make")]
    found += [words for one in spoken(page) for words in shell_lines.spoken(one.text, "make")]
    asked = {word for words in found for word in words if re.fullmatch(r"[a-z-]+", word)}
    assert asked - targets == set()


def test_every_table_of_settings_is_one(tmp_path: Path) -> None:
    shown = [block for page in PAGES for block in blocks(page, "toml")]
    assert shown
    for block in shown:
        file = tmp_path / "predrain.toml"
        file.write_text(block.text)
        written = tomllib.loads(block.text)
        if "url" in written:  # the profile of a terminal
            parse_profile(file, written)
        elif written.keys() == {"collector"}:
            collector_table.load_collector_settings(file, {})
        else:
            load_settings(file, {})


def test_every_setting_that_a_sentence_names_is_one() -> None:
    known = {f"{table}.{key}" for table, key, *_ in list_setting_keys()}
    tables = {name.partition(".")[0] for name in known}
    unknown = {
        f"{one.place}: {one.text}"
        for page in PAGES
        if not page.name.startswith("renamed-")  # the old names
        for one in spoken(page)
        if re.fullmatch(rf"({'|'.join(tables)})\.\w+", one.text) and one.text not in known
        if Path(one.text).suffix not in FILES and not any(ROOT.glob(f"{one.text.replace('.', '/')}*"))
    }
    assert unknown == set()


def test_every_file_of_ours_that_a_sentence_names_is_there() -> None:
    names = {path.name for path in (ROOT / "tests").rglob("*.py")}
    missing = set()
    for page in PAGES:
        for one in spoken(page):
            if re.fullmatch(rf"({'|'.join(ROOMS)})/[\w./*{{}},-]+", one.text):
                head, _, rest = one.text.partition("{")
                ends = [inner + rest.partition("}")[2] for inner in rest.partition("}")[0].split(",")]
                missing |= {f"{one.place}: {head}{end}" for end in ends if not any(ROOT.glob(f"{head}{end}"))}
            elif re.fullmatch(r"test_\w+\.py", one.text) and one.text not in names:
                missing.add(f"{one.place}: {one.text}")
    assert missing == set()


def test_a_limit_that_a_guards_page_names_is_a_key_of_the_policy() -> None:
    named = {
        (page.stem, key)
        for page in (DOCS / "guards").glob("*.md")
        for bracket in re.findall(r"\[(`[^\[\]]+)\](?!\()", page.read_text())
        for key in re.findall(r"`([\w.]+)", bracket)
    }
    assert named
    known = {f"{table}.{key}" for table, key, *_ in list_setting_keys()}
    assert {(page, key) for page, key in named if not {key, f"policy.{key}"} & known} == set()


@pytest.mark.slow
def test_every_address_below_the_api_is_a_route() -> None:
    routes = [re.sub(r"\{\w+\}", "[^/]+", path) for path in document()["paths"]]
    for page in PAGES:
        if page.name.startswith("renamed-"):  # the old names
            continue
        for address in re.findall(r"(?<!:9090)(/api/v1/[\w/{}.-]+)", page.read_text()):
            path = address.rstrip(".")
            assert path.endswith("openapi.json") or any(re.fullmatch(one, path) for one in routes), (
                f"{page}: {path}"
            )


@pytest.mark.parametrize(
    ("words", "objects"),
    [
        (("drain", "plan", "osd.1"), False),
        (("drain", "plan"), True),
        (("drain", "plam", "osd.1"), True),
        (("drain", "plan", "osd.1", "--dif"), True),
        (("backtest", "HISTORY", "--split", "DATE"), False),
        (("up", "--port", "many"), True),
        (("drain", "plan", "--help"), False),
    ],
)
def test_a_command_line_that_predrain_would_refuse_is_detected(
    words: shell_lines.Words, objects: bool
) -> None:
    assert bool(wrong(words, whole=True)) is objects


def test_a_line_is_cut_into_its_commands() -> None:
    line = "sudo predrain halt; A=1 .venv/bin/predrain causes | less # predrain nothing"
    assert list(shell_lines.commands(line, "predrain")) == [("halt",), ("causes",)]
    assert list(shell_lines.commands("runuser -u predrain -- predrain doctor", "predrain")) == [("doctor",)]
    assert list(shell_lines.commands("ceph predrain status", "predrain")) == []
    assert list(shell_lines.spoken("predrain drain pause|resume ID", "predrain")) == [
        ("drain", "pause", "ID"),
        ("drain", "resume", "ID"),
    ]
