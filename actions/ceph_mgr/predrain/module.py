"""The module as ceph-mgr loads it: options, commands, and the loop, which alone speaks HTTP."""

# No `from __future__ import annotations` here: ceph-mgr reads the commands' arguments from live annotations.

import errno
import json
import time
from dataclasses import replace
from typing import Any, Callable, ClassVar, Optional
from urllib.parse import quote, urlencode

from mgr_module import HandleCommandResult, MgrModule, Option

from . import command_texts
from .command_registry import CLICommand as Command
from .command_registry import CLIReadCommand, CLIWriteCommand
from .health_checks import build_health_checks
from .json_fields import InvalidField
from .kept_texts import read_kept, read_key, write_kept
from .last_report import LastReport, decode_last_report, encode_last_report
from .left_fast_maps import LeftFastMaps
from .mgr_commands import CephStateUnknown, halt_word, osds_here, set_halt
from .request_queue import QueuedRequest, RequestQueue, RequestQueueFull
from .serial_worker import SerialWorker, WorkNotDoneInTime
from .service_report import ServiceReport, drains_of, osds_of, state_of
from .service_requests import (
    MIB,
    Declined,
    Service,
    ServiceReply,
    UnusableAnswer,
    sanitize_line,
    send_service_request,
)
from .step_executor import StepExecutor
from .text_signing import KEY_MIN

EXECUTE_SECONDS = 1.0
KNOWN = "known"
"""The name under which the last report is stored for the next mgr."""
KEEP_AGAIN_SECONDS = 600.0
"""After a mgr restart, the age of the stored report is too high by at most this."""
JOURNAL_LINES = 200
LIMITS = {"status": MIB, "osds": 16 * MIB, "drains": 16 * MIB}
Said = tuple[Any, str]


