"""Text from outside: the longest length of each field, and one rule for the characters that stay.

Drives, hosts, clusters, sign-in providers and people send text that ends in logs, mails, terminals and on the page.
Where the text enters, `clean_text` makes it one line of bounded length. It removes everything that controls a
terminal or changes a line's direction. Letters of every script, combining marks and emoji stay.
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
"""Characters read for each one that may stay: a text of nothing but escapes is not read to its end."""
_LONGEST_CLUSTER = 32
"""Most code points of one visible character over which a cut goes back."""

_ESCAPES = re.compile(
    "(?:\x1b\\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    "|(?:\x1b[\\]PX^_]|[\x90\x98\x9d\x9e\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\\\|\x9c)"  # OSC, DCS, SOS, PM, APC
    "|\x1b[ -/]*[0-~]"  # all others
)
_JOINERS = "\u200c\u200d"
"""The only format characters that stay, because cursive scripts and emoji need them."""
_MODIFIERS = range(0x1F3FB, 0x1F400)
_REGIONAL = range(0x1F1E6, 0x1F200)
_IGNORED_PLANE = range(0xE0000, 0xE1000)
_VARIATION_SELECTORS = range(0xE0100, 0xE01F0)
_VISIBLE_FORMAT = frozenset(
    "\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd"
)
"""Signs of Arabic, Syriac and Kaithi that Unicode calls format characters although they are visible."""


@dataclass(frozen=True, slots=True)
class TextField:
    """One kind of text from outside."""

    name: str
    limit: int
    """Characters that stay, including the mark of a cut."""
    enters: str
    """The places where the text enters."""
    identifies: bool = False
    """True if the text identifies something: it carries a digest of the original when it was cleaned, or it is
    refused."""


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
    """Return one line of at most `limit` characters. Cleaning it again changes nothing.

    Escape sequences, bidirectional controls and invisible format characters are removed. Control characters, line
    breaks and runs of blanks become one blank. Lone surrogates, private-use characters and noncharacters become
    U+FFFD. A text that is cut ends in `CUT_MARK`, and no visible character is cut in two.
    """
    if len(text) <= limit and text.isascii() and text.isprintable():
        return " ".join(text.split()) if "  " in text or text[:1] == " " or text[-1:] == " " else text
    read = text[: _READ_FACTOR * limit]
    kept = "".join(map(_clean_character, _ESCAPES.sub("", read)))
    line = " ".join(kept.split())
    if len(line) <= limit and len(read) == len(text):
        return line
    return _truncate_line(line, limit)


def clean_identifier(text: str, limit: int) -> str:
    """Clean an identifier as `clean_text` does, and keep different identifiers different.

    If more than blanks had to be removed, a digest of the whole is added. Return an empty text if nothing readable is
    left.
    """
    line = clean_text(text, limit)
    if line == text or not line or line == (whole := " ".join(text.split())):
        return line
    digest = hashlib.sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST_DIGITS]
    return f"{clean_text(text, limit - _DIGEST_DIGITS - 1)}#{digest}"


def is_clean(text: str, limit: int) -> bool:
    """Return whether `clean_text` would change nothing."""
    return clean_text(text, limit) == text


def escape_controls(text: str) -> str:
    """Return `text`, at any length, with every character that `clean_text` would remove or replace
    written as `\\x1b`.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        letter
        if letter == " " or _clean_character(letter) == letter
        else letter.encode("unicode_escape").decode()
        for letter in text
    )


def _clean_character(letter: str) -> str:
    """Return the replacement of one character."""
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


def _truncate_line(line: str, limit: int) -> str:
    """Return the beginning of `line` and the mark, `limit` characters at most."""
    if limit < 1:
        return ""
    end = least = min(limit - 1, len(line))
    least = max(0, end - _LONGEST_CLUSTER)
    place = end
    while place > least and place < len(line) and _is_inside_grapheme(line, place):
        place -= 1
    return line[: place if place > least else end].rstrip() + CUT_MARK


def _is_inside_grapheme(line: str, place: int) -> bool:
    """Return whether the character at `place` belongs to the one before it."""
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
