"""The person or program that asked for something, and by which surface; kept as one text in journals and drains."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from predrain.actions.guards import AUTOMATIC


class Surface(StrEnum):
    """By what something was asked. TOKEN: over REST, by a program or a command that holds the token of that name."""

    AUTOMATIC = "automatic"
    PAGE = "page"
    COMMAND_LINE = "command line"
    TOKEN = "token"  # noqa: S105  (not a password)


PERSON_HEADER = "X-Predrain-Person"
"""Names the person who typed a command, percent-encoded, beside the token of the service's own file. Whoever can read
that file may act in any case; every other token names its holder, whatever the header says.
"""
_COMMAND_LINE = f" ({Surface.COMMAND_LINE})"
_SIGNED_IN = "oidc:"


@dataclass(frozen=True, slots=True)
class Requester:
    """person: the name of the account, of whoever signed in, or of the token; empty where nobody is named."""

    surface: Surface
    person: str = ""

    @property
    def name(self) -> str:
        """As it is kept."""
        match self.surface:
            case Surface.AUTOMATIC:
                return AUTOMATIC
            case Surface.COMMAND_LINE:
                return f"{self.person}{_COMMAND_LINE}"
            case Surface.PAGE:
                return f"{_SIGNED_IN}{self.person}" if self.person else Surface.PAGE.value
            case Surface.TOKEN:
                return self.person


def parse_requester(name: str) -> Requester:
    """The requester of that name; every other name is a token's."""
    if name == AUTOMATIC:
        return Requester(Surface.AUTOMATIC)
    if name == Surface.PAGE:
        return Requester(Surface.PAGE)
    if name.startswith(_SIGNED_IN):
        return Requester(Surface.PAGE, name.removeprefix(_SIGNED_IN))
    if name.endswith(_COMMAND_LINE):
        return Requester(Surface.COMMAND_LINE, name.removesuffix(_COMMAND_LINE))
    return Requester(Surface.TOKEN, name)