class Module(MgrModule):
    """The ceph-mgr module of predrain."""

    CLICommand = Command
    MODULE_OPTIONS: ClassVar[list[Option]] = [
        Option(name="url", type="str", default="", desc="address of the predrain service", runtime=True),
        Option(
            name="ca", type="str", default="", desc="PEM file of the authority that it trusts", runtime=True
        ),
        Option(
            name="interval", type="secs", default=15, min=2, desc="seconds between two polls", runtime=True
        ),
        Option(
            name="mode",
            type="str",
            default="mirror",
            enum_allowed=["mirror", "execute"],
            desc="mirror: shows; execute: also carries out the steps that the service signs",
            runtime=True,
        ),
        Option(
            name="peering_max",
            type="uint",
            default=3,
            min=1,
            desc="inactive PGs at which steps wait",
            runtime=True,
        ),
    ]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._migrate_names()
        self._errands, self._clerk = RequestQueue(), SerialWorker()
        self._running = True
        self._look_at = 0.0
        found = read_kept(self, KNOWN, read_key(self))
        stored = found.text or ""
        self._known = replace(decode_last_report(stored, time.time()), doubt=found.doubt)
        if found.doubt and not found.text:
            self.log.warning("predrain: %s", found.doubt)
        self._hand, self._fast_maps = StepExecutor(self), LeftFastMaps(self)
        self._tags: dict[str, tuple[str, Any]] = {}
        self._stored: tuple[str, float] = (_behind_time(stored), time.monotonic())
        self._shown: Optional[dict[str, Any]] = None

    def _migrate_names(self) -> None:
        """Rename what the module of 0.1.0 stored: the config-key `hand_key` and the mode `hand`."""
        old = self.get_store("hand_key")
        if old and not self.get_store("executor_key"):
            self.set_store("executor_key", old)
        if old:
            self.set_store("hand_key", None)
        if self._option("mode") == "hand":
            self.set_module_option("mode", "execute")

    # -- the loop -----------------------------------------------------------------------------------------------------

    def serve(self) -> None:
        """Poll the service at each interval, and send the requests of commands as they arrive."""
        hand_at = 0.0
        while self._running:
            now = time.monotonic()
            errand = self._errands.take_next()
            if errand is not None:
                self._guarded(self._carry, errand)
            elif now >= self._look_at:
                self._look_at = now + max(2.0, float(self._option("interval") or 15))
                self._guarded(self._look)
            elif self._hands() and now >= hand_at:
                self._guarded(self._handle)
                hand_at = time.monotonic() + EXECUTE_SECONDS
            else:
                self._errands.sleep(min([self._look_at - now, *([hand_at - now] if self._hands() else [])]))

    def shutdown(self) -> None:
        """End the loop. No tested release of Ceph calls this method, and nothing depends on it."""
        self._running = False
        self._errands.wake()

    def config_notify(self) -> None:
        """Poll at once, because options have changed."""
        self._tags, self._look_at = {}, 0.0
        self._errands.wake()

    def _guarded(self, work: Callable[..., None], *given: Any) -> None:
        """Run `work` and log any exception. One that left `serve()` would end all commands until the mgr restarts."""
        try:
            work(*given)
        except Exception as error:  # noqa: BLE001
            self._known = self._known.with_failure(
                f"unexpected {type(error).__name__}: {sanitize_line(str(error), 160)}"
            )
            self.log.warning("predrain: %s", self._known.trouble)
            self._errands.sleep(1.0)

    def _look(self) -> None:
        url = self._url()
        if url != self._known.url:
            self._tags = {}
        known = self._known.for_url(url)
        if url:
            try:
                known = known.with_report(self._ask_all(), time.time())
            except (UnusableAnswer, Declined, InvalidField) as trouble:
                known = known.with_failure(str(trouble))
        here = osds_here(self)
        known = known.limit_to_osds(here) if here is not None and not known.trouble else known
        try:  # read last: the service may take long to answer, and a command may halt meanwhile
            self._known = replace(known, halted=halt_word(self), halt_unread="")
        except CephStateUnknown as trouble:
            self._known = replace(known, halted=self._known.halted, halt_unread=str(trouble))
        self._give_back_fast_maps()
        self._show_checks()
        self._keep()

    def _give_back_fast_maps(self) -> None:
        try:
            said = self._fast_maps.restore_left_interval(read_key(self), time.monotonic())
        except CephStateUnknown as trouble:
            self.log.warning("predrain: %s", trouble)
        else:
            if said:
                self.log.warning("predrain: %s", said)

    def _ask_all(self) -> ServiceReport:
        service = self._service()
        return ServiceReport(
            self._asked(service, "status", state_of),
            self._asked(service, "osds", osds_of),
            self._asked(service, "drains", drains_of),
        )

    def _asked(self, service: Service, path: str, parse: Callable[[Any], Any]) -> Any:
        tag, old = self._tags.get(path, ("", None))
        headers = {"If-None-Match": tag} if tag else {}
        reply = send_service_request(service, "GET", path, headers=headers, limit=LIMITS[path])
        if reply.unchanged:
            if not tag:
                raise InvalidField(f"{path} is said to be unchanged, but was never received")
            return old
        found = parse(reply.body)
        self._tags[path] = (reply.etag, found)
        return found

    def _carry(self, errand: QueuedRequest) -> None:
        try:
            reply: ServiceReply = send_service_request(
                self._service(),
                errand.method,
                errand.path,
                errand.body,
                headers=errand.headers,
                limit=4 * MIB,
            )
        except (UnusableAnswer, Declined) as trouble:
            errand.finish(trouble=str(trouble))
        except Exception:
            errand.finish(trouble="it could not be carried")
            raise
        else:
            errand.finish(reply.body)

    def _handle(self) -> None:
        try:
            self._hand.execute_waiting_steps(
                self._service(), read_key(self), time.time(), int(self._option("peering_max") or 3)
            )
        except (UnusableAnswer, Declined, InvalidField, CephStateUnknown) as trouble:
            self._hand.last = f"no steps to be had: {trouble}"

    def _show_checks(self) -> None:
        found = build_health_checks(self._known, self._url(), time.time(), self._fast_maps.warning)
        if found != self._shown:
            self.set_health_checks(found)
            self._shown = found

    def _keep(self) -> None:
        """Store the report if it has changed, and at intervals to renew its age."""
        text, now = encode_last_report(self._known), time.monotonic()
        said = _behind_time(text)
        if said != self._stored[0] or (text and now - self._stored[1] > KEEP_AGAIN_SECONDS):
            write_kept(self, KNOWN, read_key(self), text)
            self._stored = (said, now)

    # -- what commands use --------------------------------------------------------------------------------------------

    def _option(self, name: str) -> Any:
        return self.get_module_option(name)

    def _url(self) -> str:
        return str(self._option("url") or "").strip()

    def _seen(self) -> LastReport:
        """Return the last report of the service that is configured now."""
        return self._known.for_url(self._url())

    def _hands(self) -> bool:
        return bool(self._url()) and self._option("mode") == "execute"

    def _service(self) -> Service:
        token = (self.get_store("token") or "").strip()
        return Service(self._url(), token, str(self._option("ca") or ""), self.get_store("ca") or "")

    def _answer(self, say: Callable[[], Said], format_: str) -> HandleCommandResult:
        """Run a command's function and turn every exception into an error code, so that no command ends in a
        traceback.
        """
        try:
            body, text = say()
        except (command_texts.UnknownName, RequestQueueFull, Declined) as error:
            return HandleCommandResult(-errno.ENOENT, "", str(error))
        except (UnusableAnswer, CephStateUnknown, WorkNotDoneInTime) as error:
            return HandleCommandResult(-errno.EAGAIN, "", str(error))
        except Exception as error:  # noqa: BLE001
            return HandleCommandResult(
                -errno.EIO, "", f"unexpected {type(error).__name__}: {sanitize_line(str(error), 160)}"
            )
        if format_.startswith("json"):
            return HandleCommandResult(
                0, json.dumps(body, indent=4 if format_ == "json-pretty" else None), ""
            )
        return HandleCommandResult(0, text, "")

    def _sent(self, errand: QueuedRequest) -> Any:
        """Return the service's answer, or None if it did not come in a moment. Raises UnusableAnswer if the
        service refused.
        """
        if not self._url():
            raise UnusableAnswer("url is not set: ceph config set mgr mgr/predrain/url https://HOST:PORT")
        self._errands.submit_and_wait(errand)
        if errand.trouble:
            raise UnusableAnswer(errand.trouble)
        return errand.answer

    def _request_drain(self, id_: str, verb: str, headers: Optional[dict[str, str]] = None) -> Said:
        answer = self._sent(QueuedRequest("POST", f"drains/{quote(id_, safe='')}/{verb}", {}, headers or {}))
        if answer is None:
            return {"drain": id_, "asked": verb, "state": None}, f"asked; see ceph predrain journal {id_}"
        state = sanitize_line(str(answer.get("state")) if isinstance(answer, dict) else "unknown", 40)
        return {"drain": id_, "asked": verb, "state": state}, f"{id_}: {state}"

    # -- commands -----------------------------------------------------------------------------------------------------

    @CLIReadCommand("predrain status")
    def cmd_status(self, format: str = "plain") -> HandleCommandResult:  # noqa: A002
        """Show whether the predrain service answers, its forecast, the drains, and whether all is halted"""
        now, mode = time.time(), str(self._option("mode"))
        return self._answer(
            lambda: command_texts.build_status_reply(
                self._seen(),
                self._url(),
                mode,
                now,
                self._hand.last,
                signs=len(read_key(self)) >= KEY_MIN,
            ),
            format,
        )

    @CLIReadCommand("predrain ls")
    def cmd_ls(self, bad: bool = False, format: str = "plain") -> HandleCommandResult:  # noqa: A002
        """OSDs with the outlook of their disks, the worst first; --bad: only bad ones and warnings"""
        return self._answer(
            lambda: command_texts.build_osd_list_reply(self._seen(), bad, time.time()), format
        )

    @CLIReadCommand("predrain show")
    def cmd_show(self, what: str, format: str = "plain") -> HandleCommandResult:  # noqa: A002
        """All that is known of an OSD (osd.N) or a device"""
        return self._answer(
            lambda: command_texts.build_osd_detail_reply(self._seen(), what, time.time()), format
        )

    @CLIReadCommand("predrain plan")
    def cmd_plan(self, osd: str, format: str = "plain") -> HandleCommandResult:  # noqa: A002
        """Show what draining an OSD would do; nothing is changed"""

        def say() -> Said:
            number = command_texts.osd_number(osd)
            target = osd if number is None else f"osd.{number}"
            answer = self._sent(QueuedRequest("GET", "plan?" + urlencode({"target": target})))
            if answer is None:
                return {"target": target, "asked": "plan"}, "asked, and no answer yet; ask again"
            return answer, command_texts.format_drain_plan(target, answer)

        return self._answer(say, format)

    @CLIWriteCommand("predrain approve")
    def cmd_approve(self, id: str, format: str = "plain") -> HandleCommandResult:  # noqa: A002
        """Let a proposed drain begin, on the plan that was last shown here"""

        def say() -> Said:
            known = self._seen()
            if known.told is not None and not known.heard_here:
                raise UnusableAnswer(
                    "the service has not answered this mgr yet, and a plan that an earlier mgr kept is not approved; "
                    "look again when it has: ceph predrain status"
                )
            return self._request_drain(id, "approve", {"If-Match": command_texts.drain_of(known, id).etag})

        return self._answer(say, format)

    @CLIWriteCommand("predrain pause")
    def cmd_pause(self, id: str, format: str = "plain") -> HandleCommandResult:  # noqa: A002
        """Hold a drain until it is resumed; what is on its way arrives"""
        return self._answer(lambda: self._request_drain(id, "pause"), format)

    @CLIWriteCommand("predrain resume")
    def cmd_resume(self, id: str, format: str = "plain") -> HandleCommandResult:  # noqa: A002
        """Let a paused or failed drain go on"""
        return self._answer(lambda: self._request_drain(id, "resume"), format)

    @CLIWriteCommand("predrain cancel")
    def cmd_cancel(self, id: str, format: str = "plain") -> HandleCommandResult:  # noqa: A002
        """Give a drain up and put everything back"""
        return self._answer(lambda: self._request_drain(id, "cancel"), format)

    @CLIReadCommand("predrain journal")
    def cmd_journal(self, id: str, format: str = "plain") -> HandleCommandResult:  # noqa: A002
        """List what was seen, decided and answered in a drain, oldest first"""

        def say() -> Said:
            path = f"drains/{quote(id, safe='')}/journal?limit={JOURNAL_LINES}"
            answer = self._sent(QueuedRequest("GET", path))
            if answer is None:
                return {"drain": id, "asked": "journal"}, "asked, and no answer yet; ask again"
            return answer, command_texts.format_drain_journal(answer)

        return self._answer(say, format)

    @CLIWriteCommand("predrain halt")
    def cmd_halt(self, why: str = "", format: str = "plain") -> HandleCommandResult:  # noqa: A002
        """Stop all of predrain's commands to the cluster from now on; works with the service down"""
        return self._answer(lambda: self._halt(why or "by ceph predrain halt"), format)

    @CLIWriteCommand("predrain unhalt")
    def cmd_unhalt(self, format: str = "plain") -> HandleCommandResult:  # noqa: A002
        """Lift the halt, here and in the service"""
        return self._answer(lambda: self._halt(None), format)

    def _halt(self, why: Optional[str]) -> Said:
        """Set or lift the halt in the cluster at once, then lift the service's. The engine reads both before every
        command.
        """
        self._clerk.have_done(lambda: set_halt(self, why))
        told = self._known.told
        if told is not None and why is None:
            told = replace(told, state=replace(told.state, halted=None))
        self._known = replace(self._known, halted=why, halt_unread="", told=told)
        also = ""
        if why is None and self._url():
            try:
                answer = self._sent(QueuedRequest("POST", "halt", {"reason": None}))
                also = "" if answer is not None else "; the service was asked and has not answered yet"
            except (UnusableAnswer, Declined, RequestQueueFull) as trouble:
                also = f"; the service's own halt, if there is one, stands: {trouble}"
        self._show_checks()
        return {"halted": why, "service": also[2:]}, (f"halted: {why}" if why else "not halted") + also


def _behind_time(text: str) -> str:
    """Return the stored text without its version and time."""
    return text.split(", ", 2)[-1]
