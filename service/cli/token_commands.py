"""`predrain token create|list|revoke|enrol`: written to the store, whether the service runs or not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter
from cyclopts.validators import Number

from predrain.data.refusal import Refusal
from predrain.service.cli.shared_options import THIS_MACHINE, AsJson, StateAddress, print_json
from predrain.service.terminal.person import name_account

if TYPE_CHECKING:
    from predrain.service.access.credentials import Credential, CredentialBook


class NoTokenStore(Refusal):
    """The state directory holds no store, so there is no book of tokens."""


LONGEST = 256
"""Characters of a name; a host's is no longer in readings."""


def _one_line(_type: object, name: str) -> None:
    if not (name.strip() and name.isprintable() and len(name) <= LONGEST):
        raise ValueError(f"a name is one line of {LONGEST} printable characters at most")


def _validate_host_names(type_: object, names: tuple[str, ...]) -> None:
    for name in names:
        _one_line(type_, name)


def make_token_command(
    *,
    name: Annotated[str, Parameter(help="Name of its holder; journals use this name.", validator=_one_line)],
    scope: Annotated[
        tuple[Literal["read", "ingest", "act", "execute", "admin"], ...],
        Parameter(negative="", help="Rights of the token."),
    ],
    days: Annotated[
        float | None,
        Parameter(
            help="Days that it stands; until it is revoked if not said.", validator=Number(gt=0, lte=36_525)
        ),
    ] = None,
    where: StateAddress = THIS_MACHINE,
) -> int:
    """Print a new token, once: only its hash is kept. It is good at once, in every process on the same store.

    Example: predrain token create --name grafana --scope read --days 365
    """
    from predrain.service.access.credentials import CredentialKind
    from predrain.service.access.tokens import Scope

    lasting = None if days is None else timedelta(days=days)
    with _open_token_book(where) as book:
        print(
            book.issue_credential(
                CredentialKind.TOKEN, name, [Scope(one) for one in scope], _name_caller(), lasting=lasting
            )
        )
    return 0


def list_tokens_command(
    *,
    sessions: Annotated[bool, Parameter(negative="", help="Browsers that are signed in, too.")] = False,
    where: StateAddress = THIS_MACHINE,
    as_json: AsJson = False,
) -> int:
    """Every token: who holds it, what it may do, until when; what was revoked or used, for 30 days.

    Example: predrain token list
    """
    from predrain.data.clock import SystemClock
    from predrain.service.access.credentials import CredentialKind

    with _open_token_book(where) as book:
        found = [one for one in book.list_credentials() if sessions or one.kind is not CredentialKind.SESSION]
    now = SystemClock().now()
    if as_json:
        print_json({"items": [_as_json(one, now) for one in found]})
        return 0
    for one in found:
        scopes, by = ", ".join(sorted(one.scopes)), f"made {one.made_at:%Y-%m-%d} by {one.made_by}"
        print(
            f"{one.id[:12]}  {one.kind:9}  {one.name}  [{scopes}]  {_describe_token_status(one, now)}, {by}"
        )
    if not found:
        print("none but the service's own, in its state directory")
    return 0


def revoke_token_command(
    token: Annotated[
        str, Parameter(help="A name, or the beginning of an id, as `predrain token list` shows them.")
    ],
    *,
    where: StateAddress = THIS_MACHINE,
) -> int:
    """End a token, and the sessions that were signed in with it, within a second and without a restart.

    Example: predrain token revoke grafana
    """
    with _open_token_book(where) as book:
        for one in book.revoke(token, _name_caller()):
            print(f"revoked: {one.kind} {one.name} ({one.id[:12]})")
    return 0


def enrol_hosts_command(
    hosts: Annotated[
        tuple[str, ...], Parameter(help="Hosts as their readings name them.", validator=_validate_host_names)
    ],
    /,
    *,
    hours: Annotated[
        float,
        Parameter(
            help="Hours within which a collector must use it.", validator=Number(gt=0, lte=24 * 36_525)
        ),
    ] = 24.0,
    where: StateAddress = THIS_MACHINE,
) -> int:
    """Print a one-time token for each host: `predrain collect --enrol TOKEN` there exchanges it for one of its own.

    Example: predrain token enrol stor-01 stor-02
    """
    from predrain.service.access.credentials import CredentialKind
    from predrain.service.access.tokens import Scope

    with _open_token_book(where) as book:
        for host in hosts:
            secret = book.issue_credential(
                CredentialKind.ENROLMENT,
                f"host:{host}",
                [Scope.INGEST],
                _name_caller(),
                lasting=timedelta(hours=hours),
                host=host,
            )
            print(f"{host}\t{secret}")
    return 0


@contextmanager
def _open_token_book(where: StateAddress) -> Iterator[CredentialBook]:
    """Open the credential book of the named service; the audit has all changes. Raises NoTokenStore."""
    from predrain.data.clock import SystemClock
    from predrain.service.access.audit import THIS_MACHINE
    from predrain.service.access.credentials import CredentialBook
    from predrain.service.storage.backends import standing_store

    settings = where.settings()
    with standing_store(settings) as store:
        if store is None:
            raise NoTokenStore(
                f"{settings.service.state} holds no store yet; start the service once (predrain up), or say --state"
            )
        yield CredentialBook(store, SystemClock(), source=THIS_MACHINE)


def _name_caller() -> str:
    return f"cli:{name_account()}"


def _describe_token_status(one: Credential, now: datetime) -> str:
    if one.revoked_at is not None:
        return f"revoked {one.revoked_at:%Y-%m-%d %H:%M}Z by {one.revoked_by}"
    if one.used_at is not None:
        return f"used {one.used_at:%Y-%m-%d %H:%M}Z"
    if one.ends_at is None:
        return "stands"
    return f"{'ended' if one.ends_at <= now else 'until'} {one.ends_at:%Y-%m-%d %H:%M}Z"


def _as_json(one: Credential, now: datetime) -> dict[str, object]:
    return {
        "id": one.id,
        "kind": one.kind.value,
        "name": one.name,
        "scopes": sorted(scope.value for scope in one.scopes),
        "host": one.host,
        "made_at": one.made_at.isoformat(),
        "made_by": one.made_by,
        "ends_at": one.ends_at.isoformat() if one.ends_at else None,
        "standing": _describe_token_status(one, now),
    }
