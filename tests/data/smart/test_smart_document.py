"""Any bytes give one reading or raise `Undecodable` with one sentence; no other error is raised."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from predrain.data.outside_text import is_clean
from predrain.data.reading import Protocol
from predrain.data.smart import LARGEST_DOCUMENT, SmartDocument, Undecodable, decode_smartctl_output

Sample = Callable[[str], SmartDocument]
Altered = Callable[..., SmartDocument]

SAMPLES = {path.stem: path.read_bytes() for path in (Path(__file__).parent / "samples").glob("*.json")}
NAMES = st.sampled_from(sorted(SAMPLES))


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        (b"", r"is empty"),
        (b" \r\n\t", r"is empty"),
        (b"\xef\xbb\xbf", r"is empty"),
        (b"hello", r"is neither JSON nor"),
        (b"\x7fELF\x00\x01\x02", r"is neither JSON nor"),
        (
            b"smartctl 7.3 2022-02-28 r5338 [x86_64-linux-6.1.0] (local build)\n",
            r"holds no verdict, counter or identity",
        ),
        (b"=== START OF INFORMATION SECTION ===\nUser Capacity: {x}\n", r"holds no verdict"),
        (b"json = {};\njson.smartctl = {};\n", r"--json=g"),
        (b"---\njson_format_version: [ 1, 0 ]\n", r"--json=y"),
        (b'[{"smartctl": {}}]', r"is a JSON list"),
        (b"{}", r"not of smartctl"),
        (b'{"a": 1}', r"not of smartctl"),
        (b'{"smartctl": {"exit_status": 0}}', r"no verdict, counter or identity|holds no verdict"),
        (b'{"smartctl": {"exit_status": 2}}', r"does not say why"),
        (b'{"smartctl": {"exit_sta', r"is cut off after 23 bytes"),
        (b'{"smartctl": {}, oops}', r"is neither JSON nor"),
        (b'{"smartctl": {}}\n{"smartctl": {}}', r"more than one JSON document"),
        (b"[" * 200_000, r"JSON list"),
        (b'{"a":' * 200_000, r"nested too deeply"),
        (b'{"a":' + b"9" * 10_000 + b"}", r"too long|not of smartctl"),
        (b"{" + b" " * LARGEST_DOCUMENT + b"}", r"larger than 16 MiB"),
    ],
)
def test_a_document_that_is_no_usable_smartctl_output_is_refused_with_the_reason(
    document: bytes, reason: str
) -> None:
    with pytest.raises(Undecodable, match=reason) as refused:
        decode_smartctl_output(document)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(("name", "length"), [("broken-003", 9000), ("broken-006", 1500)])
def test_a_truncated_output_says_where_it_was_cut(name: str, length: int) -> None:
    with pytest.raises(Undecodable, match=f"cut off after {length} bytes"):
        decode_smartctl_output(SAMPLES[name])


def test_a_farm_log_alone_is_no_reading() -> None:
    """ata-033."""
    with pytest.raises(Undecodable, match="FARM log only"):
        decode_smartctl_output(SAMPLES["ata-033"])


def test_text_around_the_json_is_passed_over(sample: Sample) -> None:
    """broken-008 is a real case; a brace in the text is not."""
    assert decode_smartctl_output(b"Warning: {odd}\n" + SAMPLES["ata-001"]) == sample("ata-001")
    assert decode_smartctl_output(SAMPLES["ata-001"] + b"\nexit status 0\n") == sample("ata-001")


PROMPTS = ["[root@node51 ~]# ", "[2025-06-16 18:34:20] node51 # ", "root@node51:~$ "]


@pytest.mark.parametrize("prompt", PROMPTS)
def test_a_prompt_around_the_json_is_passed_over(prompt: str, sample: Sample) -> None:
    before, after = f"{prompt}smartctl -x --json /dev/sda\n", f"\n{prompt}echo ${{HOME}}\n"
    assert decode_smartctl_output(before.encode() + SAMPLES["ata-001"] + after.encode()) == sample("ata-001")


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_output_redirected_by_powershell_is_read(sample: Sample, encoding: str) -> None:
    assert decode_smartctl_output(SAMPLES["ata-001"].decode().encode(encoding)) == sample("ata-001")


def test_bytes_that_are_no_utf8_cost_one_name_and_not_the_reading() -> None:
    document = decode_smartctl_output(SAMPLES["ata-055"].replace(b"ZAD2C11G", b"ZAD\xff\x00\x07G"))
    assert document.smart.counters.pending == 0
    assert (document.smart.identity.serial or "").isprintable()


def test_nan_and_infinity_are_unknown_and_the_rest_is_kept() -> None:
    text = SAMPLES["nvme-025"].replace(b'"media_errors": 7', b'"media_errors": NaN')
    text = text.replace(b'"percentage_used": 3', b'"percentage_used": -Infinity')
    counters = decode_smartctl_output(text).smart.counters
    assert (counters.media_errors, counters.percentage_used, counters.available_spare_pct) == (None, None, 99)


@pytest.mark.parametrize("value", [None, "seven", -1, 1.5, True, [], {}, 2**63])
def test_a_counter_that_makes_no_sense_is_unknown(altered: Altered, value: object) -> None:
    def odd(document: dict[str, Any]) -> None:
        document["nvme_smart_health_information_log"]["media_errors"] = value

    counters = altered("nvme-025", odd).smart.counters
    assert (counters.media_errors, counters.unsafe_shutdowns) == (None, 10)


@pytest.mark.parametrize("passed", [None, "PASSED", 1, []])
def test_only_true_and_false_are_verdicts(altered: Altered, passed: object) -> None:
    def said(document: dict[str, Any]) -> None:
        document["smart_status"]["passed"] = passed

    assert altered("ata-001", said).smart.passed is None


@pytest.mark.parametrize(
    ("name", "protocol"),
    [
        ("ata-055", Protocol.ATA),
        ("ata-031", Protocol.ATA),
        ("scsi-006", Protocol.SCSI),
        ("nvme-025", Protocol.NVME),
    ],
)
def test_the_keys_tell_the_protocol_where_smartctl_does_not(
    altered: Altered, name: str, protocol: Protocol
) -> None:
    def silent(document: dict[str, Any]) -> None:
        del document["device"]

    assert altered(name, silent).smart.protocol is protocol


def test_the_time_of_a_reading_is_the_documents_own(sample: Sample) -> None:
    now = datetime(2026, 11, 21, 7, 0, tzinfo=UTC)
    assert decode_smartctl_output(SAMPLES["ata-055"], now).taken_at == datetime(
        2024, 3, 28, 15, 25, 9, tzinfo=UTC
    )
    assert decode_smartctl_output(SAMPLES["ata-027"], now).taken_at == now
    assert sample("ata-027").taken_at is None


@pytest.mark.parametrize("seconds", [-1, 0, 10**18, "soon", None])
def test_a_time_that_cannot_be_is_unknown(altered: Altered, seconds: object) -> None:
    def clock(document: dict[str, Any]) -> None:
        document["local_time"]["time_t"] = seconds

    assert altered("ata-055", clock).taken_at is None


def test_a_record_of_ceph_holds_the_document_under_one_key() -> None:
    """`ceph tell osd.N smart`, `ceph device get-health-metrics`."""
    inner = SAMPLES["ata-055"]
    assert decode_smartctl_output(
        b'{"ST6000NM0115-1YZ110_ZAD2C11G": ' + inner + b"}"
    ) == decode_smartctl_output(inner)
    with pytest.raises(Undecodable, match="holds 2 readings"):
        decode_smartctl_output(b'{"20260924-000634": ' + inner + b', "20260925-000634": ' + inner + b"}")


def test_a_failed_scrape_of_ceph_is_refused_with_its_error() -> None:
    """evidence/ceph-samples/get-health-metrics__failed-scrape.json."""
    record = {
        "20260924-000634": {
            "dev": "/dev/vdb",
            "error": "smartctl failed",
            "nvme_vendor": "unknown",
            "smartctl_error_code": -22,
            "smartctl_output": "smartctl returned an error (137): stderr:\nsudo: exit status: 137\nstdout:\n",
        }
    }
    with pytest.raises(Undecodable, match=r"smartctl failed: smartctl returned an error \(137\)"):
        decode_smartctl_output(json.dumps(record).encode())


def test_the_reason_quotes_the_error_and_not_the_warning_before_it() -> None:
    messages = [
        {"string": "Warning: this drive may need a firmware update", "severity": "warning"},
        {"string": "/dev/sda: No such device", "severity": "error"},
        {"string": "x" * 5000, "severity": "error"},
        {"severity": "error"},
    ]
    with pytest.raises(Undecodable, match=r"No such device.*check the device's name") as refused:
        decode_smartctl_output(json.dumps({"smartctl": {"exit_status": 2, "messages": messages}}).encode())
    assert [len(said) for said in refused.value.messages] == [24, 4096, 46]


def test_a_temperature_alone_is_no_reading() -> None:
    with pytest.raises(Undecodable, match="no verdict, counter or identity"):
        decode_smartctl_output(
            b'{"smartctl": {}, "device": {"protocol": "ATA"}, "temperature": {"current": 31}}'
        )


def _sane(document: SmartDocument) -> None:
    smart = document.smart
    for counter in dataclasses.fields(smart.counters):
        value = getattr(smart.counters, counter.name)
        assert value is None or (type(value) is int and 0 <= value < 2**63), counter.name
    assert smart.passed in (True, False, None)
    assert smart.temperature_c is None or -60 <= smart.temperature_c <= 120
    for number, row in smart.attributes.items():
        assert 1 <= number <= 255
        assert type(row.raw) is int
    for text in dataclasses.astuple(smart.identity):
        assert not isinstance(text, str) or is_clean(text, 256)
    assert document.taken_at is None or document.taken_at.utcoffset() is not None


def _decode_or_refuse(document: bytes) -> None:
    try:
        decoded = decode_smartctl_output(document)
    except Undecodable:
        return
    _sane(decoded)


@given(NAMES, st.lists(st.tuples(st.floats(0, 1), st.binary(max_size=6), st.integers(0, 40)), max_size=6))
def test_a_damaged_output_is_read_or_refused(name: str, damages: list[tuple[float, bytes, int]]) -> None:
    document = SAMPLES[name]
    for where, insert, drop in damages:
        at = int(where * len(document))
        document = document[:at] + insert + document[at + drop :]
    _decode_or_refuse(document)


@given(NAMES, st.floats(0, 1))
def test_an_output_cut_anywhere_is_refused(name: str, where: float) -> None:
    whole = SAMPLES[name].rstrip()
    cut = whole[: int(where * (len(whole) - 1))]
    with pytest.raises(Undecodable):
        decode_smartctl_output(cut)


ODD_VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**130), 2**130),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from(["REDACTED", "--", "1,5", "0x", "9" * 400, "\ud800", "\x00", math.nan, -0.0, 1e308]),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(
        st.sampled_from(["value", "hours", "current", "id"]), st.none() | st.integers(), max_size=2
    ),
)


@pytest.mark.slow
@given(NAMES.filter(lambda name: not name.startswith("broken")), st.data())
def test_an_output_with_odd_values_anywhere_is_read_or_refused(name: str, data: st.DataObject) -> None:
    document = json.loads(SAMPLES[name])
    for _ in range(data.draw(st.integers(1, 6))):
        node = document
        while True:
            keys = sorted(node) if isinstance(node, dict) else list(range(len(node)))
            if not keys:
                break
            key = data.draw(st.sampled_from(keys))
            child = node[key]
            if isinstance(child, dict | list) and child and data.draw(st.integers(0, 4)):
                node = child
                continue
            node[key] = data.draw(ODD_VALUES)
            break
    _decode_or_refuse(json.dumps(document).encode())


@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_refused(document: bytes) -> None:
    _decode_or_refuse(document)


JSON_LIKE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=20,
)
TOP_KEYS = st.sampled_from(
    sorted(
        {
            key
            for text in SAMPLES.values()
            if text.startswith(b"{") and text.rstrip().endswith(b"}")
            for key in json.loads(text)
        }
    )
)


@pytest.mark.slow
@given(st.dictionaries(TOP_KEYS, JSON_LIKE, max_size=8))
def test_any_json_under_smartctls_keys_is_read_or_refused(document: dict[str, Any]) -> None:
    _decode_or_refuse(json.dumps(document).encode())
