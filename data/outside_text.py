"""Text from outside: how long each field may be, and which characters stay, by one rule.

Drives, hosts, clusters, sign-in providers and people send text that ends in logs, mails, terminals and on the page.
Where it enters, `clean_text` makes it one line of a bounded length without anything that steers a terminal or turns a
line's direction. Letters of every script, combining marks and emoji stay.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from dataclasses import dataclass
from typing import Final

CUT_MARK: Final = "\u2026"
"""The last character of a text that was cut."""
REPLACEMENT: Final = "\ufffd"
_DIGEST_DIGITS = 12
_READ_FACTOR = 8
"""Characters that are looked at for each one that may stay: a text of nothing but escapes is not read to its end."""
_LONGEST_CLUSTER = 32
"""Code points of one visible character that a cut goes back over, at most."""

_ESCAPES = re.compile(
    "(?:\x1b\\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    "|(?:\x1b[\\]PX^_]|[\x90\x98\x9d\x9e\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\\\|\x9c)"  # OSC, DCS, SOS, PM, APC
    "|\x1b[ -/]*[0-~]"  # all others
)
_JOINERS = "\u200c\u200d"
"""Cursive scripts and emoji need them; they are the only format characters that stay."""
_MODIFIERS = range(0x1F3FB, 0x1F400)
_REGIONAL = range(0x1F1E6, 0x1F200)
_IGNORED_PLANE = range(0xE0000, 0xE1000)
_VARIATION_SELECTORS = range(0xE0100, 0xE01F0)
_VISIBLE_FORMAT = frozenset(
    "\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd"
)
"""Signs of Arabic, Syriac and Kaithi that Unicode calls format characters and that are written."""


@dataclass(frozen=True, slots=True)
class TextField:
    """One kind of text from outside."""

    name: str
    limit: int
    """Characters that stay, the mark of a cut among them."""
    enters: str
    """Where it enters."""
    identifies: bool = False
    """Whether it tells one thing from another: cleaned, it carries a digest of what it was, or it is refused."""


DEVICE = TextField(
    "device id", 256, "wire (`accept`), cluster's device list; refused where it is not clean", True
)
HOST = TextField("host name", 256, "wire (`accept`), enrolment; refused where it is not clean", True)
MODEL = TextField("model, vendor", 256, "smartctl's output, wire, importers", True)
SERIAL = TextField("serial number, WWN", 256, "smartctl's output, wire, importers", True)
FIRMWARE = TextField("family, firmware", 256, "smartctl's output, wire, importers")
ATTRIBUTE_NAME = TextField(
    "attribute name", 64, "smartctl's output, wire (256 attributes at most), importers"
)
MESSAGE = TextField("message of smartctl", 4096, "smartctl's output")
UNREADABLE_WHY = TextField("why a disk cannot be read", 500, "wire")
PRODUCER = TextField("producer of an envelope", 256, "wire", True)
DEAD_LETTER_TEXT = TextField("key and reason of a dead letter", 1_000, "log")
REASON = TextField("reason of a drain, note of an outcome", 2_000, "REST, requests in the cluster")
HALT_WHY = TextField("reason of a halt or a silence", 500, "REST, command line, cluster's `predrain/halt`")
PATTERN = TextField("pattern of a silence, target of a drain", 256, "REST, requests in the cluster")
CALLER = TextField("name of a caller", 256, "sign-in provider's claims, requests in the cluster", True)
CLUSTER_NAME = TextField(
    "names of hosts, racks, pools, rules, mgrs and devices", 256, "cluster's answers", True
)
CLUSTER_WORDS = TextField("message of a Ceph daemon", 2_000, "cluster's answers, ceph-mgr's answers to steps")

TEXT_FIELDS: Final = (
    DEVICE, HOST, MODEL, SERIAL, FIRMWARE, ATTRIBUTE_NAME, MESSAGE, UNREADABLE_WHY, PRODUCER, DEAD_LETTER_TEXT, REASON,
    HALT_WHY, PATTERN, CALLER, CLUSTER_NAME, CLUSTER_WORDS,
)  # fmt: skip
"""Every limit, as `docs/reference/text.md` prints it."""


def clean_text(text: str, limit: int) -> str:
    """One line of at most `limit` characters, and the same again when it is cleaned again.

    Escape sequences, bidirectional controls and invisible format characters go; control characters, line breaks and
    runs of blanks become one blank; lone surrogates, private-use characters and noncharacters become U+FFFD. What is
    cut ends in `CUT_MARK`, and no visible character is cut in two.
    """
    if len(text) <= limit and text.isascii() and text.isprintable():
        return " ".join(text.split()) if "  " in text or text[:1] == " " or text[-1:] == " " else text
    read = text[: _READ_FACTOR * limit]
    kept = "".join(map(_kept, _ESCAPES.sub("", read)))
    line = " ".join(kept.split())
    if len(line) <= limit and len(read) == len(text):
        return line
    return _cut(line, limit)


def clean_identifier(text: str, limit: int) -> str:
    """As `clean_text`; where more than blanks had to go, with a digest of the whole, so that two never become one.

    Empty where nothing is left that could be read.
    """
    line = clean_text(text, limit)
    if line == text or not line or line == (whole := " ".join(text.split())):
        return line
    digest = hashlib.sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST_DIGITS]
    return f"{clean_text(text, limit - _DIGEST_DIGITS - 1)}#{digest}"


def is_clean(text: str, limit: int) -> bool:
    """Whether `clean_text` would change nothing."""
    return clean_text(text, limit) == text


def escape_controls(text: str) -> str:
    """`text` with all that `clean_text` would take away or replace written out as `\\x1b`, at any length."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        letter if letter == " " or _kept(letter) == letter else letter.encode("unicode_escape").decode()
        for letter in text
    )


def _kept(letter: str) -> str:
    """What stays of one character."""
    if letter.isprintable():
        return letter
    match unicodedata.category(letter):
        case "Cc" | "Zs" | "Zl" | "Zp":
            return " "
        case "Cf":
            return letter if letter in _JOINERS or letter in _VISIBLE_FORMAT else ""
        case "Cn" if letter == "\u2065" or ord(letter) in _IGNORED_PLANE:
            return ""
        case "Cn" if ord(letter) & 0xFFFE != 0xFFFE and not 0xFDD0 <= ord(letter) <= 0xFDEF:
            return letter  # a letter or an emoji that is younger than this Python
        case _:
            return REPLACEMENT


def _cut(line: str, limit: int) -> str:
    """The beginning of `line` and the mark, `limit` characters at most."""
    if limit < 1:
        return ""
    end = least = min(limit - 1, len(line))
    least = max(0, end - _LONGEST_CLUSTER)
    place = end
    while place > least and place < len(line) and _continues(line, place):
        place -= 1
    return line[: place if place > least else end].rstrip() + CUT_MARK


def _continues(line: str, place: int) -> bool:
    """Whether the character at `place` belongs to the one before it."""
    letter, before = line[place], line[place - 1]
    code = ord(letter)
    if before == "\u200d" or letter in _JOINERS or code in _MODIFIERS or code in _VARIATION_SELECTORS:
        return True
    if code in _REGIONAL:
        flags = 0
        while flags < place and ord(line[place - 1 - flags]) in _REGIONAL:
            flags += 1
        return flags % 2 == 1
    return unicodedata.category(letter) in ("Mn", "Mc", "Me")
