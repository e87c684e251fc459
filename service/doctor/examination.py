"""Runs all checks at once, each with a deadline, so that a check without an answer does not delay the others."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from predrain.actions.cluster.cluster_port import ClusterUnreachable
from predrain.data.clock import Clock
from predrain.data.refusal import Refusal
from predrain.service.config.channels import list_channel_names
from predrain.service.config.settings import Settings
from predrain.service.doctor import ceph_checks, local_checks, remote_checks, running_checks
from predrain.service.doctor.finding import Finding

SECONDS = 60.0
"""The time that all checks together may take; each request has a shorter deadline of its own."""

Look = Callable[[Settings, Clock], Iterable[Finding]]

LOOKS: tuple[tuple[str, Look], ...] = (
    *local_checks.LOOKS,
    ("kafka", remote_checks.check_kafka),
    ("postgresql", remote_checks.check_postgresql),
    ("cluster", ceph_checks.check_cluster),
    ("service", running_checks.check_service),
    ("collectors", running_checks.check_collectors),
    *((name, remote_checks.look_at_channel(name)) for name in list_channel_names()),
    ("sign-in", remote_checks.check_oidc_provider),
)


def run_doctor_checks(settings: Settings, path: Path, clock: Clock, *, send: bool = False) -> list[Finding]:
    """Return all findings, in order. Nothing is changed and nothing is raised; messages are sent only if `send`
    is set.
    """
    settings = settings.model_copy(update={"service": settings.service.model_copy(update={"state": path})})
    looks = [*LOOKS, ("test message", remote_checks.test_message)] if send else LOOKS
    found: dict[str, list[Finding]] = {what: [] for what, _ in looks}
    done: set[str] = set()

    def look(what: str, at: Look) -> None:
        findings = found[what]
        try:
            for finding in at(settings, clock):
                findings.append(finding)  # one by one: the findings of a late check before its deadline count
        except (Refusal, OSError, ClusterUnreachable) as error:
            findings.append(Finding(what, "wrong", str(error)))
        except Exception as error:  # noqa: BLE001  (one look that breaks must not cost the others)
            told = f"could not be looked at ({type(error).__name__}: {error}); this is a fault of predrain's"
            findings.append(Finding(what, "wrong", told))
        done.add(what)

    # Daemon threads: a check that hangs in a driver must not keep the command from ending.
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
