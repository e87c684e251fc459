"""Readings are decoded with their envelope in one go. Nobody can tell: what is taken, what is refused, and why."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from predrain.data.reading import Reading
from predrain.data.wire import Envelope, UndecodableRecord, decode_envelope, envelope

GOLDEN = [
    path.read_bytes()
    for path in sorted((Path(__file__).resolve().parents[1] / "golden" / "wire").glob("reading*.json"))
]
PIECEWISE = replace(envelope._SCHEMAS[Reading], at_once=None)


def told(raw: bytes) -> Envelope[Reading] | str:
    try:
        return decode_envelope(raw, Reading)
    except UndecodableRecord as poison:
        return str(poison)


def told_piece_by_piece(raw: bytes) -> Envelope[Reading] | str:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(envelope, "_SCHEMAS", {**envelope._SCHEMAS, Reading: PIECEWISE})
        return told(raw)


def test_every_golden_reading_is_taken_in_one_go() -> None:
    assert len(GOLDEN) >= 4
    at_once = envelope._SCHEMAS[Reading].at_once
    assert at_once is not None
    for raw in GOLDEN:
        assert at_once.decode(raw, PIECEWISE) is not None
        assert told(raw) == told_piece_by_piece(raw)


@given(st.sampled_from(GOLDEN), st.data())
def test_a_damaged_envelope_gives_the_same_result_decoded_in_one_go_or_piece_by_piece(
    raw: bytes, data: st.DataObject
) -> None:
    begin = data.draw(st.integers(0, len(raw)))
    end = data.draw(st.integers(begin, min(len(raw), begin + 12)))
    broken = (
        raw[:begin] + data.draw(st.sampled_from([b"", b"0", b"null", b'"', b"-1", b"}", b"\xff"])) + raw[end:]
    )
    assert told(broken) == told_piece_by_piece(broken)


@given(st.sampled_from(GOLDEN), st.integers(-1, 99))
@example(GOLDEN[0], 3)
def test_another_version_is_told_the_same(raw: bytes, version: int) -> None:
    changed = raw.replace(b'"version":2', b'"version":%d' % version).replace(
        b'"version":1', b'"version":%d' % version
    )
    assert told(changed) == told_piece_by_piece(changed)
