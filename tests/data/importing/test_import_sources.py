"""Each source as items: what becomes a reading, what is refused and why, that memory and order allow going on."""

from __future__ import annotations

import json
import sqlite3
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from predrain.data.history import UnreadableHistory
from predrain.data.ids import DeviceId, HostName
from predrain.data.importing import (
    Item,
    NoScrape,
    UnusableItem,
    backblaze_import,
    ceph_import,
    files_below,
    smartctl_import,
    sql_import,
)
from predrain.data.importing.import_port import NothingToImport
from predrain.data.outcome import DriveFate, Outcome
from predrain.data.reading import Reading, Smart

HOST = HostName("dc1")
SAMPLES = Path(__file__).parent / "samples"
OUTPUTS = Path(__file__).parents[1] / "smart" / "samples"
CSV = """date,serial_number,model,capacity_bytes,failure,smart_5_raw,smart_9_raw,smart_188_raw,smart_241_raw
2018/1/1,S1,ST4000DM000,4000787030016,0,0,100,4295032833,1000000
2018-01-02,S1,ST4000DM000,-1,1,8,124,,2000000
2018-01-02,,ST4000DM000,4000787030016,0,0,1,0,1
not a day,S2,ST4000DM000,4000787030016,0,0,1,0,1
2018-01-02,S3,HGST HMS5C4040ALE640,4000787030016,0,nonsense,77,0,1
2018-01-02,Sÿ,ST4000DM000,4000787030016,0,0,1,0,1
"""


def _smart(item: Item) -> Smart:
    assert isinstance(item, Reading)
    assert isinstance(item.seen, Smart)
    return item.seen


def _table(tmp_path: Path) -> Path:
    file = tmp_path / "2018.csv"
    file.write_bytes(CSV.encode("latin-1"))  # the last line is no UTF-8
    return file


def test_a_row_of_backblaze_is_a_reading_at_the_beginning_of_its_day(tmp_path: Path) -> None:
    [part] = backblaze_import.list_backblaze_import_parts([_table(tmp_path)], HOST)
    first, second, *_ = part.items(0)
    assert isinstance(first, Reading)
    assert (first.device, first.host) == ("ST4000DM000_S1", "dc1")
    assert first.taken_at == first.received_at == datetime(2018, 1, 1, tzinfo=UTC)
    assert _smart(first).counters.command_timeouts == 1
    assert _smart(first).attributes[188].raw_packed == 4295032833
    assert _smart(first).power_on_hours == 100
    assert _smart(second).identity.capacity_bytes is None
    assert _smart(second).counters.command_timeouts is None
    assert _smart(second).counters.reallocated == 8


def test_backblazes_failures_are_outcomes_and_its_bad_rows_have_reasons(tmp_path: Path) -> None:
    [part] = backblaze_import.list_backblaze_import_parts([_table(tmp_path)], HOST)
    items = list(part.items(0))
    assert [item for item in items if isinstance(item, Outcome)] == [
        Outcome(DeviceId("ST4000DM000_S1"), datetime(2018, 1, 2, tzinfo=UTC), DriveFate.FAILED, "backblaze")
    ]
    assert [item.why.partition(":")[0] for item in items if isinstance(item, UnusableItem)] == [
        "the row names no device",
        "the row has no time, or one that is not written as 2024-05-31T12",
        "the line cannot be taken apart as CSV",
    ]
    nonsense = next(item for item in items if isinstance(item, Reading) and item.device.endswith("S3"))
    assert _smart(nonsense).counters.reallocated is None
    assert _smart(nonsense).power_on_hours == 77


def test_every_stretch_of_a_table_can_be_gone_on_with(tmp_path: Path) -> None:
    [part] = backblaze_import.list_backblaze_import_parts([_table(tmp_path)], HOST)
    items = list(part.items(0))
    for skip in range(len(items) + 1):
        assert list(part.items(skip)) == items[skip:]


def test_a_table_that_holds_no_readings_is_refused_by_name(tmp_path: Path) -> None:
    file = tmp_path / "drives.csv"
    file.write_text("serial_number,model\nS1,X\n")
    [part] = backblaze_import.list_backblaze_import_parts([file], HOST)
    with pytest.raises(UnreadableHistory, match=r"drives\.csv holds no readings"):
        list(part.items(0))


