"""Fast maps that a controller left standing: the module gives them back.

While a controller holds the monitors' interval down it renews the text `predrain/fast-maps` every half minute: what it
set, what stood before, and when. It can do so only while it leads. A text that was not renewed for two minutes more is
left. It is believed where it carries the signature of `hand_key`; otherwise a health check names the command.
"""

from __future__ import annotations

import errno
import json
import re
from dataclasses import dataclass

from .asking import clean
from .cluster import MgrApi, Unread
from .signing import KEY_MIN, NotVerified, strip_signature, verify_text

NAME = "fast-maps"
KEY = f"predrain/{NAME}"
OPTION = "paxos_propose_interval"
ABSENT = "-"
LEFT_AFTER_SECONDS = 150.0
"""It is renewed every 30 s; two minutes more without a controller that leads."""
_NUMBER = r"\d{1,4}(?:\.\d{1,12})?"
_RECORD = re.compile(rf"({_NUMBER}) ({_NUMBER}|-) \S{{1,40}}")


@dataclass(frozen=True)
class ClaimedOption:
    """What a controller set, and what stood before (`-`: nothing). `trusted`: our key has signed it."""

    value: str
    was: str
    trusted: bool


class LeftFastMaps:
    """Watches the text, and gives back what is left. Used by `serve()` only.

    A mgr that has just begun counts anew: it cannot know since when the text has been as it is.
    """

    def __init__(self, mgr: MgrApi) -> None:
        self._mgr = mgr
        self._text: str | None = None
        self._since = 0.0
        self.warning = ""
        """What a person has to know; "" for nothing."""

    def look(self, key: str, now: float) -> str:
        """What was given back, as a sentence; "" for nothing. now: seconds of a clock that only goes forward. Raises
        Unread.
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
                f"signed with hand_key, so nothing is done by it; give it back: ceph {words}"
            )
            return ""
        rc, _, err = self._mgr.mon_command(command)
        if rc:
            self.warning = f"{OPTION} of the monitors could not be given back ({clean(err)}): ceph {words}"
            return ""
        self._forget()
        return f"{OPTION} was left at {standing.value} s by a controller that leads no more: ceph {words}"

    def _read(self) -> str | None:
        rc, out, err = self._mgr.mon_command({"prefix": "config-key get", "key": KEY})
        if rc == -errno.ENOENT:
            return None
        if rc:
            raise Unread(f"config-key {KEY} cannot be read: {clean(err)} ({rc})")
        return out

    def _stands(self, value: str) -> bool:
        """Whether the monitors' row is what the controller set: anything else is somebody else's."""
        rc, out, err = self._mgr.mon_command({"prefix": "config dump", "format": "json"})
        if rc:
            raise Unread(f"the mon's config cannot be read: {clean(err)} ({rc})")
        try:
            rows = [
                float(row["value"])
                for row in json.loads(out)
                if row["name"] == OPTION and row["section"] == "mon" and not row.get("mask")
            ]
        except (ValueError, TypeError, KeyError) as error:
            raise Unread(
                f"the mon does not show its config in a known way ({type(error).__name__})"
            ) from error
        return rows == [float(value)]

    def _forget(self) -> None:
        self._mgr.mon_command({"prefix": "config-key rm", "key": KEY})
        self._text = None


def parse_record(key: str, text: str) -> ClaimedOption | None:
    """What the text says; None where it says nothing that can be used."""
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
