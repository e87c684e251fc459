"""Commands that act straight on files of the service, on record as requests to the service are."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from predrain.service.terminal.person import name_account

if TYPE_CHECKING:
    from predrain.data.store.store_port import Store
    from predrain.service.config.settings import Settings


def record_local_act(store: Store, what: str, said: Mapping[str, Any]) -> None:
    """Append to the audit that a person did `what` on this machine. Raises what the store raises."""
    from predrain.data.clock import SystemClock
    from predrain.service.access.audit import THIS_MACHINE, Audit, AuditedCall
    from predrain.service.access.canonical_requests import describe_act

    Audit(store, SystemClock()).write(
        AuditedCall(f"cli:{name_account()}", THIS_MACHINE, describe_act(what, said), "done")
    )


def record_done(settings: Settings, what: str, said: Mapping[str, Any]) -> None:
    """Record an act that is done already, where there is a store. A store that does not take the line is no refusal any
    more, but it is reported.
    """
    from predrain.data.refusal import Refusal
    from predrain.service.storage.backends import standing_store

    try:
        with standing_store(settings) as store:
            if store is not None:
                record_local_act(store, what, said)
    except (Refusal, OSError) as error:
        print(f"predrain: done, and not on record: {error}", file=sys.stderr)
