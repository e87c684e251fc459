"""A release: what it checks, which files it changes, and the tag that it puts on the commit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from difflib import unified_diff
from pathlib import Path

from deploy.release.changelog import check_entries, check_formats, write_release
from deploy.release.git_checkout import GitCheckout, GitRefused
from deploy.release.version_places import ReleaseVersion, read_project_version, replace_versions
from predrain.data.refusal import Refusal

BRANCH = "main"
CHANGELOG = "CHANGELOG.md"


class ReleaseRefused(Refusal):
    """The checkout cannot be released as it is."""


@dataclass(frozen=True, slots=True)
class PlannedRelease:
    """The new text of each file that changes, by its path, with the tag and its message."""

    version: ReleaseVersion
    texts: Mapping[str, str]
    message: str

    @property
    def tag_name(self) -> str:
        """Return the name of the tag."""
        return f"v{self.version}"


def plan_release(
    checkout: GitCheckout, version: ReleaseVersion, formats: Mapping[str, int], day: date | None = None
) -> PlannedRelease:
    """Check the checkout and return its release, without a change to any file.

    `formats` are the versions of the code's formats by name. `day` is the day of the last commit if it is not given.
    Raises a Refusal whose sentence names the cure.
    """
    if changes := checkout.list_changes():
        raise ReleaseRefused(
            f"{_count(len(changes))} not committed, {changes[0]} first; commit or remove them"
        )
    if (branch := checkout.read_branch()) != BRANCH:
        raise ReleaseRefused(f"releases are made of {BRANCH}, and {branch or 'no branch'} is checked out; type:"
                             f" git switch {BRANCH}")  # fmt: skip
    folder = checkout.folder
    current = read_project_version((folder / "pyproject.toml").read_text())
    if version <= current:
        raise ReleaseRefused(
            f"{version} is not newer than {current}, the version of pyproject.toml; give a newer one"
        )
    if checkout.has_tag(f"v{version}"):
        raise ReleaseRefused(
            f"there is a tag v{version} already; give a newer version, or look at it by: git show v{version}"
        )
    changelog = (folder / CHANGELOG).read_text()
    check_entries(changelog)
    check_formats(changelog, formats)
    released, section = write_release(changelog, str(version), day or checkout.read_commit_day(), formats)
    texts = {CHANGELOG: released, **replace_versions(folder, current, version)}
    return PlannedRelease(version, texts, f"predrain {version}\n\n{section}")


def carry_out_release(checkout: GitCheckout, planned: PlannedRelease) -> None:
    """Write and commit the files, and tag the commit. Nothing is pushed. Raises GitRefused."""
    checkout.commit_files(planned.texts, f"Release {planned.version}")
    try:
        checkout.tag_commit(planned.tag_name, planned.message)
    except GitRefused as fault:
        raise GitRefused(
            f"{fault}; the commit has no tag, take it back by: git reset --keep HEAD~1"
        ) from None


def iterate_changed_lines(folder: Path, planned: PlannedRelease) -> Iterator[str]:
    """Give the lines of a unified diff of all files."""
    for file, text in planned.texts.items():
        before = (folder / file).read_text().splitlines()
        yield from unified_diff(before, text.splitlines(), f"a/{file}", f"b/{file}", lineterm="", n=1)


def _count(files: int) -> str:
    return "1 file is" if files == 1 else f"{files} files are"
