"""Turns the bytes of a text output into clean lines: any encoding, terminal colours, carriage returns, a prompt."""

from __future__ import annotations

import codecs
import quopri
import re
from collections.abc import Iterator

LONGEST_LINE = 1024
MOST_LINES = 200_000
"""Lines read at most. The longest real output known has below 5,000."""

_COLOURS = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()][0-9A-B]|[@-Z=>])")
_HEADER = re.compile(r"smartctl (?:version )?(?:pre-)?(\d+)\.(\d+)\b")
_SIGNS = re.compile(
    r"^[ \t$#]*(?:smartctl (?:version )?(?:pre-)?\d+\.\d|=== START OF (?:INFORMATION|READ SMART|SMART DATA|OFFLINE)"
    r"|SMART overall-health|SMART Health Status:|SMART Attributes Data Structure|SMART/Health Information"
    r"|ID# +ATTRIBUTE_NAME|Device Model: |Model Number: +\S|Error counter log:|Smartctl open device:"
    r"|Elements in grown defect list:|Vendor: +\S[^\n]*\r?\nProduct: )",
    re.MULTILINE,
)
_HEAD_CHARACTERS = 256 * 1024
# smartctl itself has one line that begins like a quotation: `>> Terminate command early`.
_QUOTED = re.compile(r"^[ \t]*(?!>> Terminate)(?:>[ \t]?)+", re.MULTILINE)
_MAILED = re.compile(rb"=3D=3D=3D START OF |=20\r?\n")  # no line of smartctl's ends so


def decode_output_text(document: bytes) -> str:
    """Decode UTF-8, or UTF-16 as PowerShell writes it; other bytes become U+FFFD and are passed over in numbers.

    Terminal colours are removed, and so are a mail program's changes: quoted-printable bytes and the marks of a
    quotation.
    """
    if document.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        written = document.decode("utf-16", "replace")
    else:
        mailed = quopri.decodestring(document) if _MAILED.search(document) else document
        written = mailed.removeprefix(codecs.BOM_UTF8).decode("utf-8", "replace")
    for odd, plain in (("\r\n", "\n"), ("\r", "\n"), ("\u00a0", " ")):
        written = written.replace(odd, plain)
    return _QUOTED.sub("", _COLOURS.sub("", written))


def is_text(document: bytes) -> bool:
    """Return whether this is smartctl's text: one of its own lines stands at the beginning of a line."""
    return _SIGNS.search(decode_output_text(document[:_HEAD_CHARACTERS])) is not None


def split_output_lines(document: bytes) -> list[str]:
    """Return the lines without colours, tabs and blanks at the ends.

    A last line without a line end is dropped if it is a labelled number: the rest of the number may be missing.
    """
    written = decode_output_text(document).split("\n", MOST_LINES)[:MOST_LINES]
    found = [line[:LONGEST_LINE].expandtabs().strip() for line in written]
    if found and re.search(r"[:=]\s*[\d.,]+$", found[-1]):
        found.pop()
    return found


def parse_smartctl_version(line: str) -> tuple[int, int] | None:
    """Return smartctl's version if this line is its header."""
    match = _HEADER.match(line)
    return (int(match[1]), int(match[2])) if match else None


def split_smartctl_runs(document: bytes) -> Iterator[bytes]:
    """Yield the output of each disk in a file that holds several in sequence; the parts of one disk stay together.

    A new disk begins at a header of smartctl whose run has an information section, if one was seen before.
    """
    part: list[str] = []
    told = False
    for piece in _split_command_outputs(decode_output_text(document)):
        who = re.search(
            r"(?mi)^\s*(?:Serial Number|Device Model|Model Number|Product|Device|Smartctl open device):",
            piece,
        )
        if who and told:
            yield "".join(part).encode()
            part = []
        told = told or bool(who)
        part.append(piece)
    if "".join(part).strip():
        yield "".join(part).encode()


def _split_command_outputs(written: str) -> Iterator[str]:
    """Yield the output of each command; scripts drop the header and keep the heading of the information section."""
    for piece in re.split(r"(?m)^(?=[ \t$#]*smartctl (?:version )?(?:pre-)?\d+\.\d)", written):
        first, *others = re.split(r"(?m)^(?=[ \t]*=== START OF INFORMATION SECTION)", piece)
        yield first + "".join(others[:1])
        yield from others[1:]
