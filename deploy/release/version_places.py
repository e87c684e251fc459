"""The version of predrain as it stands in the files of a checkout."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from predrain.data.refusal import Refusal

_VERSION = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)")


class VersionRefused(Refusal):
    """A version is none, or a file does not hold it where it should."""


class ReleaseVersion(NamedTuple):
    """A version of predrain. Tuples of numbers compare as versions do."""

    major: int
    minor: int
    patch: int

    @classmethod
    def parse_version(cls, text: str) -> ReleaseVersion:
        """Read `1.2.3`. Raises VersionRefused for anything else.

        Versions such as 1.2.3rc1 are left out, because Debian's and Python's tools order them differently.
        """
        if not (found := _VERSION.fullmatch(text)):
            raise VersionRefused(f"{text!r} is no version of predrain; give three numbers, as in 0.2.0")
        return cls(*map(int, found.groups()))

    def __str__(self) -> str:
        return ".".join(map(str, self))


@dataclass(frozen=True, slots=True)
class VersionPlace:
    """A file, and the text around the version in it. The version may stand there more than once."""

    file: str
    before: str
    after: str = '"'

    def replace_version(self, text: str, old: ReleaseVersion, new: ReleaseVersion) -> str:
        """Return the text of the file with the new version. Raises VersionRefused if the old one is not there."""
        pattern = re.compile(f"(?m)({self.before}){re.escape(str(old))}({self.after})")
        changed, count = pattern.subn(rf"\g<1>{new}\g<2>", text)
        if not count:
            raise VersionRefused(
                f"{self.file} does not have version {old}, which pyproject.toml has; correct the file, or its line in"
                " deploy/release/version_places.py"
            )
        return changed


PROJECT = VersionPlace("pyproject.toml", r'^\[project\]\nname = "predrain"\nversion = "')
VERSION_PLACES = (
    PROJECT,
    VersionPlace("uv.lock", r'^name = "predrain"\nversion = "'),
    VersionPlace("service/page/package.json", r'^  "version": "'),
    VersionPlace("service/page/package-lock.json", r'"name": "predrain-page",\n\s+"version": "'),
    VersionPlace("deploy/kustomize/kustomization.yaml", r"^\s+newTag: ", "$"),
    VersionPlace("docs/how-to/install.md", r"predrain(?:-collector|-training)?_", r"\+deb\d+_amd64\.deb"),
)
"""Each file that names the version of the checkout itself, and not that of some release."""


def read_project_version(project: str) -> ReleaseVersion:
    """Return the version in the text of pyproject.toml. Raises VersionRefused."""
    if not (found := re.search(rf'(?m){PROJECT.before}([^"]+)"', project)):
        raise VersionRefused("pyproject.toml has no version in its first lines; restore the file")
    return ReleaseVersion.parse_version(found[1])


def replace_versions(folder: Path, old: ReleaseVersion, new: ReleaseVersion) -> Mapping[str, str]:
    """Return the new text of each file of VERSION_PLACES below `folder`, by its path. Raises VersionRefused."""
    return {
        place.file: place.replace_version((folder / place.file).read_text(), old, new)
        for place in VERSION_PLACES
    }
