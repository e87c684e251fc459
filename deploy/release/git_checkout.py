"""The checkout that a release is made of, by way of git."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from predrain.data.refusal import Refusal


class GitRefused(Refusal):
    """git ended with an error."""


@dataclass(frozen=True, slots=True)
class GitCheckout:
    """A folder with `.git` in it."""

    folder: Path

    def run_git(self, *words: str, text: str | None = None) -> str:
        """Run git with `text` on its standard input, and return what it printed. Raises GitRefused."""
        done = subprocess.run(
            ["git", *words], cwd=self.folder, input=text, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise GitRefused(f"git {words[0]} failed: {done.stderr.strip() or done.stdout.strip()}")
        return done.stdout.rstrip("\n")

    def list_changes(self) -> list[str]:
        """List the files that are not as the last commit has them, files that git does not know included."""
        return [line[3:] for line in self.run_git("status", "--porcelain").splitlines()]

    def read_branch(self) -> str:
        """Return the name of the branch that is checked out, empty for none."""
        return self.run_git("branch", "--show-current")

    def has_tag(self, tag: str) -> bool:
        """Tell whether there is a tag of that name."""
        return bool(self.run_git("tag", "--list", tag))

    def read_commit_day(self) -> date:
        """Return the day of the last commit, in the time zone of its committer."""
        return date.fromisoformat(self.run_git("log", "-1", "--format=%cs"))

    def commit_files(self, texts: Mapping[str, str], message: str) -> None:
        """Write the text of each file, by its path, and commit them.

        Raises GitRefused where git does not commit, for example because a hook refuses it. The files are then as
        they were before.
        """
        before = {file: (self.folder / file).read_text() for file in texts}
        for file, text in texts.items():
            (self.folder / file).write_text(text)
        try:
            self.run_git("commit", "--quiet", f"--message={message}", "--", *texts)
        except GitRefused:
            for file, text in before.items():
                (self.folder / file).write_text(text)
            raise

    def tag_commit(self, tag: str, message: str) -> None:
        """Put an annotated tag on the last commit. Raises GitRefused."""
        # Without `verbatim` git would drop the headings, as comments.
        self.run_git("tag", "--annotate", "--cleanup=verbatim", "--file=-", tag, text=message)
