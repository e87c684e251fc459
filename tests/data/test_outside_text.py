"""The one rule for text from outside: one line, bounded, without controls; every script stays, and cuts are marked."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from predrain.data.device_id import device_id
from predrain.data.outside_text import CUT_MARK, clean_identifier, clean_text, escape_controls, is_clean

BIDIRECTIONAL = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c"
ANY = st.text(st.characters(exclude_categories=()), max_size=60)
PIECES = [
    *BIDIRECTIONAL, "\x1b", "[", "31m", "]0;", "\x07", "\x9b", "\x90", "\x9c", "\n", "\ud800", "e\u0301",
    "\U0001f1e9\U0001f1ea", "\U0001f469\u200d\U0001f467", " ", "x",
]  # fmt: skip
HOSTILE = st.lists(st.sampled_from(PIECES), max_size=40).map("".join)


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("a\x1b]0;title\x07b", "ab"),
        ("a\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\b", "alinkb"),
        ("\x9b2Jcleared", "cleared"),
        ("a\x1b]never ended", "anever ended"),
        ("one\r\ntwo\u2028three\x85four", "one two three four"),
        ("a\x00b\x7fc", "a b c"),
        (f"a{BIDIRECTIONAL}b", "ab"),
        ("zero\u200bwidth\ufeff\U000e0041", "zerowidth"),
        ("half \ud800 a letter", "half \ufffd a letter"),
        ("\ue000", "\ufffd"),
        ("  many   blanks\t", "many blanks"),
        ("العربية עברית 日本語 Ünïcødé ไทย", "العربية עברית 日本語 Ünïcødé ไทย"),
        ("می\u200cخواهم", "می\u200cخواهم"),
        ("👩\u200d👩\u200d👧 🇩🇪 👍🏽 ❤\ufe0f", "👩\u200d👩\u200d👧 🇩🇪 👍🏽 ❤\ufe0f"),
        ("e\u0301", "e\u0301"),
    ],
)
def test_controls_go_and_letters_of_every_script_stay(sent: str, kept: str) -> None:
    assert clean_text(sent, 100) == kept


@pytest.mark.parametrize(
    ("sent", "limit", "kept"),
    [
        ("x" * 10, 10, "x" * 10),
        ("x" * 11, 10, "x" * 9 + CUT_MARK),
        ("one two three", 8, f"one two{CUT_MARK}"),
        ("e\u0301" * 10, 6, f"e\u0301e\u0301{CUT_MARK}"),
        ("🇩🇪" * 10, 6, f"🇩🇪🇩🇪{CUT_MARK}"),
        ("👩\u200d👩\u200d👧" * 10, 8, f"👩\u200d👩\u200d👧{CUT_MARK}"),
        ("👍🏽" * 10, 4, f"👍🏽{CUT_MARK}"),
        ("\x1b[31m" * 1000 + "x", 10, CUT_MARK),
    ],
)
def test_a_cut_is_marked_and_parts_no_visible_character(sent: str, limit: int, kept: str) -> None:
    assert clean_text(sent, limit) == kept


@given(ANY | HOSTILE, st.integers(1, 50))
def test_a_cleaned_text_fits_the_limit_holds_no_control_and_is_unchanged_by_a_second_cleaning(
    text: str, limit: int
) -> None:
    line = clean_text(text, limit)
    assert len(line) <= limit
    assert not any(unicodedata.category(letter) in ("Cc", "Cs", "Co", "Zl", "Zp") for letter in line)
    assert not set(line) & set(BIDIRECTIONAL)
    assert clean_text(line, limit) == line
    assert line.encode().decode() == line


@given(ANY | HOSTILE)
def test_an_identifier_that_is_cleaned_is_like_no_other(text: str) -> None:
    name = clean_identifier(text, 64)
    assert len(name) <= 64
    assert is_clean(name, 64)
    if name and name != " ".join(text.split()):
        assert name != clean_text(text, 64)
        assert name != clean_identifier(text + "y", 64)


def test_two_disks_whose_serial_numbers_differ_in_controls_alone_stay_two() -> None:
    serials = ["ZA\x1b[1m1", "ZA\x1b[2m1", "ZA1", "ZA\u202e1", "ZA\x011"]
    assert len({device_id(None, "ST4000DM000", serial) for serial in serials}) == len(serials)
    models = ["ST\x014000", "ST\x024000", "ST4000"]
    assert len({device_id(None, model, "ZA1") for model in models}) == len(models)
    assert device_id(None, "ST4000", "\x1b[31m\u202e") is None


def test_a_megabyte_of_escapes_takes_no_time_to_speak_of() -> None:
    assert len(clean_text("\x1b[31m\u202e\x9d" * 200_000, 256)) <= 256


@given(ANY | HOSTILE)
def test_a_text_with_escaped_controls_has_no_control_left(text: str) -> None:
    assert clean_text(escape_controls(text).replace(" ", "_"), 10_000) == escape_controls(text).replace(
        " ", "_"
    )
