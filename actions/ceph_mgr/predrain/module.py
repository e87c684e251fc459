"""The module as ceph-mgr loads it: options, commands, and the loop that alone speaks HTTP."""

# No `from __future__ import annotations` here: ceph-mgr reads the commands' arguments from live annotations.

import errno
import json
import time
from dataclasses import replace
from typing import Any, Callable, ClassVar, Optional
from urllib.parse import quote, urlencode

from mgr_module import HandleCommandResult, MgrModule, Option

from . import words
from .asking import MIB, Declined, Service, ServiceReply, UnusableAnswer, ask, clean
from .checks import checks
from .clerk import Clerk, Late
from .cluster import Unread, halt_word, osds_here, set_halt
from .errands import Errand, Errands, TooMany
from .fast_maps import LeftFastMaps
from .hand import StepExecutor
from .kept_texts import read_kept, read_key, write_kept
from .known import LastReport, kept, remembered
from .reading import NotBelieved
from .registry import CLICommand as Command
from .registry import CLIReadCommand, CLIWriteCommand
from .signing import KEY_MIN
from .told import ServiceReport, drains_of, osds_of, state_of

HAND_SECONDS = 1.0
KNOWN = "known"
"""The name of what is kept for the next mgr."""
KEEP_AGAIN_SECONDS = 600.0
"""The age of what is kept is at most this much too high after a mgr restart."""
JOURNAL_LINES = 200
LIMITS = {"status": MIB, "osds": 16 * MIB, "drains": 16 * MIB}
Said = tuple[Any, str]


