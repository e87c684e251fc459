"""The audit's chain as a store exposes it: whether it holds, its end, and the hashes of lines."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from predrain.data.store import audit_chain
from predrain.data.store.database import Database
from predrain.data.store.store_port import AuditChain


class AuditRows:
    """The chain of the journal `audit` in one database."""

    _database: Database

    def verify_audit(self) -> AuditChain:
        """Walk along the audit's chain and return whether it holds."""
        return audit_chain.verify_chain(self._database)

    def find_audit_end(self) -> tuple[int, bytes] | None:
        """Return number and hash of the audit's last line; None if it never had one."""
        return self._database.read(audit_chain.find_end)

    def find_audit_hashes(self, numbers: Collection[int]) -> Mapping[int, bytes]:
        """Return the hashes of those lines of the audit, by number; lines that do not exist have none."""
        return self._database.read(lambda connection: audit_chain.find_hashes(connection, numbers))
