"""The rights that predrain asks for: all that the engine sends is covered, and nothing else is."""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import get_args

import pytest

from predrain.actions.cluster.channel import Argument, DaemonReply
from predrain.actions.cluster.cluster_port import (
    Balancer,
    Command,
    CrushReweight,
    DeviceLight,
    PrimaryAffinity,
    PublishLife,
    RemoveUpmap,
    Reweight,
    SetFlag,
    SetOption,
    SetUpmap,
    WithdrawLife,
)
from predrain.actions.cluster.cluster_view import PROPOSE_INTERVAL
from predrain.actions.cluster.config_key_store import PIECE_BYTES, ConfigKeys
from predrain.actions.cluster.dumps.view_questions import QUESTIONS
from predrain.actions.cluster.live_ceph import to_ceph_commands
from predrain.actions.controller.ceph_caps import (
    GRANTS,
    CapsPart,
    CephGrant,
    CephUser,
    build_cephx_caps,
    list_grants,
    list_required_rights,
)
from predrain.actions.core.held_throttles import OPTIONS
from predrain.actions.mechanics.crush_removal import FLAGS
from predrain.data.ids import DeviceId, OsdId, PgId
from predrain.service.cli import main

Sent = tuple[str, str, Mapping[str, Argument]]
NOW = datetime(2026, 3, 1, tzinfo=UTC)
PG, OSD, DEVICE = PgId("3.1f"), OsdId(7), DeviceId("MINI_HDD4T_Z0000001")

COMMANDS: tuple[Command, ...] = (
    SetUpmap(PG, ((7, 9),)),
    SetUpmap(PG, ((7, 9),), (7, 1, 2)),
    RemoveUpmap(PG, (7, 1, 2)),
    Reweight(OSD, 0.5),
    Reweight(OSD, 0.5, ((PG, (7, 1, 2)),)),
    CrushReweight(OSD, 0.0),
    PrimaryAffinity(OSD, 0.25),
    *(SetFlag(flag, on) for flag in FLAGS for on in (True, False)),
    *(SetOption(option, value) for option in OPTIONS for value in ("1", None)),
    *(SetOption(PROPOSE_INTERVAL, value, "mon") for value in ("0.25", None)),
    Balancer(on=True),
    Balancer(on=False),
    Balancer(on=None),
    PublishLife(DEVICE, NOW, NOW),
    WithdrawLife(DEVICE),
    DeviceLight(DEVICE, on=True),
)


class Noting:
    """A channel that keeps texts and notes what was asked."""

    def __init__(self) -> None:
        self.sent: list[Sent] = []
        self.kept: dict[str, bytes] = {}

    def ask(
        self,
        to: str,
        prefix: str,
        arguments: Mapping[str, Argument] | None = None,
        *,
        given: bytes = b"",
        **_: object,
    ) -> DaemonReply:
        arguments = arguments or {}
        self.sent.append((to, prefix, arguments))
        key = str(arguments["key"])
        if prefix == "config-key set":
            self.kept[key] = given
        if prefix == "config-key dump":
            return DaemonReply(0, json.dumps(dict.fromkeys(self.kept, "")).encode(), "")
        if prefix == "config-key rm":
            self.kept.pop(key, None)
        elif key not in self.kept:
            return DaemonReply(-2, b"", "")
        return DaemonReply(0, self.kept.get(key, b""), "")


def _kept() -> Iterator[Sent]:
    """Everything that keeping texts in the cluster sends."""
    channel = Noting()
    keep = ConfigKeys(channel)  # type: ignore[arg-type]
    keep.write("halt", "why")
    keep.write("drain/osd.7", "x" * (2 * PIECE_BYTES))
    keep.read("drain/osd.7")
    keep.names()
    keep.remove("halt")
    keep.write("requests/5", "{}")
    keep.remove("requests/5")
    keep.remove("answers/5")
    return iter(channel.sent)


SENT: tuple[Sent, ...] = (
    *(one for command in COMMANDS for one in to_ceph_commands(command)),
    *_kept(),
    *((q.to, q.prefix, q.arguments) for q in QUESTIONS if q.prefix == "orch upgrade status"),
)
OURS = tuple(grant for grant in GRANTS if grant.part is not CapsPart.HAND_OVER)


def test_every_kind_of_command_is_among_those_tried() -> None:
    assert {type(command) for command in COMMANDS} == set(get_args(Command))


@pytest.mark.parametrize("sent", SENT, ids=lambda sent: f"{sent[1]} {sent[2]}"[:60])
def test_every_command_that_the_engine_sends_is_covered(sent: Sent) -> None:
    assert any(grant.covers(*sent) for grant in GRANTS)


@pytest.mark.parametrize("grant", OURS, ids=CephGrant.text)
def test_every_right_is_one_that_the_engine_uses(grant: CephGrant) -> None:
    assert any(grant.covers(*sent) for sent in SENT)


