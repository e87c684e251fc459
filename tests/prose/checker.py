"""Checks the prose of pages and code against CONTRIBUTING.md: `python -m tests.prose.checker`."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.prose.paragraphs import Paragraph, read_code, read_page

ROOT: Final = Path(__file__).resolve().parents[2]
LONGEST_SENTENCE_WORDS: Final = 45
CODE_FOLDERS: Final = ("actions", "collector", "data", "deploy", "features", "models", "service", "tests")
OWN_PROSE: Final = ("docstring", "comment")
"""The kinds of paragraphs of tests that are checked. The strings of a test are its input and the expected output."""
WORDS_FREE: Final = {
    "docs/glossary.md": "the glossary explains predrain's own words",
    "data/older_documents.py": "sentences of earlier releases are read as they were written",
}
_WORDS: Final = {
    rule: [(re.compile(rf"\b{pattern}\b", re.IGNORECASE), term) for pattern, term in words.items()]
    for rule, words in tomllib.loads(Path(__file__).with_name("words.toml").read_text()).items()
}
_VERB: Final = "(?:is|are|was|were|has|have|had|can|may|must|will|does|do|did|means|holds|needs|says|makes)"
_SUBJECT: Final = re.compile(r"(?:Who|What)\b(?![- ](?:to|if)\b)[^?]*$")
_INVERSION: Final = re.compile(
    rf"(?:So|Nor|Never|Seldom|Only (?:then|there|so)) {_VERB}\b(?! that)|Had (?:you|it|the)\b|"
    r"(?:In|At|On|Below|Beside|Behind|Above|Under) (?:\w+ ){1,3}(?:stands?|lies|lie|is the|are the)\b"
)
_PRONOUN: Final = re.compile(rf"(?:It|They)\b|(?:This|That|These|Those) {_VERB}\b")
_FRAGMENT: Final = re.compile(
    r"(?:By|Of|To|For|In|On|From|With|At) (?:what|whom|which)\b[^?,]*$|"
    r"(?:Whether|Why|Where|How|When|That)\b[^?,]*$|"
    r"(?:For|Of|As|By|With|In|On|From|To|At)(?: [\w`'-]+){1,5}\.$"
)
_VAGUE_LINK: Final = re.compile(r"\[(?:how|why|there|here|this|it|so)\]\(", re.IGNORECASE)
_SENTENCE: Final = re.compile(r"(?<=[.!?:]) +(?=[A-Z`(\d]|predrain\b)|(?<=[.!?]\*\*) +| · ")


@dataclass(frozen=True, slots=True)
class Offence:
    """A sentence that breaks a rule, with the place and the advice."""

    place: str
    rule: str
    sentence: str
    advice: str


def find_offences(paragraph: Paragraph) -> Iterator[Offence]:
    """Yield each sentence of the paragraph with each rule that the sentence breaks."""
    place, kind = paragraph.place, paragraph.kind
    plain = re.sub(r"``?[^`]+``?", "`x`", paragraph.text)
    linked = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", plain).replace("**", "")
    if kind == "page" and (found := _VAGUE_LINK.search(plain)):
        yield Offence(place, "link", found[0], "name the page that the link leads to")
    if kind in ("page", "docstring") and _PRONOUN.match(linked):
        yield Offence(place, "pronoun", linked, "begin the paragraph with the noun")
    for number, sentence in enumerate(_SENTENCE.split(linked)):
        if kind == "docstring" and not number and _FRAGMENT.match(sentence):
            yield Offence(place, "fragment", sentence, "write a sentence with a subject and a verb")
        if kind != "text" and len(sentence.split()) > LONGEST_SENTENCE_WORDS:
            yield Offence(place, "length", sentence, f"use at most {LONGEST_SENTENCE_WORDS} words")
        if kind != "text" and _SUBJECT.match(sentence):
            yield Offence(place, "subject", sentence, "name the person or the thing")
        if kind != "text" and _INVERSION.match(sentence):
            yield Offence(place, "inversion", sentence, "put the subject before the verb")
        for rule, words in _WORDS.items():
            for pattern, term in words:
                if found := pattern.search(sentence):
                    yield Offence(place, rule, sentence, f"{found[0]}: {term}")


def find_all_offences(root: Path) -> Iterator[Offence]:
    """Yield every offence of the pages and of the code under the root."""
    listed = subprocess.run(["git", "ls-files"], cwd=root, capture_output=True, text=True, check=True).stdout
    for file in (name for name in listed.splitlines() if (root / name).is_file()):
        page = file.endswith(".md") and file.startswith(
            ("docs/", "README.md", "CONTRIBUTING.md", "SECURITY.md")
        )
        if page or (file.endswith(".py") and file.startswith(CODE_FOLDERS)):
            for paragraph in (read_page if page else read_code)(file, (root / file).read_text()):
                if file.startswith("tests/") and paragraph.kind not in OWN_PROSE:
                    continue
                for offence in find_offences(paragraph):
                    if offence.rule not in _WORDS or not file.startswith(tuple(WORDS_FREE)):
                        yield offence


def main() -> int:
    """Print every offence with its place. Return the exit code: 1 if there is one."""
    offences = list(find_all_offences(ROOT))
    for one in offences:
        print(f"{one.place}: {one.rule}: {one.advice}: {one.sentence[:110]}")
    return int(bool(offences))


if __name__ == "__main__":
    sys.exit(main())
