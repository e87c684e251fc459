"""The module restores the monitors' interval if a controller left fast maps set and did not renew their record for
`LEFT_AFTER_SECONDS` (150 s).
"""

from __future__ import annotations

import errno
import json
from dataclasses import dataclass, field
from typing import Any

import pytest

from predrain.actions.ceph_mgr.predrain.left_fast_maps import (
    KEY,
    LEFT_AFTER_SECONDS,
    NAME,
    OPTION,
    LeftFastMaps,
)
from predrain.actions.ceph_mgr.predrain.text_signing import sign_text
from predrain.actions.controller.fast_maps import RECORD

HAND_KEY = "a key that service and mgr share, long enough"


@dataclass
class Mon:
    """The mon's config and config keys, as a mgr module sees them."""

    keys: dict[str, str] = field(default_factory=dict)
    rows: list[dict[str, str]] = field(default_factory=list)
    sent: list[dict[str, Any]] = field(default_factory=list)
    refuses: bool = False

    def get(self, data_name: str) -> None: ...

    def get_store(self, key: str) -> None: ...

    def set_store(self, key: str, val: str | None) -> None: ...

    def mon_command(self, cmd_dict: dict[str, Any]) -> tuple[int, str, str]:
        match cmd_dict["prefix"]:
            case "config-key get" if cmd_dict["key"] not in self.keys:
                return -errno.ENOENT, "", ""
            case "config-key get":
                return 0, self.keys[cmd_dict["key"]], ""
            case "config-key rm":
                self.keys.pop(cmd_dict["key"], None)
            case "config dump":
                return 0, json.dumps(self.rows), ""
            case _:
                if self.refuses:
                    return -errno.EACCES, "", "access denied"
                self.sent.append(cmd_dict)
        return 0, "", ""


def left(was: str = "-", value: str = "0.25", *, key: str = HAND_KEY, in_force: str = "0.250000") -> Mon:
    text = f"{value} {was} 2026-11-26T04:00:00Z"
    signed = sign_text(key, NAME, text) if key else text
    return Mon({KEY: signed}, [{"section": "mon", "name": OPTION, "value": in_force, "mask": ""}])


def look_twice(mon: Mon, key: str = HAND_KEY, after: float = LEFT_AFTER_SECONDS) -> LeftFastMaps:
    watch = LeftFastMaps(mon)
    watch.restore_left_interval(key, 1000.0)
    watch.restore_left_interval(key, 1000.0 + after)
    return watch


def test_the_module_reads_what_the_controller_writes() -> None:
    assert f"predrain/{RECORD}" == KEY


@pytest.mark.parametrize(
    ("was", "sent"),
    [
        ("-", {"prefix": "config rm", "who": "mon", "name": OPTION}),
        ("0.8", {"prefix": "config set", "who": "mon", "name": OPTION, "value": "0.8"}),
    ],
)
def test_an_interval_whose_record_was_not_renewed_is_given_back_as_it_was_found(
    was: str, sent: dict[str, str]
) -> None:
    mon = left(was)
    look_twice(mon)
    assert mon.sent == [sent]
    assert mon.keys == {}


def test_an_interval_whose_record_is_renewed_stays() -> None:
    mon, watch = left(), None
    for n in range(20):
        watch = watch or LeftFastMaps(mon)
        mon.keys[KEY] = sign_text(HAND_KEY, NAME, f"0.25 - 2026-11-26T04:{n:02d}:00Z")
        watch.restore_left_interval(HAND_KEY, 30.0 * n)
    assert mon.sent == []


def test_nothing_is_done_before_two_minutes_have_passed() -> None:
    mon = left()
    look_twice(mon, after=LEFT_AFTER_SECONDS - 1)
    assert mon.sent == []


def test_an_interval_that_another_party_has_set_since_stays_and_its_record_is_removed() -> None:
    mon = left(in_force="0.500000")
    look_twice(mon)
    assert (mon.sent, mon.keys) == ([], {})


@pytest.mark.parametrize("key", ["", "another key, which is long enough as well"])
def test_a_text_that_the_key_has_not_signed_is_told_and_not_acted_on(key: str) -> None:
    mon = left(key=key)
    watch = look_twice(mon)
    assert mon.sent == []
    assert "ceph config rm mon paxos_propose_interval" in watch.warning


def test_without_a_key_nothing_is_done_and_the_command_is_told() -> None:
    mon = left("0.8")
    watch = look_twice(mon, key="")
    assert mon.sent == []
    assert "ceph config set mon paxos_propose_interval 0.8" in watch.warning


@pytest.mark.parametrize("text", ["", "0.25", "0.25 -; x", "1e9 - z", "0.25 - a b", "-1 - z", "\x00"])
def test_a_text_that_says_nothing_usable_changes_nothing(text: str) -> None:
    mon = left()
    mon.keys[KEY] = sign_text(HAND_KEY, NAME, text)
    assert look_twice(mon).warning == ""
    assert mon.sent == []


def test_a_mon_that_refuses_is_told_with_the_command() -> None:
    mon = left()
    mon.refuses = True
    assert "could not be given back (access denied)" in look_twice(mon).warning
    assert KEY in mon.keys
