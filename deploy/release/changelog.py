"""The changelog as a release reads and writes it: sections, entries, and the versions of formats that they name.

A section of a release begins with one line of formats, `Formats: outlook 3, store 11.`, which the release writes from
the code and the next release reads. Between two releases the section `Unreleased` names a changed format in one of two
notations, `Store version 12` and `` `outlook` (version 3) ``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date

from predrain.data.refusal import Refusal

UNRELEASED = "Unreleased"
STORE = "store"
"""The name of the store's format, beside the names of the wire formats."""
_HEADING = re.compile(r"(?m)^## (?P<title>.+)\n")
_ENTRY = re.compile(r"(?m)^- \S")
_FORMATS = re.compile(r"(?m)^Formats: (?P<formats>\w+ \d+(?:, \w+ \d+)*)\.$")
_STORE = re.compile(r"\bStore version (?P<version>\d+)")
_WIRE = re.compile(r"`(?P<name>\w+)`\s+\(version (?P<version>\d+)\)")


class ChangelogRefused(Refusal):
    """The changelog cannot become that of a release."""


def split_sections(changelog: str) -> dict[str, str]:
    """Return the text of each section by its title, in their order, without the headings.

    Raises ChangelogRefused where two sections have one title, or none is called `Unreleased`.
    """
    parts = _HEADING.split(changelog)
    titles = parts[1::2]
    if twice := sorted({title for title in titles if titles.count(title) > 1}):
        raise ChangelogRefused(f"CHANGELOG.md has the section {twice[0]} twice; merge them")
    if UNRELEASED not in titles:
        raise ChangelogRefused(
            f"CHANGELOG.md has no section `## {UNRELEASED}`; add it above the newest release"
        )
    return {title: text.strip("\n") for title, text in zip(titles, parts[2::2], strict=True)}


def check_entries(changelog: str) -> None:
    """Raise ChangelogRefused if the section `Unreleased` has no entry."""
    if not _ENTRY.search(split_sections(changelog)[UNRELEASED]):
        raise ChangelogRefused(
            f"the section {UNRELEASED} of CHANGELOG.md has no entry, so there is nothing to release; list what changed"
        )


def check_formats(changelog: str, formats: Mapping[str, int]) -> None:
    """Compare the section `Unreleased` with the `formats` of the code, by name.

    Raises ChangelogRefused if the section names a format with another version than the code, or does not name a format
    whose version is not that of the newest release.
    """
    sections = split_sections(changelog)
    section = sections.pop(UNRELEASED)
    named = _find_named_formats(section, formats)
    for name, version in named:
        if version != formats[name]:
            raise ChangelogRefused(
                f"the section {UNRELEASED} of CHANGELOG.md names version {version} of the format {name}, and the code"
                f" has version {formats[name]}; correct the section"
            )
    released = read_released_formats(sections)
    for name, version in formats.items():
        if released.get(name) != version and (name, version) not in named:
            notation = (
                f"`Store version {version}`" if name == STORE else f"`` `{name}` (version {version}) ``"
            )
            raise ChangelogRefused(
                f"the format {name} has version {version}, which the release before had not, and the section"
                f" {UNRELEASED} of CHANGELOG.md does not say so; write {notation} there, with what it means for an"
                " upgrade"
            )


def read_released_formats(sections: Mapping[str, str]) -> dict[str, int]:
    """Return the formats of the newest release, from the line that its section begins with; empty without one."""
    for text in sections.values():
        if found := _FORMATS.match(text):
            return {
                name: int(version)
                for name, version in (pair.split(" ") for pair in found["formats"].split(", "))
            }
    return {}


def write_release(changelog: str, version: str, day: date, formats: Mapping[str, int]) -> tuple[str, str]:
    """Return the changelog with the entries of `Unreleased` under `version`, and the text of that new section."""
    section = split_sections(changelog)[UNRELEASED]
    line = ", ".join(f"{name} {formats[name]}" for name in sorted(formats))
    released = f"Formats: {line}.\n\n{section}\n"
    before, after = changelog.split(f"## {UNRELEASED}\n", 1)
    rest = after[after.index(section) + len(section) :].lstrip("\n")
    heading = f"## {UNRELEASED}\n\n## {version} ({day.isoformat()})\n\n"
    return f"{before}{heading}{released}" + (f"\n{rest}" if rest else ""), released


def _find_named_formats(section: str, formats: Mapping[str, int]) -> list[tuple[str, int]]:
    stores = [(STORE, int(found["version"])) for found in _STORE.finditer(section)]
    wires = [(found["name"], int(found["version"])) for found in _WIRE.finditer(section)]
    return [(name, version) for name, version in stores + wires if name in formats]
