"""Fields of a view that only some clusters have: flags in odd places, several roots, devices in roles, masks."""

from __future__ import annotations

from typing import Any

from predrain.data.ids import DeviceId, OsdId
from tests.actions.recordings import CLEAN, changed, view_of, without


def test_flags_on_a_host_a_class_and_an_osd_hold_for_their_osds() -> None:
    def flag(dump: Any) -> None:
        dump["crush_node_flags"] = {"host0": ["noout"]}
        dump["device_class_flags"] = {"hdd": ["noup"]}
        dump["osds"][1]["state"].append("noin")
        dump["flags_set"] += ["pauserd", "pausewr"]

    view = view_of(changed(CLEAN, "osd_dump", flag))
    on_host = {osd.id for osd in view.osds.values() if osd.host == "host0"}
    assert {osd for osd, flags in view.osd_flags.items() if "noout" in flags} == on_host
    assert all("noup" in view.osd_flags[osd] for osd in view.osds)
    assert [osd for osd, flags in view.osd_flags.items() if "noin" in flags] == [1]
    assert "pause" in view.flags


def test_an_osd_in_several_roots_hangs_where_it_was_made_first_and_shadow_trees_count_for_nothing() -> None:
    def add_root(dump: Any) -> None:
        dump["buckets"] += [
            {"id": -50, "name": "other", "type_name": "root", "alg": "straw2",
             "items": [{"id": -51, "weight": 100, "pos": 0}]},
            {"id": -51, "name": "elsewhere", "type_name": "host", "alg": "straw2",
             "items": [{"id": 0, "weight": 100, "pos": 0}]},
        ]  # fmt: skip

    before, view = view_of(CLEAN), view_of(changed(CLEAN, "osd_crush_dump", add_root))
    assert view.osds[OsdId(0)].host == "host0"
    assert view.osds[OsdId(0)].crush_weight == before.osds[OsdId(0)].crush_weight
    assert any("~" in bucket.name for bucket in view.crush.buckets.values())


def test_an_osd_outside_every_tree_has_no_weight_and_the_host_that_it_names_itself() -> None:
    def take_out(dump: Any) -> None:
        for bucket in dump["buckets"]:
            bucket["items"] = [item for item in bucket["items"] if item["id"] != 3]

    osd = view_of(changed(CLEAN, "osd_crush_dump", take_out)).osds[OsdId(3)]
    assert (osd.crush_weight, osd.host, osd.rack) == (0.0, "host1", None)


def test_a_device_id_may_hold_blanks_commas_and_underscores() -> None:
    def name(rows: Any) -> None:
        rows[0]["device_ids"] = "loop0=ACME Inc, Disk_9 000_S 1,nvme0=FLASH_X_1"

    osd = view_of(changed(CLEAN, "osd_metadata", name)).osds[OsdId(0)]
    assert osd.device == "ACME Inc, Disk_9 000_S 1"
    assert osd.model == "ACME Inc, Disk_9 000"


def test_db_and_wal_devices_stand_beside_the_one_that_holds_the_data() -> None:
    def share(rows: Any) -> None:
        for row in rows[:2]:
            disk = row["bluestore_bdev_devices"]
            row |= {
                "bluefs_dedicated_db": "1",
                "bluefs_db_devices": "nvme0n1",
                "bluefs_wal_devices": "nvme0n1",
            }
            row["device_ids"] = f"nvme0n1=FLASH_DB_1,{disk}=DISK_A_{row['id']}"

    view = view_of(changed(CLEAN, "osd_metadata", share))
    assert [view.osds[OsdId(osd)].device for osd in (0, 1)] == ["DISK_A_0", "DISK_A_1"]
    assert [view.osds[OsdId(osd)].shared_devices for osd in (0, 1, 2)] == [
        ("FLASH_DB_1",),
        ("FLASH_DB_1",),
        (),
    ]


def test_of_two_devices_whose_roles_nobody_tells_none_is_taken_for_the_data() -> None:
    def second(devices: Any) -> None:
        devices.append({"devid": "FLASH_DB_1", "location": [], "daemons": ["osd.0"]})

    view = view_of(without(changed(CLEAN, "device_ls", second), "osd_metadata"))
    assert view.osds[OsdId(0)].device is None
    assert view.osds[OsdId(1)].device == "MINI_HDD4T_Z0000001"


def test_life_expectancies_are_read_with_and_without_an_end() -> None:
    def publish(devices: Any) -> None:
        devices[0] |= {
            "life_expectancy_min": "2027-01-20T05:41:03.000000+0000",
            "life_expectancy_max": "2027-01-30T05:41:03.000000+0000",
        }
        devices[1] |= {
            "life_expectancy_min": "2027-01-20T05:41:03.000000+0000",
            "life_expectancy_max": "0.000000",
        }
        devices[2] |= {"life_expectancy_min": "0.000000", "life_expectancy_max": "0.000000"}  # fmt: skip

    lives = view_of(changed(CLEAN, "device_ls", publish)).lives
    whole, open_end = (lives[DeviceId(f"MINI_HDD4T_Z000000{number}")] for number in (0, 1))
    assert whole[1] is not None
    assert (whole[1] - whole[0]).days == 10
    assert open_end[1] is None
    assert len(lives) == 2


def test_a_setting_keeps_its_section_and_mask_and_nothing_secret_is_kept() -> None:
    def rows(whole: Any) -> None:
        whole += [
            {"section": "osd", "name": "osd_max_backfills", "value": "2", "mask": "host:host1"},
            {"section": "osd.3", "name": "osd_max_backfills", "value": "5", "mask": ""},
            {"section": "mgr", "name": "mgr/devicehealth/self_heal", "value": "false", "mask": ""},
            {"section": "mgr", "name": "mgr/dashboard/password", "value": "hunter2", "mask": ""},
        ]

    view = view_of(changed(CLEAN, "config_dump", rows))
    assert view.settings["osd/host:host1/osd_max_backfills"] == "2"
    assert view.settings["osd.3/osd_max_backfills"] == "5"
    assert view.self_heal is False
    assert view_of(CLEAN).self_heal is True
    assert "hunter2" not in str(view.settings)


def test_a_scheduler_that_one_osd_would_start_differently_is_mixed() -> None:
    row = {"section": "osd.3", "name": "osd_op_queue", "value": "wpq", "mask": ""}
    assert view_of(changed(CLEAN, "config_dump", lambda whole: whole.append(row))).scheduler == "mixed"


def test_full_upmaps_are_seen_and_upmapped_primaries_are_not_taken_for_them() -> None:
    primary = [{"pgid": "1.0", "primary_osd": 2}]
    assert not view_of(
        changed(CLEAN, "osd_dump", lambda dump: dump.update(pg_upmap_primaries=primary))
    ).has_full_upmaps
    full = [{"pgid": "1.0", "osds": [1, 2, 3]}]
    assert view_of(changed(CLEAN, "osd_dump", lambda dump: dump.update(pg_upmap=full))).has_full_upmaps


def test_a_profile_that_is_not_there_makes_a_shard_as_large_as_its_pg() -> None:
    view = view_of(changed(CLEAN, "osd_dump", lambda dump: dump.update(erasure_code_profiles={})))
    pg = next(pg for pg in view.pgs.values() if view.pools[pg.pool].erasure and pg.objects)
    assert pg.shard_bytes == pg.objects * 65536
