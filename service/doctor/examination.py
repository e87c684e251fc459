"""All looks side by side, each with a deadline: what does not answer holds no other up."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from predrain.actions.cluster.port import ClusterUnreachable
from predrain.data.clock import Clock
from predrain.data.refusal import Refusal
from predrain.service.doctor import away, ceph, here, running
from predrain.service.doctor.finding import Finding
from predrain.service.settings import Settings

SECONDS = 60.0
"""How long all looks together may take; each question has a shorter deadline of its own."""

Look = Callable[[Settings, Clock], Iterable[Finding]]

LOOKS: tuple[tuple[str, Look], ...] = (
    *here.LOOKS,
    ("kafka", away.kafka),
    ("postgresql", away.postgresql),
    ("cluster", ceph.cluster),
    ("service", running.service),
    ("collectors", running.collectors),
    ("mail", away.mail),
    ("webhook", away.webhook),
    ("sign-in", away.oidc),
)


def examine(settings: Settings, path: Path, clock: Clock, *, send: bool = False) -> list[Finding]:
    """Every finding, in order. Nothing is changed and nothing is raised; messages go out only when `send`."""
    settings = settings.model_copy(update={"service": settings.service.model_copy(update={"state": path})})
    looks = [*LOOKS, ("test message", away.test_message)] if send else LOOKS
    found: dict[str, list[Finding]] = {what: [] for what, _ in looks}
    done: set[str] = set()

    def look(what: str, at: Look) -> None:
        findings = found[what]
        try:
            for finding in at(settings, clock):
                findings.append(finding)  # each as it comes: who is late has told that much
        except (Refusal, OSError, ClusterUnreachable) as error:
            findings.append(Finding(what, "wrong", str(error)))
        except Exception as error:  # noqa: BLE001  (one look that breaks must not cost the others)
            told = f"could not be looked at ({type(error).__name__}: {error}); this is a fault of predrain's"
            findings.append(Finding(what, "wrong", told))
        done.add(what)

    # Daemons: one that hangs in a driver must not keep the command from ending.
    threads = [threading.Thread(target=look, args=one, daemon=True) for one in looks]
    for thread in threads:
        thread.start()
    end = time.monotonic() + SECONDS
    for thread in threads:
        thread.join(max(0.0, end - time.monotonic()))
    late = f"did not answer within {SECONDS:.0f} s: see that it runs and no firewall is between"
    told = [Finding("settings", "ok", "read without complaint")]
    for what, _ in looks:
        told += [*found[what], *([] if what in done else [Finding(what, "wrong", late)])]
    return told