FORBIDDEN: tuple[Sent, ...] = (
    ("mon", "osd out", {"ids": ["7"]}),
    ("mon", "osd down", {"ids": ["7"]}),
    ("mon", "osd purge", {"id": 7}),
    ("mon", "osd destroy", {"id": 7}),
    ("mon", "osd blocklist", {"blocklistop": "add", "addr": "10.0.0.1:0/1"}),
    ("mon", "osd set", {"key": "pause"}),
    ("mon", "osd set", {"key": "noout"}),
    ("mon", "osd unset", {"key": "noout"}),
    ("mon", "osd pool delete", {"pool": "rbd"}),
    ("mon", "config set", {"who": "osd", "name": "debug_osd", "value": "1"}),
    ("mon", "config set", {"who": "osd.7", "name": OPTIONS[0], "value": "1"}),
    ("mon", "config set", {"who": "global", "name": OPTIONS[0], "value": "1"}),
    ("mon", "config rm", {"who": "global", "name": OPTIONS[0]}),
    ("mon", "config set", {"who": "global", "name": PROPOSE_INTERVAL, "value": "0.25"}),
    ("mon", "config set", {"who": "mon", "name": "mon_max_pg_per_osd", "value": "1"}),
    ("mon", "config-key set", {"key": "mgr/dashboard/key"}),
    ("mon", "config-key get", {"key": "predrain"}),
    ("mon", "config-key dump", {}),
    ("mon", "auth get", {"entity": "client.admin"}),
    ("mgr", "mgr module disable", {"module": "iostat"}),
    ("osd.7", "flush_pg_stats", {}),
)


@pytest.mark.parametrize("sent", FORBIDDEN, ids=lambda sent: f"{sent[1]} {sent[2]}"[:60])
def test_a_command_that_could_harm_is_covered_by_no_grant(sent: Sent) -> None:
    assert not any(grant.covers(*sent) for grant in GRANTS)


def test_a_service_whose_commands_the_mgr_module_carries_out_may_change_nothing_but_its_own_keys() -> None:
    allowed = build_cephx_caps(CephUser.READING)
    assert allowed.mgr == 'allow r, allow command "orch upgrade status"'
    assert all(
        " config-key " in f" {cap}" or cap == "allow r" for cap in allowed.mon.replace('"', " ").split(", ")
    )


@pytest.mark.parametrize(
    ("verb", "name", "may"),
    [
        ("set", "halt", True),
        ("rm", "halt", False),
        ("set", "requests/5", True),
        ("rm", "requests/5", True),
        ("set", "answers/5", False),
        ("rm", "answers/5", True),
        *(
            (verb, name, False)
            for verb in ("set", "rm")
            for name in ("drain/osd.7", "ended", "steps", "lives", "heard")
        ),
        ("get", "drain/osd.7", True),
    ],
)
def test_a_service_that_only_reads_may_halt_and_ask_and_neither_forge_a_drain_nor_lift_a_halt(
    verb: str, name: str, *, may: bool
) -> None:
    sent = ("mon", f"config-key {verb}", {"key": f"predrain/{name}"})
    assert any(grant.covers(*sent) for grant in list_grants(CephUser.READING)) is may
    assert any(grant.covers(*sent) for grant in list_grants(CephUser.SERVICE))


def test_the_second_key_has_the_light_and_the_orchestrator_only() -> None:
    assert build_cephx_caps(CephUser.HANDS).by_service() == {
        "mon": "allow r",
        "mgr": 'allow r, allow command "device light", allow command "orch osd rm"',
    }


def test_the_pool_of_the_settings_is_the_only_one_that_may_be_touched() -> None:
    assert build_cephx_caps(pool="leases").osd == "allow rwx pool=leases"


def test_each_right_says_what_it_is_for() -> None:
    assert all(right.why for user in CephUser for right in list_required_rights(user))


@pytest.mark.parametrize("flags", [(), ("--operator",), ("--read-only",)])
def test_the_printed_lines_are_a_script_that_gives_exactly_these_caps(
    flags: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["ceph", "auth", "--name", "client.it", *flags]) == 0
    printed = capsys.readouterr().out
    assert subprocess.run(["sh", "-n"], input=printed, text=True).returncode == 0
    words = shlex.split(printed, comments=True)
    user = CephUser.HANDS if "--operator" in flags else CephUser.READING if flags else CephUser.SERVICE
    at = words.index("get-or-create")
    assert words[at - 2 : at + 2] == ["ceph", "auth", "get-or-create", "client.it"]
    assert words[-2:] == ["-o", "/etc/ceph/ceph.client.it.keyring"]
    pairs = words[at + 2 : -2]
    assert dict(zip(pairs[::2], pairs[1::2], strict=True)) == build_cephx_caps(user).by_service()
    assert ("pool" in words) is (user is not CephUser.HANDS)


def test_programs_get_the_same_as_one_object(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ceph", "auth", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["user"] == "client.predrain"
    assert said["caps"] == build_cephx_caps().by_service()
    assert [right["cap"] for right in said["rights"]] == [right.cap for right in list_required_rights()]
