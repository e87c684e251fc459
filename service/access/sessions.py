"""Who is signed in on the page: a cookie that no script reads, known here by its hash, and a word against forgery.

The word (CSRF) is an HMAC under the cookie's secret. Who has it could read an answer of ours, which another site's
page cannot.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass
from datetime import datetime, timedelta

from predrain.service.access.book import Book, CredentialEnded, CredentialKind
from predrain.service.tokens import Caller, Tokens


@dataclass(frozen=True, slots=True)
class Session:
    """A browser that is signed in. `word` must come with whatever it asks to change."""

    caller: Caller
    word: str
    ends_at: datetime | None


class Sessions:
    """Sessions of one book. A session that was opened with a token refers to the token: the session may do what the
    token may do at that moment, and ends with the token, at the latest after `lasting`."""

    def __init__(self, tokens: Tokens, book: Book, lasting: timedelta) -> None:
        self._tokens, self._book, self.lasting = tokens, book, lasting

    def sign_in(self, caller: Caller) -> str:
        """Open a session for `caller`; returns the cookie's secret."""
        return self._book.open_session(caller, self.lasting)

    def of(self, secret: str) -> Session | None:
        """The session of a cookie; None where there is none. Raises Ended."""
        found = self._book.credential(secret)
        if found is None or found.kind is not CredentialKind.SESSION:
            return None
        word = word_of(secret)
        if found.parent is None:
            return Session(found.caller(), word, found.ends_at)
        token = self._book.standing(found.parent)
        grant = token or self._tokens.grant(found.parent)
        if grant is None:
            raise CredentialEnded(
                f"the token that {found.name} signed in with is good no longer; sign in again"
            )
        ends = [one.ends_at for one in (found, token) if one is not None and one.ends_at is not None]
        return Session(Caller.holding(grant, found.id), word, min(ends, default=None))

    def sign_out(self, caller: Caller) -> None:
        """Close the session that `caller` came with: its cookie opens nothing from now on, wherever it is."""
        self._book.close(caller.id)


def word_of(secret: str) -> str:
    """What a page says besides its cookie."""
    return hmac.new(secret.encode(), b"predrain: this came from our own page", hashlib.sha256).hexdigest()
