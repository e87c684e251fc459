"""The module's poll of the service, with a simulated mgr: changes by commands during a poll are not forgotten."""

from __future__ import annotations

import errno
import importlib
import logging
import sys
import time
import types
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from predrain.actions.ceph_mgr.predrain.kept_texts import write_kept
from predrain.actions.ceph_mgr.predrain.last_report import LastReport, encode_last_report
from predrain.actions.ceph_mgr.predrain.service_requests import UnusableAnswer
from tests.actions.ceph_mgr.test_mgr_reports import drain, osd, told

PACKAGE = "predrain.actions.ceph_mgr.predrain"
HALT = "predrain/halt"


class PlayedMgr:
    """The mgr around the module: options, its store, the mon's config keys, health."""

    def __init__(self) -> None:
        self.options: dict[str, Any] = {"url": "http://127.0.0.1:9", "interval": 15, "mode": "mirror"}
        self.store: dict[str, str | None] = {}
        self.keys: dict[str, str] = {}
        self.health: dict[str, Any] = {}
        self.log = logging.getLogger("mgr")

    def get(self, data_name: str) -> None:
        """A mgr that has no map yet."""

    def get_module_option(self, key: str) -> Any:
        return self.options.get(key)

    def set_module_option(self, key: str, val: Any) -> None:
        self.options[key] = val

    def get_store(self, key: str) -> str | None:
        return self.store.get(key)

    def set_store(self, key: str, val: str | None) -> None:
        self.store[key] = val

    def set_health_checks(self, checks: dict[str, Any]) -> None:
        self.health = checks

    def mon_command(self, cmd_dict: dict[str, Any]) -> tuple[int, str, str]:
        match cmd_dict["prefix"]:
            case "config-key set":
                self.keys[cmd_dict["key"]] = cmd_dict["val"]
            case "config-key rm":
                self.keys.pop(cmd_dict["key"], None)
            case _ if cmd_dict["key"] not in self.keys:
                return -errno.ENOENT, "", ""
            case _:
                return 0, self.keys[cmd_dict["key"]], ""
        return 0, "", ""


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> Iterator[types.ModuleType]:
    """The module's file as ceph-mgr imports it."""
    played: Any = types.ModuleType("mgr_module")
    plain: Callable[..., Any] = lambda *_, **__: lambda function: function  # noqa: E731
    played.CLICommand = played.CLIReadCommand = played.CLIWriteCommand = plain
    played.HandleCommandResult = lambda rc, out, err: (rc, out, err)
    played.Option, played.MgrModule = dict, PlayedMgr
    monkeypatch.setitem(sys.modules, "mgr_module", played)
    yield importlib.import_module(f"{PACKAGE}.module")
    for name in ("module", "registry"):
        sys.modules.pop(f"{PACKAGE}.{name}", None)
        if hasattr(sys.modules[PACKAGE], name):
            delattr(sys.modules[PACKAGE], name)


@pytest.mark.parametrize("stands", [False, True], ids=["halt", "unhalt"])
def test_a_halt_or_its_lifting_while_the_service_is_slow_to_answer_stays_shown(
    loaded: types.ModuleType, monkeypatch: pytest.MonkeyPatch, *, stands: bool
) -> None:
    module = loaded.Module()
    monkeypatch.setattr(module, "_sent", lambda _: {})
    if stands:
        module.keys[HALT] = "switch maintenance"

    def slow(*_: object, **__: object) -> None:
        code, *_ = module.cmd_unhalt() if stands else module.cmd_halt("switch maintenance")
        assert code == 0
        raise UnusableAnswer("no whole answer within 10 s")

    monkeypatch.setattr(loaded, "send_service_request", slow)
    module._look()
    assert ("PREDRAIN_HALTED" in module.health) is not stands
    assert ("halted    no" in module.cmd_status()[1]) is stands


def keep(key: str) -> dict[str, str | None]:
    """Return the store of a mgr with this `executor_key` that holds the report of a service with a proposed drain."""
    known = LastReport(url="http://127.0.0.1:9").with_report(
        told([osd(1, "bad")], [drain(state="proposed")]), time.time()
    )
    played = PlayedMgr()
    played.store["executor_key"] = key
    write_kept(played, "known", key, encode_last_report(known))
    return played.store


@pytest.fixture
def restarted(loaded: types.ModuleType) -> Callable[[dict[str, str | None]], Any]:
    """Return a function that starts a mgr with the store of the last one while the service does not answer."""

    def restarted(store: dict[str, str | None]) -> Any:
        class Restarted(loaded.Module):  # type: ignore[misc, name-defined]
            def get_store(self, key: str) -> str | None:
                return store.get(key)

        module = Restarted()
        module._look()
        return module

    return restarted


KEY = "k" * 44


def test_a_report_that_the_last_mgr_signed_is_shown_by_the_next_mgr(restarted: Callable[..., Any]) -> None:
    module = restarted(keep(KEY))
    assert "PREDRAIN_DEVICE_BAD" in module.health
    assert "kept " not in module.cmd_status()[1]


def test_a_kept_report_that_was_changed_after_signing_is_not_shown_and_is_named(
    restarted: Callable[..., Any],
) -> None:
    store = keep(KEY)
    assert store["known"] is not None
    store["known"] = store["known"].replace('"bad"', '"good"')
    module = restarted(store)
    assert module.health == {}
    assert (
        "kept      config-key mgr/predrain/known carries a wrong signature: it was changed"
        in module.cmd_status()[1]
    )


def test_without_a_key_it_is_shown_and_said_not_to_be_verified(restarted: Callable[..., Any]) -> None:
    module = restarted(keep(""))
    assert "PREDRAIN_DEVICE_BAD" in module.health
    assert "kept      executor_key is not set: the texts that a mgr keeps" in module.cmd_status()[1]


@pytest.mark.parametrize("key", [KEY, ""], ids=["signed", "without a key"])
def test_a_plan_that_an_earlier_mgr_kept_is_not_approved_before_the_service_has_answered(
    restarted: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    module = restarted(keep(key))
    sent: list[Any] = []

    def send(errand: Any) -> dict[str, str]:
        sent.append(errand)
        return {"state": "approved"}

    monkeypatch.setattr(module, "_sent", send)
    code, _, why = module.cmd_approve("osd.1-x")
    assert (code, sent) == (-errno.EAGAIN, [])
    assert "a plan that an earlier mgr kept is not approved" in why
    monkeypatch.setattr(module, "_ask_all", lambda: module._known.told)
    module._look()
    assert module.cmd_approve("osd.1-x")[0] == 0
    assert len(sent) == 1


def test_the_key_and_the_mode_of_0_1_0_get_their_names_of_now(loaded: types.ModuleType) -> None:
    module = loaded.Module()
    module.options["mode"], module.store["hand_key"] = "hand", KEY
    module._migrate_names()
    assert module.options["mode"] == "execute"
    assert {name: key for name, key in module.store.items() if key} == {"executor_key": KEY}
