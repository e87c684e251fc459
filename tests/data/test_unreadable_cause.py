"""Why a disk could not be read: typed on the wire, and mapped once where an older sender names no cause."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import msgspec
import pytest

from predrain.data.ids import DeviceId, HostName
from predrain.data.reading import Reading, Unreadable
from predrain.data.store import documents
from predrain.data.unreadable import UnreadableCause
from predrain.data.wire import decode_envelope, encode_envelope
from predrain.features import observe_reading, pack_drive_state, unpack_drive_state
from predrain.models.forecast.rules import judge_by_rules

NOON = datetime(2026, 3, 10, 12, tzinfo=UTC)
HOST_FAULTS = {UnreadableCause.TOOL_MISSING, UnreadableCause.TOOL_UNFIT, UnreadableCause.PERMISSION}


def reading(why: str, cause: UnreadableCause = UnreadableCause.UNKNOWN) -> Reading:
    return Reading(DeviceId("M_1"), HostName("stor-01"), NOON, NOON, Unreadable(NOON, why, cause))


def of_version_2(why: str) -> bytes:
    """The envelope as a collector of version 0.1.0 sends it."""
    sealed = json.loads(encode_envelope(reading(why), producer="stor-01", sequence=1, sent_at=NOON))
    del sealed["body"]["unreadable"]["cause"]
    return msgspec.json.encode({**sealed, "version": 2})


@pytest.mark.parametrize("cause", UnreadableCause)
def test_every_cause_comes_back_from_wire_and_store_as_it_was_sent(cause: UnreadableCause) -> None:
    sent = reading("a sentence that no program reads", cause)
    assert (
        decode_envelope(encode_envelope(sent, producer="c", sequence=1, sent_at=NOON), Reading).body == sent
    )
    assert documents.READING.read(documents.READING.write(sent)) == sent


def test_only_the_causes_of_the_host_blame_the_host() -> None:
    assert {cause for cause in UnreadableCause if cause.blames_host} == HOST_FAULTS


@pytest.mark.parametrize(
    ("why", "cause"),
    [
        ("smartctl could not be run (/usr/sbin/smartctl: No such file)", UnreadableCause.TOOL_MISSING),
        ("smartctl cannot be run (/usr/sbin/smartctl: No such file)", UnreadableCause.TOOL_MISSING),
        ("smartctl could not be run with the rights that it needs: run as root", UnreadableCause.PERMISSION),
        ("smartctl could not be run with --json: smartmontools 7 is needed", UnreadableCause.TOOL_UNFIT),
        ("smartctl did not answer within 60 s", UnreadableCause.TIMEOUT),
        ("/dev/sda is listed no more: pulled, or off the bus", UnreadableCause.DEVICE_GONE),
        (
            "it was at /dev/sda, which is listed no more, and is at no other place: pulled, or off the bus",
            UnreadableCause.DEVICE_GONE,
        ),
        ("smartctl read nothing but the disk's name (Read SMART Data failed)", UnreadableCause.IO_ERROR),
        ("smartctl read nothing (Standard Inquiry failed): check the disk", UnreadableCause.OPEN_FAILED),
        ("a word of nobody", UnreadableCause.UNKNOWN),
    ],
)
def test_a_sentence_of_an_older_collector_is_mapped_once_where_it_enters(
    why: str, cause: UnreadableCause
) -> None:
    found = decode_envelope(of_version_2(why), Reading).body.seen
    assert isinstance(found, Unreadable)
    assert (found.why, found.cause) == (why, cause)


@pytest.mark.parametrize("said", ["smartctl could not be run (gone)", "smartctl cannot be run (gone)"])
def test_no_wording_of_a_missing_smartctl_condemns_the_disks_of_a_host(said: str) -> None:
    older = decode_envelope(of_version_2(said), Reading).body
    state = observe_reading(observe_reading(None, older), an_hour_later(older))
    verdict = judge_by_rules(state)
    assert verdict is not None
    assert (verdict.status.value, verdict.hard) == ("unknown", False)


def an_hour_later(one: Reading) -> Reading:
    """The same probe an hour later."""
    later = NOON.replace(hour=13)
    return Reading(one.device, one.host, later, later, one.seen)


def test_a_state_that_an_older_release_packed_is_given_its_cause_when_it_is_unpacked() -> None:
    said = "smartctl could not be run (gone)"
    state = observe_reading(observe_reading(None, reading(said)), an_hour_later(reading(said)))
    assert state.unreadable is not None
    # As version 0.1.0 wrote it: no cause, and probes of every kind counted as one.
    packed = msgspec.msgpack.decode(pack_drive_state(state))
    packed[9] = {"since": NOON, "probes": 2, "why": said}
    again = unpack_drive_state(msgspec.msgpack.encode(packed))
    assert again is not None
    assert again.unreadable is not None
    assert again.unreadable.cause is UnreadableCause.TOOL_MISSING
    assert (again.unreadable.probes, again.unreadable.host_probes) == (0, 2)
