"""Restore the monitors' interval if the controller that lowered it stopped without doing so.

While a controller lowers `paxos_propose_interval` (fast maps), it renews the text `predrain/fast-maps` every 30 s:
the value that it set, the value before, and the time. It can do so only while it holds the lease. If the text was
not renewed for two minutes more, the interval counts as left behind. The module acts on the text only if it
carries a signature of `executor_key`; otherwise a health check names the command that a person can type.
"""

from __future__ import annotations

import errno
import json
import re
from dataclasses import dataclass

from .mgr_commands import CephStateUnknown, MgrApi
from .service_requests import sanitize_line
from .text_signing import KEY_MIN, NotVerified, strip_signature, verify_text

NAME = "fast-maps"
KEY = f"predrain/{NAME}"
OPTION = "paxos_propose_interval"
ABSENT = "-"
LEFT_AFTER_SECONDS = 150.0
"""The text is renewed every 30 s; two minutes more mean that no controller holds the lease."""
_NUMBER = r"\d{1,4}(?:\.\d{1,12})?"
_RECORD = re.compile(rf"({_NUMBER}) ({_NUMBER}|-) \S{{1,40}}")


@dataclass(frozen=True)
class ClaimedOption:
    """The value that a controller set, and the value before (`-`: none). `trusted`: `executor_key` signed it."""

    value: str
    was: str
    trusted: bool


class LeftFastMaps:
    """Watch the text and restore an interval that was left behind. Only `serve()` uses this class.

    After a restart the mgr begins to count again, because it does not know since when the text is unchanged.
    """

    def __init__(self, mgr: MgrApi) -> None:
        self._mgr = mgr
        self._text: str | None = None
        self._since = 0.0
        self.warning = ""
        """A warning for a person; "" for none."""

    def restore_left_interval(self, key: str, now: float) -> str:
        """Restore the interval if it was left behind. Return a sentence that says so, or "" if nothing was
        restored.

        now: seconds of a monotonic clock. Raises CephStateUnknown.
        """
        text = self._read()
        if text != self._text:
            self._text, self._since = text, now
        self.warning = ""
        if text is None or now - self._since < LEFT_AFTER_SECONDS:
            return ""
        standing = parse_record(key, text)
        if standing is None or not self._stands(standing.value):
            if standing is not None and standing.trusted:
                self._forget()
            return ""
        command = _give_back(standing)
        words = " ".join(str(word) for word in command.values())
        if not standing.trusted:
            self.warning = (
                f"{OPTION} of the monitors stands at {standing.value} s and no controller renews it; {KEY} is not "
                f"signed with executor_key, so nothing is done by it; give it back: ceph {words}"
            )
            return ""
        rc, _, err = self._mgr.mon_command(command)
        if rc:
            self.warning = (
                f"{OPTION} of the monitors could not be given back ({sanitize_line(err)}): ceph {words}"
            )
            return ""
        self._forget()
        return f"{OPTION} was left at {standing.value} s by a controller that leads no more: ceph {words}"

    def _read(self) -> str | None:
        rc, out, err = self._mgr.mon_command({"prefix": "config-key get", "key": KEY})
        if rc == -errno.ENOENT:
            return None
        if rc:
            raise CephStateUnknown(f"config-key {KEY} cannot be read: {sanitize_line(err)} ({rc})")
        return out

    def _stands(self, value: str) -> bool:
        """Return whether the monitors' option has the value that the controller set. Another value comes from
        somewhere else.
        """
        rc, out, err = self._mgr.mon_command({"prefix": "config dump", "format": "json"})
        if rc:
            raise CephStateUnknown(f"the mon's config cannot be read: {sanitize_line(err)} ({rc})")
        try:
            rows = [
                float(row["value"])
                for row in json.loads(out)
                if row["name"] == OPTION and row["section"] == "mon" and not row.get("mask")
            ]
        except (ValueError, TypeError, KeyError) as error:
            raise CephStateUnknown(
                f"the mon does not show its config in a known way ({type(error).__name__})"
            ) from error
        return rows == [float(value)]

    def _forget(self) -> None:
        self._mgr.mon_command({"prefix": "config-key rm", "key": KEY})
        self._text = None


def parse_record(key: str, text: str) -> ClaimedOption | None:
    """Parse the text. Return None if it has not the form of a record."""
    try:
        if len(key) < KEY_MIN:
            trusted, body = False, strip_signature(text)
        else:
            trusted, body = True, verify_text(key, NAME, text)
    except NotVerified:
        trusted, body = False, strip_signature(text)
    found = _RECORD.fullmatch(body.strip())
    return ClaimedOption(found[1], found[2], trusted) if found else None


def _give_back(standing: ClaimedOption) -> dict[str, str]:
    if standing.was == ABSENT:
        return {"prefix": "config rm", "who": "mon", "name": OPTION}
    return {"prefix": "config set", "who": "mon", "name": OPTION, "value": standing.was}