class Module(MgrModule):
    """predrain's window in the cluster."""

    CLICommand = Command
    MODULE_OPTIONS: ClassVar[list[Option]] = [
        Option(name="url", type="str", default="", desc="address of the predrain service", runtime=True),
        Option(
            name="ca", type="str", default="", desc="PEM file of the authority that it trusts", runtime=True
        ),
        Option(
            name="interval", type="secs", default=15, min=2, desc="seconds between two looks", runtime=True
        ),
        Option(
            name="mode",
            type="str",
            default="mirror",
            enum_allowed=["mirror", "hand"],
            desc="mirror: shows; hand: also carries out the steps that the service seals",
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
        self._errands, self._clerk = Errands(), Clerk()
        self._running = True
        self._look_at = 0.0
        found = read_kept(self, KNOWN, read_key(self))
        stored = found.text or ""
        self._known = replace(remembered(stored, time.time()), doubt=found.doubt)
        if found.doubt and not found.text:
            self.log.warning("predrain: %s", found.doubt)
        self._hand, self._fast_maps = StepExecutor(self), LeftFastMaps(self)
        self._tags: dict[str, tuple[str, Any]] = {}
        self._stored: tuple[str, float] = (_behind_time(stored), time.monotonic())
        self._shown: Optional[dict[str, Any]] = None

    # -- the loop -----------------------------------------------------------------------------------------------------

    def serve(self) -> None:
        """Looks each interval; carries what commands asked for as it comes."""
        hand_at = 0.0
        while self._running:
            now = time.monotonic()
            errand = self._errands.take()
            if errand is not None:
                self._guarded(self._carry, errand)
            elif now >= self._look_at:
                self._look_at = now + max(2.0, float(self._option("interval") or 15))
                self._guarded(self._look)
            elif self._hands() and now >= hand_at:
                self._guarded(self._handle)
                hand_at = time.monotonic() + HAND_SECONDS
            else:
                self._errands.sleep(min([self._look_at - now, *([hand_at - now] if self._hands() else [])]))

    def shutdown(self) -> None:
        """Not called by any release that was tried; nothing rests on it."""
        self._running = False
        self._errands.wake()

    def config_notify(self) -> None:
        """Options changed: look at once."""
        self._tags, self._look_at = {}, 0.0
        self._errands.wake()

    def _guarded(self, work: Callable[..., None], *given: Any) -> None:
        """An exception that left `serve()` would end all commands until the mgr restarts: it becomes a line."""
        try:
            work(*given)
        except Exception as error:  # noqa: BLE001
            self._known = self._known.missed(f"unexpected {type(error).__name__}: {clean(str(error), 160)}")
            self.log.warning("predrain: %s", self._known.trouble)
            self._errands.sleep(1.0)

    def _look(self) -> None:
        url = self._url()
        if url != self._known.url:
            self._tags = {}
        known = self._known.of(url)
        if url:
            try:
                known = known.heard(self._ask_all(), time.time())
            except (UnusableAnswer, Declined, NotBelieved) as trouble:
                known = known.missed(str(trouble))
        here = osds_here(self)
        known = known.limited(here) if here is not None and not known.trouble else known
        try:  # last: the service may take long to answer, and a command may halt meanwhile
            self._known = replace(known, halted=halt_word(self), halt_unread="")
        except Unread as trouble:
            self._known = replace(known, halted=self._known.halted, halt_unread=str(trouble))
        self._give_back_fast_maps()
        self._show_checks()
        self._keep()

    def _give_back_fast_maps(self) -> None:
        try:
            said = self._fast_maps.look(read_key(self), time.monotonic())
        except Unread as trouble:
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
        reply = ask(service, "GET", path, headers=headers, limit=LIMITS[path])
        if reply.unchanged:
            if not tag:
                raise NotBelieved(f"{path} is said to be unchanged, and was never told")
            return old
        found = parse(reply.body)
        self._tags[path] = (reply.etag, found)
        return found

    def _carry(self, errand: Errand) -> None:
        try:
            reply: ServiceReply = ask(
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
            self._hand.round(
                self._service(), read_key(self), time.time(), int(self._option("peering_max") or 3)
            )
        except (UnusableAnswer, Declined, NotBelieved, Unread) as trouble:
            self._hand.last = f"no steps to be had: {trouble}"

    def _show_checks(self) -> None:
        found = checks(self._known, self._url(), time.time(), self._fast_maps.warning)
        if found != self._shown:
            self.set_health_checks(found)
            self._shown = found

    def _keep(self) -> None:
        """Into the store when it says something new, and now and then for its age."""
        text, now = kept(self._known), time.monotonic()
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
        """What is known of the service that is set now."""
        return self._known.of(self._url())

    def _hands(self) -> bool:
        return bool(self._url()) and self._option("mode") == "hand"

    def _service(self) -> Service:
        token = (self.get_store("token") or "").strip()
        return Service(self._url(), token, str(self._option("ca") or ""), self.get_store("ca") or "")

    def _answer(self, say: Callable[[], Said], format_: str) -> HandleCommandResult:
        """No command ends in a traceback."""
        try:
            body, text = say()
        except (words.NotKnown, TooMany, Declined) as error:
            return HandleCommandResult(-errno.ENOENT, "", str(error))
        except (UnusableAnswer, Unread, Late) as error:
            return HandleCommandResult(-errno.EAGAIN, "", str(error))
        except Exception as error:  # noqa: BLE001
            return HandleCommandResult(
                -errno.EIO, "", f"unexpected {type(error).__name__}: {clean(str(error), 160)}"
            )
        if format_.startswith("json"):
            return HandleCommandResult(
                0, json.dumps(body, indent=4 if format_ == "json-pretty" else None), ""
            )
        return HandleCommandResult(0, text, "")

    def _sent(self, errand: Errand) -> Any:
        """The service's answer; None where it did not come in a moment. Raises Unanswered when it refused."""
        if not self._url():
            raise UnusableAnswer("url is not set: ceph config set mgr mgr/predrain/url https://HOST:PORT")
        self._errands.ask(errand)
        if errand.trouble:
            raise UnusableAnswer(errand.trouble)
        return errand.answer

    def _wish(self, id_: str, wish: str, headers: Optional[dict[str, str]] = None) -> Said:
        answer = self._sent(Errand("POST", f"drains/{quote(id_, safe='')}/{wish}", {}, headers or {}))
        if answer is None:
            return {"drain": id_, "asked": wish, "state": None}, f"asked; see ceph predrain journal {id_}"
        state = clean(str(answer.get("state")) if isinstance(answer, dict) else "unknown", 40)
        return {"drain": id_, "asked": wish, "state": state}, f"{id_}: {state}"

    # -- commands -----------------------------------------------------------------------------------------------------

    @CLIReadCommand("predrain status")
    def cmd_status(self, format: str = "plain") -> HandleCommandResult:  # noqa: A002
        """Whether the predrain service answers, what it forecasts, what drains, and whether all is halted"""
        now, mode = time.time(), str(self._option("mode"))
        return self._answer(
            lambda: words.status(
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
        return self._answer(lambda: words.listing(self._seen(), bad, time.time()), format)

    @CLIReadCommand("predrain show")
    def cmd_show(self, what: str, format: str = "plain") -> HandleCommandResult:  # noqa: A002
        """All that is known of an OSD (osd.N) or a device"""
        return self._answer(lambda: words.show(self._seen(), what, time.time()), format)

    @CLIReadCommand("predrain plan")
    def cmd_plan(self, osd: str, format: str = "plain") -> HandleCommandResult:  # noqa: A002
        """What draining an OSD would do; nothing is changed"""

        def say() -> Said:
            number = words.osd_number(osd)
            target = osd if number is None else f"osd.{number}"
            answer = self._sent(Errand("GET", "plan?" + urlencode({"target": target})))
            if answer is None:
                return {"target": target, "asked": "plan"}, "asked, and no answer yet; ask again"
            return answer, words.plan(target, answer)

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
            return self._wish(id, "approve", {"If-Match": words.drain_of(known, id).etag})

        return self._answer(say, format)

    @CLIWriteCommand("predrain pause")
    def cmd_pause(self, id: str, format: str = "plain") -> HandleCommandResult:  # noqa: A002
        """Hold a drain until it is resumed; what is on its way arrives"""
        return self._answer(lambda: self._wish(id, "pause"), format)

    @CLIWriteCommand("predrain resume")
    def cmd_resume(self, id: str, format: str = "plain") -> HandleCommandResult:  # noqa: A002
        """Let a paused or failed drain go on"""
        return self._answer(lambda: self._wish(id, "resume"), format)

    @CLIWriteCommand("predrain cancel")
    def cmd_cancel(self, id: str, format: str = "plain") -> HandleCommandResult:  # noqa: A002
        """Give a drain up and put everything back"""
        return self._answer(lambda: self._wish(id, "cancel"), format)

    @CLIReadCommand("predrain journal")
    def cmd_journal(self, id: str, format: str = "plain") -> HandleCommandResult:  # noqa: A002
        """What was seen, decided and answered in a drain, oldest first"""

        def say() -> Said:
            path = f"drains/{quote(id, safe='')}/journal?limit={JOURNAL_LINES}"
            answer = self._sent(Errand("GET", path))
            if answer is None:
                return {"drain": id, "asked": "journal"}, "asked, and no answer yet; ask again"
            return answer, words.journal(answer)

        return self._answer(say, format)

    @CLIWriteCommand("predrain halt")
    def cmd_halt(self, why: str = "", format: str = "plain") -> HandleCommandResult:  # noqa: A002
        """No command is sent to the cluster from now on, by anybody; works with the service down"""
        return self._answer(lambda: self._halt(why or "by ceph predrain halt"), format)

    @CLIWriteCommand("predrain unhalt")
    def cmd_unhalt(self, format: str = "plain") -> HandleCommandResult:  # noqa: A002
        """Lift the halt, here and in the service"""
        return self._answer(lambda: self._halt(None), format)

    def _halt(self, why: Optional[str]) -> Said:
        """The cluster's word at once, then the service's: the engine reads both before every command."""
        self._clerk.have_done(lambda: set_halt(self, why))
        told = self._known.told
        if told is not None and why is None:
            told = replace(told, state=replace(told.state, halted=None))
        self._known = replace(self._known, halted=why, halt_unread="", told=told)
        also = ""
        if why is None and self._url():
            try:
                answer = self._sent(Errand("POST", "halt", {"why": None}))
                also = "" if answer is not None else "; the service was asked and has not answered yet"
            except (UnusableAnswer, Declined, TooMany) as trouble:
                also = f"; the service's own halt, if there is one, stands: {trouble}"
        self._show_checks()
        return {"halted": why, "service": also[2:]}, (f"halted: {why}" if why else "not halted") + also


def _behind_time(text: str) -> str:
    """What is kept without its version and time."""
    return text.split(", ", 2)[-1]
