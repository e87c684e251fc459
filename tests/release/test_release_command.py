"""`make release` on a throw-away repository with real files of this one makes one commit and one tag, or refuses."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from deploy.release.__main__ import main, read_code_formats
from deploy.release.changelog import STORE, check_formats, split_sections
from deploy.release.version_places import VERSION_PLACES, read_project_version
from tests.conftest import ROOT

CODE = read_code_formats()
CHANGED = (STORE, "reading", "latency_batch", "outlook")
OLD = f"Formats: {', '.join(f'{name} {CODE[name] - (name in CHANGED)}' for name in CODE)}."
CHANGELOG = f"""# Changelog

A line that stays above.

## Unreleased

### Before an upgrade

- **Store version {CODE[STORE]}.** The wire formats `reading` (version {CODE["reading"]}), `latency_batch`
  (version {CODE["latency_batch"]}) and `outlook` (version {CODE["outlook"]}) are new.

## 0.1.0

{OLD}

The first version.
"""
CURRENT = str(read_project_version((ROOT / "pyproject.toml").read_text()))
OUT = ("--date", "2027-01-02")


def git(folder: Path, *words: str) -> str:
    """Run git in the repository and return what it printed."""
    done = subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def commit(folder: Path, file: str, text: str) -> None:
    """Commit a file with that text."""
    (folder / file).parent.mkdir(parents=True, exist_ok=True)
    (folder / file).write_text(text)
    git(folder, "add", file)
    git(folder, "commit", "--quiet", "--message", f"Change {file}")


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository on the branch main, with one commit and the files that name the version."""
    for name in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{name}_NAME", "ann")
        monkeypatch.setenv(f"GIT_{name}_EMAIL", "ann@example.com")
        monkeypatch.setenv(f"GIT_{name}_DATE", "2026-12-31T23:00:00+00:00")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    folder = tmp_path / "repository"
    for place in VERSION_PLACES:
        (folder / place.file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / place.file, folder / place.file)
    git(folder, "init", "--quiet", "--initial-branch=main")
    git(folder, "add", ".")
    commit(folder, "CHANGELOG.md", CHANGELOG)
    return folder


def is_as_before(folder: Path) -> bool:
    """Whether the repository has no tag of the release, and no changed file."""
    return (git(folder, "status", "--porcelain"), git(folder, "tag", "--list", "v9*")) == ("", "")


@pytest.mark.slow
def test_a_release_is_one_commit_with_an_annotated_tag(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["9.0.0", *OUT], repository) == 0
    assert git(repository, "log", "-1", "--format=%s") == "Release 9.0.0"
    assert git(repository, "cat-file", "-t", "v9.0.0") == "tag"
    assert git(repository, "rev-parse", "v9.0.0^{commit}") == git(repository, "rev-parse", "HEAD")
    assert git(repository, "status", "--porcelain") == ""
    assert "git push --atomic origin main v9.0.0" in capsys.readouterr().out


@pytest.mark.slow
def test_the_tag_says_what_the_changelog_says_of_the_version(repository: Path) -> None:
    assert main(["9.0.0", *OUT], repository) == 0
    section = split_sections((repository / "CHANGELOG.md").read_text())["9.0.0 (2027-01-02)"]
    assert "### Before an upgrade" in section
    assert (
        git(repository, "tag", "--list", "--format=%(contents)", "v9.0.0") == f"predrain 9.0.0\n\n{section}"
    )


@pytest.mark.slow
def test_the_entries_move_below_the_version_and_nothing_else_changes(repository: Path) -> None:
    assert main(["9.0.0", *OUT], repository) == 0
    formats = f"Formats: {', '.join(f'{name} {CODE[name]}' for name in sorted(CODE))}."
    assert (repository / "CHANGELOG.md").read_text() == CHANGELOG.replace(
        "## Unreleased\n", f"## Unreleased\n\n## 9.0.0 (2027-01-02)\n\n{formats}\n"
    )


@pytest.mark.slow
def test_every_file_that_names_the_version_names_the_new_one(repository: Path) -> None:
    before = {place.file: (repository / place.file).read_text() for place in VERSION_PLACES}
    assert main(["9.0.0", *OUT], repository) == 0
    read = {file: (repository / file).read_text() for file in before}
    assert tomllib.loads(read["pyproject.toml"])["project"]["version"] == "9.0.0"
    (locked,) = (one for one in tomllib.loads(read["uv.lock"])["package"] if one["name"] == "predrain")
    assert locked["version"] == "9.0.0"
    assert json.loads(read["service/page/package.json"])["version"] == "9.0.0"
    page = json.loads(read["service/page/package-lock.json"])
    assert (page["version"], page["packages"][""]["version"]) == ("9.0.0", "9.0.0")
    assert re.findall(r"_(\d+\.\d+\.\d+)\+deb12_amd64", read["docs/how-to/install.md"])
    for file, text in before.items():
        lines, changed = text.splitlines(), read[file].splitlines()
        assert len(lines) == len(changed)
        different = [(old, new) for old, new in zip(lines, changed, strict=True) if old != new]
        assert different, file
        assert all(old.replace(CURRENT, "9.0.0") == new for old, new in different), file


