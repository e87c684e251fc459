"""The person or program that requested something, and the surface of the request; one text in journals and
drains.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from predrain.actions.guards import AUTOMATIC


class RequestSurface(StrEnum):
    """The surface of a request. TOKEN: over REST, by a program or a command with the token of that name."""

    AUTOMATIC = "automatic"
    PAGE = "page"
    COMMAND_LINE = "command line"
    TOKEN = "token"  # noqa: S105  (not a password)


PERSON_HEADER = "X-Predrain-Person"
"""The header that names the person who typed a command, percent-encoded, beside the token of the service's own
file.

A person who can read that file may act in any case. Every other token names its holder, and the header is
ignored.
"""
_COMMAND_LINE = f" ({RequestSurface.COMMAND_LINE})"
_SIGNED_IN = "oidc:"


@dataclass(frozen=True, slots=True)
class Requester:
    """The requester. person: the name of the account, of the signed-in person, or of the token; empty if there is
    none.
    """

    surface: RequestSurface
    person: str = ""

    @property
    def name(self) -> str:
        """The requester as one text, for journals and drains."""
        match self.surface:
            case RequestSurface.AUTOMATIC:
                return AUTOMATIC
            case RequestSurface.COMMAND_LINE:
                return f"{self.person}{_COMMAND_LINE}"
            case RequestSurface.PAGE:
                return f"{_SIGNED_IN}{self.person}" if self.person else RequestSurface.PAGE.value
            case RequestSurface.TOKEN:
                return self.person


def parse_requester(name: str) -> Requester:
    """Return the requester of that name; every unknown form is the name of a token."""
    if name == AUTOMATIC:
        return Requester(RequestSurface.AUTOMATIC)
    if name == RequestSurface.PAGE:
        return Requester(RequestSurface.PAGE)
    if name.startswith(_SIGNED_IN):
        return Requester(RequestSurface.PAGE, name.removeprefix(_SIGNED_IN))
    if name.endswith(_COMMAND_LINE):
        return Requester(RequestSurface.COMMAND_LINE, name.removesuffix(_COMMAND_LINE))
    return Requester(RequestSurface.TOKEN, name)
