"""Every alert and every guard has its page, no page is left over, and what a page quotes is what is said."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from predrain.actions.guards import GUARDS

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
RULES = sorted(one for one in (ROOT / "deploy" / "prometheus").glob("*.yml") if one.stem != "prometheus")
SECTIONS = ("## What to check", "## What to do", "## When it goes away by itself")
LEAST = 14
"""Letters of its own below which a sentence in the code could be anything."""


def alerts() -> dict[str, str]:
    """Each alert with the lines of its rule."""
    found = {}
    for file in RULES:
        for rule in file.read_text().split("      - alert: ")[1:]:
            name, _, lines = rule.partition("\n")
            found[name] = lines
    return found


def pages(folder: str) -> set[str]:
    return {page.stem for page in (DOCS / folder).glob("*.md")} - {"README"}


def quoted(page: Path) -> list[str]:
    """Its block quotes, each on one line."""
    lines = [line for line in page.read_text().splitlines() if line.startswith(">")]
    return [part for part in " ".join(line[1:].strip() or "\n" for line in lines).split("\n") if part.strip()]


def patterns() -> Iterator[re.Pattern[str]]:
    """Every sentence of the guards and of the plan, with any word where the code puts a number or a name."""
    files = [*(ROOT / "actions" / "guards").glob("*.py"), ROOT / "actions" / "planning" / "pg_routes.py"]
    for file in files:
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.JoinedStr):
                parts = [one.value if isinstance(one, ast.Constant) else None for one in node.values]
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                parts = [node.value]
            else:
                continue
            if sum(len(str(part)) for part in parts if part is not None) >= LEAST:
                yield re.compile("".join(".+?" if part is None else re.escape(str(part)) for part in parts))


def test_every_alert_has_its_page_and_no_page_is_left_over() -> None:
    assert pages("alerts") == set(alerts())
    index = (DOCS / "alerts" / "README.md").read_text()
    assert set(re.findall(r"\((\w+)\.md\)", index)) == set(alerts())


def test_the_line_that_is_to_be_typed_leads_every_alert_to_its_page_on_the_site(tmp_path: Path) -> None:
    for rules in RULES:
        (tmp_path / rules.name).write_text(rules.read_text())
    (line,) = re.findall(r"^sed .*$", (DOCS / "alerts" / "README.md").read_text(), re.M)
    subprocess.run(["/bin/sh", "-c", line], cwd=tmp_path, check=True)
    written = "\n".join(rules.read_text() for rules in tmp_path.iterdir())
    led = re.findall(r"runbook_url: https://wiki\.example\.org/predrain/(.*)\.html$", written, re.M)
    assert sorted(led) == sorted(f"alerts/{name}" for name in alerts())
    assert all((DOCS / f"{page}.md").is_file() for page in led)
    assert "use_directory_urls: false" in (ROOT / "mkdocs.yml").read_text()


def test_every_guard_has_its_page_and_no_page_is_left_over() -> None:
    codes = [guard.code for guard in GUARDS]
    assert pages("guards") == set(codes)
    index = (DOCS / "reference" / "guards.md").read_text()
    assert re.findall(r"\(\.\./guards/([\w-]+)\.md\)", index) == codes


@pytest.mark.parametrize("name", sorted(alerts()))
def test_an_alert_leads_to_its_page_which_says_how_grave_it_is_and_when_it_comes(name: str) -> None:
    rule, page = alerts()[name], (DOCS / "alerts" / f"{name}.md").read_text()
    assert f"runbook_url: docs/alerts/{name}.md" in rule
    (severity,) = re.findall(r"severity: (\w+)", rule)
    wait = re.search(r"^        for: (\w+)$", rule, re.M)
    assert f"Severity {severity}, {f'after {wait[1]}' if wait else 'at once'}." in page
    assert all(section in page for section in SECTIONS)


@pytest.mark.parametrize("code", [guard.code for guard in GUARDS])
def test_every_quotation_on_a_guards_page_matches_a_sentence_in_the_code(code: str) -> None:
    page = DOCS / "guards" / f"{code}.md"
    assert all(section in page.read_text() for section in SECTIONS)
    known, said = list(patterns()), quoted(page)
    assert said
    assert [one for one in said if not any(pattern.search(one) for pattern in known)] == []


@pytest.mark.parametrize("folder", ["alerts", "guards", "reference"])
def test_links_of_these_pages_lead_to_pages(folder: str) -> None:
    for page in (DOCS / folder).glob("*.md"):
        for link in re.findall(r"\]\(([^)#:]+\.md)", page.read_text()):
            assert (page.parent / link).resolve().is_file(), f"{page.name}: {link}"
