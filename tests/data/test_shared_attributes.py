"""Readings that are decoded one by one share their equal attributes, and nothing else about them changes."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace

import pytest

from predrain.data.attribute_table import SharedAttributes
from predrain.data.ids import DeviceId
from predrain.data.reading import Attribute, Reading, Smart
from predrain.data.wire import wire_bodies
from predrain.data.wire.envelope import decode_envelope, encode_envelope
from tests.data.store.written import READINGS


def read_document(reading: Reading) -> Reading:
    """Write and read a reading as a store does."""
    return wire_bodies.READING.read(wire_bodies.READING.write(reading))


def read_record(reading: Reading) -> Reading:
    """Write and read a reading as a log does, which decodes envelope and reading in one step."""
    sent = encode_envelope(reading, producer="stor-01", sequence=1, sent_at=reading.taken_at)
    return decode_envelope(sent, Reading).body


@pytest.mark.parametrize("read_again", [read_document, read_record])
def test_two_drives_share_the_attributes_in_which_they_are_equal(
    read_again: Callable[[Reading], Reading],
) -> None:
    smart = READINGS[0].seen
    assert isinstance(smart, Smart)
    own = {**smart.attributes, 5: Attribute("Reallocated_Sector_Ct", 9, 100, 100, 10)}
    drives = [
        READINGS[0],
        replace(READINGS[0], device=DeviceId("other"), seen=replace(smart, attributes=own)),
    ]
    read = [read_again(one) for one in drives]
    assert read == drives
    one, other = (reading.seen for reading in read)
    assert isinstance(one, Smart)
    assert isinstance(other, Smart)
    assert one.attributes[197] is other.attributes[197]
    assert (one.attributes[5].raw, other.attributes[5].raw) == (8, 9)


def test_attributes_that_differ_without_end_are_forgotten() -> None:
    shared = SharedAttributes(most=5)
    for raw in range(20):
        attributes = {9: Attribute("Power_On_Hours", raw), 5: Attribute("Reallocated_Sector_Ct", 0)}
        assert shared.share_attributes(attributes) == attributes
        assert len(shared) <= 5


def test_a_table_of_attributes_answers_as_the_dict_does() -> None:
    attributes = {number: Attribute(f"smart_{number}", number) for number in (197, 5, 9)}
    table, other = (SharedAttributes().share_attributes(attributes) for _ in range(2))
    assert table == other == attributes
    assert attributes == table
    assert table != {**attributes, 5: Attribute("smart_5", 6)}
    assert [*table] == [*table.keys()] == [*attributes]
    assert [*table.items()] == [*attributes.items()]
    assert [*table.values()] == [*attributes.values()]
    assert (table[9], table.get(10), len(table)) == (attributes[9], None, 3)
    assert 9 in table
    assert 10 not in table
    assert repr(table) == repr(attributes)
    with pytest.raises(KeyError):
        table[10]
    assert pickle.loads(pickle.dumps(table)) == attributes
