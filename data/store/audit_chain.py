"""The audit as a chain: each line carries the SHA-256 of the hash before it and of the line itself.

A person who changes, removes, inserts or reorders a line breaks the chain there. The row of `chains` holds the
chain's begin (the hash of the last line that retention dropped) and its end, so that lines missing at either end
show.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, select

from predrain.data.store import store_schema
from predrain.data.store.database import Database
from predrain.data.store.store_port import AUDIT, AuditChain, ChainBreak

GENESIS = bytes(32)
"""The hash before the very first line."""
_PAGE = 2_000

_LINES, _CHAINS = store_schema.journal, store_schema.chains


def hash_line(before: bytes, document: bytes) -> bytes:
    """Return the hash of a line: SHA-256 over the hash before it, and its document as it is stored."""
    return hashlib.sha256(before + document).digest()


def append_lines(database: Database, connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
    """Append rows of the journal to the chain; a row that is there already is not added again.

    Writers wait for each other here: two lines with one predecessor would be a break.
    """
    connection.execute(
        database.insert(_CHAINS).on_conflict_do_nothing(),
        [{"journal": AUDIT, "anchor": GENESIS, "anchored": 0, "head": GENESIS, "ended": 0, "adopted": 0}],
    )
    head = connection.execute(
        select(_CHAINS.c.head).where(_match_audit_chain()).with_for_update()
    ).scalar_one()
    known = select(_LINES.c.digest).where(_LINES.c.digest.in_([row["digest"] for row in rows]))
    there, number = {bytes(one) for one in connection.execute(known).scalars()}, None
    for row in rows:
        if row["digest"] in there:
            continue
        there.add(row["digest"])
        head = hash_line(bytes(head), row["document"])
        adding = _LINES.insert().values(**row, hash=head).returning(_LINES.c.number)
        number = connection.execute(adding).scalar_one()
    if number is not None:
        connection.execute(_CHAINS.update().where(_match_audit_chain()).values(head=head, ended=number))


def move_anchor(connection: Connection, number: int) -> None:
    """Make the chain begin after the line `number`, which is about to be dropped with all lines before it."""
    last = select(_LINES.c.hash).where(_LINES.c.number == number)
    found = connection.execute(last).scalar_one_or_none()
    if found is not None:
        connection.execute(_CHAINS.update().where(_match_audit_chain()).values(anchor=found, anchored=number))


def verify_chain(database: Database) -> AuditChain:
    """Walk along the whole chain, from its anchor to its end. Lines written or dropped meanwhile are no break."""
    while True:
        found, ends = database.read(_walk_chain)
        if found.broken is None or database.read(_read_chain_ends) == ends:
            return found


def find_end(connection: Connection) -> tuple[int, bytes] | None:
    """Return number and hash of the last line; None if there never was one."""
    ends = _read_chain_ends(connection)
    return (ends.ended, bytes(ends.head)) if ends is not None and ends.ended else None


def find_hashes(connection: Connection, numbers: Collection[int]) -> dict[int, bytes]:
    """Return the hashes of those lines, by number; lines that do not exist have none."""
    wanted = select(_LINES.c.number, _LINES.c.hash).where(_LINES.c.drain == AUDIT)
    found: dict[int, bytes] = {}
    asked = sorted(numbers)
    for begin in range(0, len(asked), _PAGE):
        rows = connection.execute(wanted.where(_LINES.c.number.in_(asked[begin : begin + _PAGE])))
        found |= {number: bytes(hash_) for number, hash_ in rows.all() if hash_ is not None}
    return found


def _read_chain_ends(connection: Connection) -> Any:
    return connection.execute(select(_CHAINS).where(_match_audit_chain())).one_or_none()


def _walk_chain(connection: Connection) -> tuple[AuditChain, Any]:
    ends = _read_chain_ends(connection)
    if ends is None:
        lines = connection.execute(select(_LINES.c.number).where(_LINES.c.drain == AUDIT).limit(1)).all()
        return AuditChain(0, GENESIS, broken=ChainBreak.UNKNOWN if lines else None), ends
    head, number, count, adopted = bytes(ends.anchor), ends.anchored, 0, 0
    reach = (ends.anchored, ends.ended)
    for row in _iterate_audit_lines(connection, ends.ended):
        following = hash_line(head, bytes(row.document))
        if row.hash is None or bytes(row.hash) != following:
            return AuditChain(count, head, adopted, ChainBreak.CHANGED, row.number, *reach), ends
        head, number, count = following, row.number, count + 1
        adopted += number <= ends.adopted
    if head != bytes(ends.head):
        return AuditChain(count, head, adopted, ChainBreak.END, number, *reach), ends
    return AuditChain(count, head, adopted, None, None, *reach), ends


def _iterate_audit_lines(connection: Connection, last: int) -> Iterator[Any]:
    """Yield the lines up to the number `last`, in order, one page at a time."""
    page = (
        select(_LINES.c.number, _LINES.c.document, _LINES.c.hash)
        .where(_LINES.c.drain == AUDIT, _LINES.c.number <= last)
        .order_by(_LINES.c.number)
        .limit(_PAGE)
    )
    after = -1
    while rows := connection.execute(page.where(_LINES.c.number > after)).all():
        yield from rows
        after = rows[-1].number


def _match_audit_chain() -> Any:
    return _CHAINS.c.journal == AUDIT