@pytest.mark.slow
def test_without_a_date_the_release_is_of_the_day_of_the_last_commit(repository: Path) -> None:
    assert main(["9.0.0"], repository) == 0
    assert "## 9.0.0 (2026-12-31)\n" in (repository / "CHANGELOG.md").read_text()


@pytest.mark.slow
def test_a_dry_run_prints_the_changes_and_the_tag_and_makes_none(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    head = git(repository, "rev-parse", "HEAD")
    assert main(["9.0.0", "--dry-run", *OUT], repository) == 0
    said = capsys.readouterr().out
    assert f'-version = "{CURRENT}"\n+version = "9.0.0"' in said
    assert "v9.0.0 with:\n\npredrain 9.0.0\n" in said
    assert (git(repository, "rev-parse", "HEAD"), is_as_before(repository)) == (head, True)


@pytest.mark.slow
def test_the_next_release_compares_its_formats_with_the_line_of_this_one(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["9.0.0", *OUT], repository) == 0
    changelog = (repository / "CHANGELOG.md").read_text()
    commit(repository, "CHANGELOG.md", changelog.replace("## Unreleased\n", "## Unreleased\n\n- A fix.\n"))
    assert main(["9.0.1", *OUT], repository) == 0, capsys.readouterr().err


REFUSED = [
    ("9.0", CHANGELOG, "'9.0' is no version of predrain; give three numbers"),
    ("9.0.0rc1", CHANGELOG, "'9.0.0rc1' is no version"),
    (CURRENT, CHANGELOG, "is not newer than"),
    ("9.0.0", CHANGELOG.replace("- **", "**"), "has no entry, so there is nothing to release"),
    ("9.0.0", CHANGELOG.replace("## Unreleased", "## Later"), "has no section `## Unreleased`"),
    ("9.0.0", CHANGELOG.replace(f"version {CODE[STORE]}", "version 99"), "names version 99 of the format store"),
    ("9.0.0", CHANGELOG.replace("`reading` (version ", "`reading` (version 9"), "of the format reading, and the code"),
    ("9.0.0", CHANGELOG.replace("`outlook`", "others"), "write `` `outlook` (version "),
    ("9.0.0", CHANGELOG.replace("Store version", "The store has"), "write `Store version "),
    ("9.0.0", CHANGELOG.replace("dead_letter ", "dead_letter 9"), "the format dead_letter has version"),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    ("version", "changelog", "reason"), REFUSED, ids=[reason for _, _, reason in REFUSED]
)
def test_a_release_is_refused_with_the_cure(
    repository: Path, version: str, changelog: str, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    commit(repository, "CHANGELOG.md", changelog + "\n")
    assert main([version], repository) == 1
    assert reason in capsys.readouterr().err
    assert is_as_before(repository)


@pytest.mark.slow
def test_a_file_that_is_not_committed_refuses_the_release(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (repository / "new.py").write_text("")
    assert main(["9.0.0"], repository) == 1
    assert "1 file is not committed, new.py first; commit or remove them" in capsys.readouterr().err


@pytest.mark.slow
def test_a_release_is_made_of_main_alone(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    git(repository, "switch", "--quiet", "--create", "work")
    assert main(["9.0.0"], repository) == 1
    assert "work is checked out; type: git switch main" in capsys.readouterr().err


@pytest.mark.slow
def test_a_tag_that_is_there_is_not_moved(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    git(repository, "tag", "v9.0.0")
    assert main(["9.0.0"], repository) == 1
    assert "there is a tag v9.0.0 already" in capsys.readouterr().err


@pytest.mark.slow
def test_a_file_with_another_version_than_the_project_refuses_the_release(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lock = repository / "service" / "page" / "package-lock.json"
    commit(repository, "service/page/package-lock.json", lock.read_text().replace(f'"{CURRENT}"', '"0.0.9"'))
    assert main(["9.0.0"], repository) == 1
    assert "service/page/package-lock.json does not have version" in capsys.readouterr().err
    assert is_as_before(repository)


@pytest.mark.slow
def test_a_commit_that_a_hook_refuses_leaves_every_file_as_it_was(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hook = repository / ".git" / "hooks" / "pre-commit"
    hook.write_text("#!/bin/sh\necho 'not today' >&2\nexit 1\n")
    hook.chmod(0o755)
    assert main(["9.0.0"], repository) == 1
    assert "git commit failed: not today" in capsys.readouterr().err
    assert is_as_before(repository)


def test_this_checkout_names_the_formats_of_its_code_in_the_changelog() -> None:
    check_formats((ROOT / "CHANGELOG.md").read_text(), read_code_formats())