def test_scrapes_of_ceph_are_dated_by_their_stamps_in_utc(tmp_path: Path) -> None:
    stored = json.loads((SAMPLES / "smart-as-stored__ceph__scsi_wuh721818al5204.json").read_text())
    [document] = stored.values()
    document["serial_number"], device = "2CG9ABCD", "WDC_WUH721818AL5204_2CG9ABCD"
    file = tmp_path / "metrics.json"
    file.write_text(json.dumps({"20220509-010203": document, "20220510-010203": document}))
    [part] = ceph_import.list_ceph_import_parts([file], HOST, None)
    readings = [item for item in part.items(0) if isinstance(item, Reading)]
    assert [reading.taken_at for reading in readings] == [
        datetime(2022, 5, 9, 1, 2, 3, tzinfo=UTC),
        datetime(2022, 5, 10, 1, 2, 3, tzinfo=UTC),
    ]
    assert {reading.device for reading in readings} == {device}
    assert list(part.items(1)) == readings[1:]
    file.write_text(json.dumps({device: {"20220509-010203": document}}))
    assert list(part.items(0)) == readings[:1]


def test_a_document_under_its_device_has_smartctls_own_time() -> None:
    [part] = ceph_import.list_ceph_import_parts(
        [SAMPLES / "smart-as-stored__ceph__scsi_wuh721818al5204.json"], HOST, None
    )
    [reading] = part.items(0)
    assert isinstance(reading, Reading)
    assert reading.taken_at == datetime(2022, 5, 8, 21 - 7, 21, 11, tzinfo=UTC)
    assert _smart(reading).power_on_hours == 1719


def test_a_failed_scrape_is_no_evidence_against_a_disk() -> None:
    [part] = ceph_import.list_ceph_import_parts(
        [SAMPLES / "get-health-metrics__failed-scrape.json"], HOST, DeviceId("disk-a")
    )
    [item] = part.items(0)
    assert isinstance(item, NoScrape)
    assert "exit status: 137" in item.why


def test_a_scrape_belongs_to_the_name_that_ceph_has_for_its_disk(tmp_path: Path) -> None:
    told = {**NAME_ONLY, "smart_status": {"passed": True}}
    file = tmp_path / "health.json"
    for said, owner in (("ATA_ST4000DM000_Z1", "ATA_ST4000DM000_Z1"), ("other", "ST4000DM000_Z1")):
        file.write_text(json.dumps({said: {"20240531-120000": told}}))
        [part] = ceph_import.list_ceph_import_parts([file], HOST, None)
        [item] = part.items(0)
        assert isinstance(item, Reading)
        assert item.device == owner


NAME_ONLY = {
    "smartctl": {"exit_status": 4, "output": ["A mandatory SMART command failed: exiting."]},
    "device": {"name": "/dev/sda", "type": "sat", "protocol": "ATA"},
    "model_name": "ST4000DM000",
    "serial_number": "Z1",
    "local_time": {"time_t": 1717156800},
}


def test_an_output_that_tells_a_disks_name_alone_is_no_reading_that_it_was_well(tmp_path: Path) -> None:
    file = tmp_path / "health.json"
    file.write_text(json.dumps({"20240531-120000": NAME_ONLY}))
    [part] = ceph_import.list_ceph_import_parts([file], HOST, None)
    [scrape] = part.items(0)
    assert isinstance(scrape, NoScrape)
    assert "A mandatory SMART command failed" in scrape.why
    file.write_text(json.dumps(NAME_ONLY))
    [part] = smartctl_import.list_smartctl_import_parts([file], HOST, None)
    [output] = part.items(0)
    assert isinstance(output, UnusableItem)
    assert "A mandatory SMART command failed" in output.why


def test_an_answer_of_the_scsi_layer_for_a_silent_sata_drive_is_no_reading(tmp_path: Path) -> None:
    answer = {
        "smartctl": {"version": [7, 1], "exit_status": 0},
        "device": {"protocol": "SCSI"},
        "serial_number": "Z4Z1",
        "smart_status": {"passed": True},
    }
    file = tmp_path / "health.json"
    file.write_text(json.dumps({"20240531-120000": answer}))
    [part] = ceph_import.list_ceph_import_parts([file], HOST, DeviceId("ST2000DM006-2DM164_Z4Z1"))
    [scrape] = part.items(0)
    assert isinstance(scrape, NoScrape)
    assert "the SCSI layer" in scrape.why


