"""Sessions of the page: a cookie that no script reads, known here by its hash, and an anti-forgery word.

The word (CSRF) is an HMAC under the cookie's secret. Only a page that can read an answer of ours has the word, and
another site's page cannot.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass
from datetime import datetime, timedelta

from predrain.service.access.credentials import CredentialBook, CredentialEnded, CredentialKind
from predrain.service.access.tokens import Caller, Tokens


@dataclass(frozen=True, slots=True)
class Session:
    """A browser that is signed in. Every request of it that changes something must carry `word`."""

    caller: Caller
    word: str
    ends_at: datetime | None


class Sessions:
    """Sessions of one book.

    A session that was opened with a token refers to the token: it may do what the token may do at that moment, and ends
    with the token, at the latest after `lasting`.
    """

    def __init__(self, tokens: Tokens, book: CredentialBook, lasting: timedelta) -> None:
        self._tokens, self._book, self.lasting = tokens, book, lasting

    def sign_in(self, caller: Caller) -> str:
        """Open a session for `caller` and return the cookie's secret."""
        return self._book.open_session(caller, self.lasting)

    def find_session(self, secret: str) -> Session | None:
        """Return the session of a cookie, or None if there is none. Raises CredentialEnded."""
        found = self._book.find_credential(secret)
        if found is None or found.kind is not CredentialKind.SESSION:
            return None
        word = word_of(secret)
        if found.parent is None:
            return Session(found.to_caller(), word, found.ends_at)
        token = self._book.find_valid_credential(found.parent)
        grant = token or self._tokens.find_grant(found.parent)
        if grant is None:
            raise CredentialEnded(
                f"the token that {found.name} signed in with is good no longer; sign in again"
            )
        ends = [one.ends_at for one in (found, token) if one is not None and one.ends_at is not None]
        return Session(Caller.from_grant(grant, found.id), word, min(ends, default=None))

    def sign_out(self, caller: Caller) -> None:
        """Close the session that `caller` came with. Its cookie gives no access from now on, in any browser."""
        self._book.close_session(caller.id)


def word_of(secret: str) -> str:
    """Return the anti-forgery word that a page sends besides its cookie."""
    return hmac.new(secret.encode(), b"predrain: this came from our own page", hashlib.sha256).hexdigest()
