"""The audit's chain as a store gives it out: whether it holds, where it ends, and the hashes of lines."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from predrain.data.store import chain
from predrain.data.store.database import Database
from predrain.data.store.port import AuditChain


class AuditRows:
    """The chain that the journal `audit` of one database is."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def verify_audit(self) -> AuditChain:
        """Walk along the audit's chain and tell whether it holds."""
        return chain.verify_chain(self._database)

    def find_audit_end(self) -> tuple[int, bytes] | None:
        """Number and hash of the audit's last line; None where it never had one."""
        return self._database.read(chain.find_end)

    def find_audit_hashes(self, numbers: Collection[int]) -> Mapping[int, bytes]:
        """The hashes of those lines of the audit, by number; lines that are not there have none."""
        return self._database.read(lambda connection: chain.find_hashes(connection, numbers))