def test_telemetry_data_needs_a_named_device_to_become_a_reading(tmp_path: Path) -> None:
    old = {"5": {"name": "Reallocated_Sector_Ct", "val_norm": 100, "val_raw": 2}}
    file = tmp_path / "predict.json"
    file.write_text(json.dumps({"model": "ST8", "smart_data": {"2020-07-07 00:12:38": {"attr": old}}}))
    [nameless], [named] = (
        ceph_import.list_ceph_import_parts([file], HOST, None),
        ceph_import.list_ceph_import_parts([file], HOST, DeviceId("ST8_X")),
    )
    [refused], [reading] = nameless.items(0), named.items(0)
    assert isinstance(refused, UnusableItem)
    assert "--device" in refused.why
    assert isinstance(reading, Reading)
    assert reading.taken_at == datetime(2020, 7, 7, 0, 12, 38, tzinfo=UTC)
    assert _smart(reading).counters.reallocated == 2


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"{", b'{"a": 1}', b'{"20220509-010203": 3}', b"\xff\xfe", b'{"smart_data": 4}']
)
def test_a_file_that_is_no_answer_of_ceph_is_an_unusable_item(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "x.json"
    file.write_bytes(content)
    [part] = ceph_import.list_ceph_import_parts([file], HOST, None)
    [item] = part.items(0)
    assert isinstance(item, UnusableItem)


def test_smartctls_outputs_come_one_a_file_one_a_line_in_a_list_or_as_texts(tmp_path: Path) -> None:
    one, other = (json.loads((OUTPUTS / f"{name}.json").read_text()) for name in ("ata-007", "ata-040"))
    texts = (OUTPUTS / "ata-104.txt").read_bytes() + b"\n" + (OUTPUTS / "ata-006.txt").read_bytes()
    files = {
        "alone.json": json.dumps(one, indent=1).encode(),
        "lines.jsonl": b"\n".join(json.dumps(each).encode() for each in (one, other, one)),
        "list.json": json.dumps([one, other]).encode(),
        "texts.txt": texts,
        "prompted.json": b"[root@host ~]# smartctl -xj /dev/sda\n" + json.dumps(one, indent=1).encode(),
        "prompted.txt": b"[root@host ~]# smartctl -x /dev/sda\n" + texts,
    }
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    found = {
        Path(part.name).name: [type(item).__name__ for item in part.items(0)]
        for part in smartctl_import.list_smartctl_import_parts(
            [tmp_path / name for name in files], HOST, None
        )
    }
    assert found == {
        "alone.json": ["Reading"],
        "lines.jsonl": ["Reading"] * 3,
        "list.json": ["Reading"] * 2,
        "texts.txt": ["Reading"] * 2,
        "prompted.json": ["Reading"],
        "prompted.txt": ["Reading"] * 2,
    }


def test_documents_that_a_loop_over_the_disks_left_one_after_the_other_are_read_each(tmp_path: Path) -> None:
    """`for disk in ...; do smartctl -x --json $disk; done > all.json`, smartctl killed on the second disk."""
    one, other = (
        json.dumps(json.loads((OUTPUTS / f"{name}.json").read_text()), indent=2)
        for name in ("ata-007", "ata-040")
    )
    file = tmp_path / "all.json"
    for between in ("\n", "", "\n\n[root@host ~]# smartctl -xj /dev/sdb\n"):
        file.write_text(between.join((one, other, one)))
        [part] = smartctl_import.list_smartctl_import_parts([file], HOST, None)
        first, second, third = part.items(0)
        assert _smart(first) == _smart(third) != _smart(second)
        assert len(list(part.items(1))) == 2
    file.write_text("\n".join((one, other[: len(other) // 2], one)))
    [part] = smartctl_import.list_smartctl_import_parts([file], HOST, None)
    first, cut, third = part.items(0)
    assert _smart(first) == _smart(third)
    assert isinstance(cut, UnusableItem)
    assert "cut off" in cut.why


def test_a_text_whose_zone_is_not_known_needs_one(tmp_path: Path) -> None:
    file = tmp_path / "sda.txt"
    file.write_bytes((OUTPUTS / "ata-104.txt").read_bytes().replace(b" 2017 CET", b" 2017 IST"))
    [without], [within] = (
        smartctl_import.list_smartctl_import_parts([file], HOST, None),
        smartctl_import.list_smartctl_import_parts([file], HOST, ZoneInfo("Asia/Kolkata")),
    )
    [refused], [reading] = without.items(0), within.items(0)
    assert isinstance(refused, UnusableItem)
    assert "--timezone" in refused.why
    assert isinstance(reading, Reading)
    assert without.version != within.version
    elsewhere = next(
        iter(next(smartctl_import.list_smartctl_import_parts([OUTPUTS / "ata-104.txt"], HOST, None)).items(0))
    )
    assert isinstance(elsewhere, Reading)
    assert (elsewhere.taken_at - reading.taken_at).total_seconds() == 4.5 * 3600


def _database(tmp_path: Path) -> str:
    file = tmp_path / "smart.db"
    connection = sqlite3.connect(file)
    connection.execute("CREATE TABLE daily (sn TEXT, model TEXT, ts, r5, ok, node)")
    rows = [
        ("S1", "ST1", "2024-05-31T12:00:00", 3, "PASSED", "a"),
        ("S2", "ST1", 1717156800, "7", 0, None),
        ("S3", "ST1", "2024-05-31T12:00:00+02:00", None, None, "b"),
        (None, "ST1", 1717156800, 1, 1, "b"),
        ("S5", "ST1", None, 1, 1, "b"),
    ]
    connection.executemany("INSERT INTO daily VALUES (?,?,?,?,?,?)", rows)
    connection.commit()
    connection.close()
    return f"sqlite:///{file}"


COLUMNS = "serial=sn, model=model, taken_at=ts, smart_5_raw=r5, passed=ok, host=node"


def test_rows_of_a_query_are_readings_by_the_columns_that_are_mapped(tmp_path: Path) -> None:
    part = sql_import.build_query_import_part(
        _database(tmp_path),
        "SELECT * FROM daily",
        sql_import.parse_column_mapping(COLUMNS),
        HOST,
        ZoneInfo("UTC"),
    )
    items = list(part.items(0))
    readings = [item for item in items if isinstance(item, Reading)]
    assert [
        (one.device, one.host, _smart(one).counters.reallocated, _smart(one).passed) for one in readings
    ] == [
        ("ST1_S1", "a", 3, True),
        ("ST1_S2", "dc1", 7, False),
        ("ST1_S3", "b", None, None),
    ]
    assert [one.taken_at.hour for one in readings] == [12, 12, 10]
    assert sum(isinstance(item, UnusableItem) for item in items) == 2


def test_a_naive_time_of_a_query_needs_a_zone(tmp_path: Path) -> None:
    part = sql_import.build_query_import_part(
        _database(tmp_path), "SELECT * FROM daily", sql_import.parse_column_mapping(COLUMNS), HOST, None
    )
    first = next(iter(part.items(0)))
    assert isinstance(first, UnusableItem)
    assert "--timezone" in first.why


@pytest.mark.parametrize(
    "query", ["DELETE FROM daily", "DROP TABLE daily", "  -- SELECT\n UPDATE daily SET r5 = 1", ""]
)
def test_a_query_that_would_write_is_refused(tmp_path: Path, query: str) -> None:
    with pytest.raises(sql_import.BadQuery, match="SELECT"):
        sql_import.build_query_import_part(
            _database(tmp_path), query, sql_import.parse_column_mapping(COLUMNS), HOST, None
        )


def test_a_write_behind_a_with_is_stopped_by_the_database(tmp_path: Path) -> None:
    url = _database(tmp_path)
    part = sql_import.build_query_import_part(
        url, "WITH x AS (SELECT 1) DELETE FROM daily", sql_import.parse_column_mapping(COLUMNS), HOST, None
    )
    with pytest.raises(sql_import.BadQuery, match="readonly"):
        list(part.items(0))


@pytest.mark.parametrize(
    ("said", "cure"),
    [
        ("device=x", "needs taken_at"),
        ("taken_at=ts", "needs taken_at, and device"),
        ("taken_at=ts,device", "write name=column"),
        ("taken_at=ts,device=d,realocated=r", "did you mean reallocated"),
        ("taken_at=ts,device=d,device=e", "twice"),
    ],
)
def test_a_bad_mapping_says_what_is_wrong(said: str, cure: str) -> None:
    with pytest.raises(sql_import.BadMapping, match=cure):
        sql_import.parse_column_mapping(said)


def test_a_password_is_not_told(tmp_path: Path) -> None:
    part = sql_import.build_query_import_part(
        "sqlite://user:secret@/nowhere", "SELECT 1", {"device": "a", "taken_at": "b"}, HOST, None
    )
    with pytest.raises(sql_import.BadQuery) as refused:
        list(part.items(0))
    assert "secret" not in str(refused.value) + part.name


def test_a_folder_without_such_files_and_a_missing_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(NothingToImport, match="holds no file"):
        files_below([tmp_path], (".csv",))
    with pytest.raises(NothingToImport, match="there is no file"):
        files_below([tmp_path / "none.csv"], (".csv",))


@given(st.binary(max_size=200))
def test_any_bytes_are_items_and_never_an_error(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    file = tmp_path_factory.getbasetemp() / "any.json"
    file.write_bytes(content)
    for part in (
        *ceph_import.list_ceph_import_parts([file], HOST, None),
        *smartctl_import.list_smartctl_import_parts([file], HOST, None),
    ):
        assert all(isinstance(item, UnusableItem | NoScrape | Reading) for item in part.items(0))
