"""Fast maps that a controller left are given back by the module inside the real ceph-mgr."""

from __future__ import annotations

import time

import pytest

from predrain.actions.ceph_mgr.predrain.left_fast_maps import KEY, LEFT_AFTER_SECONDS, NAME, OPTION
from predrain.actions.ceph_mgr.predrain.text_signing import sign_text
from tests.system.ceph.mgr_driver import Mgr, calm, the_mgr  # noqa: F401

HAND_KEY = "a key that service and mgr share, long enough"


def intervals(mgr: Mgr) -> list[str]:
    return [row["value"] for row in mgr.cluster.json("config dump") if row["name"] == OPTION]


@pytest.mark.release
def test_the_module_gives_back_what_nobody_has_renewed_for_two_minutes(mgr: Mgr) -> None:
    mgr.cluster.command("config-key set", key="mgr/predrain/executor_key", val=HAND_KEY)
    mgr.cluster.command("config set", who="mon", name=OPTION, value="0.25")
    record = sign_text(HAND_KEY, NAME, "0.25 0.8 2026-11-26T04:00:00Z")
    mgr.cluster.command("config-key set", key=KEY, val=record)
    began = time.monotonic()
    mgr.wait(lambda: intervals(mgr) == ["0.800000"], "the value before", LEFT_AFTER_SECONDS + 60)
    assert time.monotonic() - began >= LEFT_AFTER_SECONDS - 5
    mgr.wait(lambda: mgr.cluster.try_command("config-key exists", key=KEY)[0] != 0, "the text is gone")
    mgr.cluster.command("config rm", who="mon", name=OPTION)
