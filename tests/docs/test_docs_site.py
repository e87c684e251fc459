"""The site: built without a warning, whole, and needing no other host."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote

import pytest

from tests.docs.pages import DOCS, ROOT

INDEX = DOCS / "README.md"


def build(root: Path, site: Path) -> subprocess.CompletedProcess[str]:
    """mkdocs as `make docs` runs it."""
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(site)],
        cwd=root, env={**os.environ, "NO_MKDOCS_2_WARNING": "1", "NO_COLOR": "1"},
        capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = build(ROOT, folder)
    assert done.returncode == 0, done.stderr
    return folder


def linked(page: Path) -> set[Path]:
    """The pages that a page leads to."""
    found = re.findall(r"\]\(([^)#:]+\.md)(?:#[^)]*)?\)", page.read_text())
    return {(page.parent / unquote(link)).resolve() for link in found}


@pytest.mark.slow
def test_every_page_is_in_the_site(site: Path) -> None:
    names = {page.relative_to(DOCS).with_suffix("") for page in DOCS.rglob("*.md")}
    built = {page.relative_to(site).with_suffix("") for page in site.rglob("*.html")}
    assert {name.with_name("index") if name.name == "README" else name for name in names} <= built


@pytest.mark.slow
def test_no_page_of_the_site_asks_another_host_for_anything(site: Path) -> None:
    asks = re.compile(r"""<(?:script|link|img|iframe)\b[^>]*?(?:src|href)=["']?((?:https?:)?//[^"'> ]+)""")
    told = {f"{page.name}: {url}" for page in site.rglob("*.html") for url in asks.findall(page.read_text())}
    assert told == set()
    # The theme fetches what draws these from another host, once one is on a page.
    assert not [page for page in site.rglob("*.html") if 'class="mermaid"' in page.read_text()]


def test_every_page_can_be_reached_from_the_index() -> None:
    reached, ahead = {INDEX}, [INDEX]
    while ahead:
        fresh = {
            page for page in linked(ahead.pop()) if page.is_file() and page.is_relative_to(DOCS)
        } - reached
        reached |= fresh
        ahead += fresh
    assert set(DOCS.rglob("*.md")) - reached == set()


@pytest.mark.slow
def test_links_that_lead_nowhere_fail_the_build(tmp_path: Path) -> None:
    for page in DOCS.rglob("*.md"):
        empty = tmp_path / page.relative_to(ROOT)
        empty.parent.mkdir(parents=True, exist_ok=True)
        empty.write_text("# A page\n")
    shutil.copy(ROOT / "mkdocs.yml", tmp_path)
    faults = ("gone.md", "tutorial.md#gone", "/tutorial.md")
    (tmp_path / "docs" / "README.md").write_text("\n\n".join(f"[a link]({fault})" for fault in faults))
    done = build(tmp_path, tmp_path / "site")
    warned = [line for line in done.stderr.splitlines() if line.startswith("WARNING")]
    assert done.returncode != 0
    assert [fault for fault in faults if not any(f"'{fault}'" in line for line in warned)] == []


def test_an_alerts_and_a_guards_page_first_say_what_they_mean() -> None:
    pages = [
        page
        for folder in ("alerts", "guards")
        for page in (DOCS / folder).glob("*.md")
        if page.stem != "README"
    ]
    for page in pages:
        meant, _, rest = page.read_text().partition("\n## ")
        words = meant.split("\n", 1)[1].split()
        assert len(words) >= 15, f"{page.name} does not say what it means"
        for section in ("What to check", "What to do"):
            told = re.search(rf"## {section}\n(.*?)(?=\n## |\Z)", "## " + rest, re.DOTALL)
            assert told, f"{page.name} lacks: {section}"
            assert told[1].strip(), f"{page.name} says nothing under: {section}"
