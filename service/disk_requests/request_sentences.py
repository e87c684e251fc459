"""Refusals and ends of requests about disks as sentences, each with its cure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from predrain.data.disk_request import DiskPermission, DiskVerb, RequestOutcome
from predrain.data.ids import HostName
from predrain.data.self_test import SelfTestResult
from predrain.service.disk_requests.request_book import StoredRequest
from predrain.service.disk_requests.request_guards import RequestRefusal, RequestRefusalKind

VERB_TEXTS: Final[Mapping[DiskVerb, str]] = {
    DiskVerb.SHORT_TEST: "short self-test",
    DiskVerb.LONG_TEST: "long self-test",
    DiskVerb.LOCATE_ON: "light on",
    DiskVerb.LOCATE_OFF: "light off",
}
PERMISSION_TEXTS: Final[Mapping[DiskPermission, str]] = {
    DiskPermission.SELF_TEST: "self-tests",
    DiskPermission.LOCATE: "lights to be switched",
}
REFUSAL_TEXTS: Final[Mapping[RequestRefusalKind, str]] = {
    RequestRefusalKind.DISK_GONE: "The disk is no longer in service.",
    RequestRefusalKind.NO_HOST: "No host reads a disk of this name, or two hosts have one: see predrain disk host.",
    RequestRefusalKind.HOST_SILENT: "{host} has {asked}: start its collector (predrain collect) in this release, enrol "
    "it (predrain token enrol {host}), and see its log.",
    RequestRefusalKind.NO_KEY: "{host} has no key for requests: enrol it again (predrain token enrol {host}, there "
    "predrain collect --enrol TOKEN).",
    RequestRefusalKind.NOT_ALLOWED: '{host} does not allow {what}: add "{word}" to `allow` of [collector] in its '
    "/etc/predrain/collector.toml, install the sudoers file predrain-collector-requests there, and restart its "
    "collector.",
    RequestRefusalKind.REQUEST_OPEN: "Another request for this disk has not ended yet: wait a minute.",
    RequestRefusalKind.HALTED: "Everything is halted: lift the halt first.",
    RequestRefusalKind.DISK_DRAINS: "The disk drains (drain {drain}): a test would slow the drain down.",
    RequestRefusalKind.OSD_FILLS: "The OSD on the disk fills (drain {drain}): test the disk when it is full.",
    RequestRefusalKind.CLUSTER_UNKNOWN: "The state of the PGs of {host} is not known: wait until the cluster answers.",
    RequestRefusalKind.PGS_UNCLEAN: "{count} PGs of {host} are not active+clean: wait until they are.",
    RequestRefusalKind.TEST_RUNNING: "A self-test runs on the disk already.",
    RequestRefusalKind.LONG_TEST_ON_HOST: "A long self-test of {device} runs on {host}, and a host runs one at a time.",
}
OUTCOME_TEXTS: Final[Mapping[RequestOutcome, str]] = {
    RequestOutcome.STARTED: "The test has started.",
    RequestOutcome.DONE: "The light is switched.",
    RequestOutcome.NOT_ALLOWED: REFUSAL_TEXTS[RequestRefusalKind.NOT_ALLOWED],
    RequestOutcome.FORGED: "{host} refused the request because it is not signed with the key of this host: enrol it "
    "again (predrain token enrol {host}).",
    RequestOutcome.OTHER_HOST: "{host} refused the request because it is for another host.",
    RequestOutcome.EXPIRED: "{host} refused the request because its end had passed: compare the clocks of the host and "
    "of the service.",
    RequestOutcome.REPEATED: "{host} refused the request because it had carried it out before.",
    RequestOutcome.UNKNOWN_DISK: "{host} did not find the disk at the place where it was read last.",
    RequestOutcome.TEST_RUNNING: "{host} refused: a test runs on the disk, or a long one on another disk of the host.",
    RequestOutcome.NO_LIGHT: "{host} knows no light for the disk: it is behind a RAID controller.",
    RequestOutcome.NO_RIGHT: "{host} may not run the program: install the sudoers file predrain-collector-requests "
    "there.",
    RequestOutcome.TOOL_MISSING: "{host} lacks the program: install smartmontools for tests, ledmon for lights.",
    RequestOutcome.TOOL_FAILED: "The program on {host} failed.",
    RequestOutcome.CUT_OFF: "The collector on {host} ended meanwhile: see whether the request was carried out.",
    RequestOutcome.HELD: "A guard refused when {host} asked for the request.",
    RequestOutcome.NOT_FETCHED: "{host} did not ask for work before the request's end.",
    RequestOutcome.NOT_ANSWERED: "{host} fetched the request and reported nothing: see the log of its collector.",
}


RESULT_TEXTS: Final[Mapping[SelfTestResult, str]] = {
    SelfTestResult.RUNNING: "It runs.",
    SelfTestResult.PASSED: "It passed.",
    SelfTestResult.ABORTED: "A command of the host ended it.",
    SelfTestResult.INTERRUPTED: "A reset ended it.",
    SelfTestResult.NOT_COMPLETED: "An error kept it from its end.",
    SelfTestResult.FAILED: "It failed.",
    SelfTestResult.FAILED_ELECTRICAL: "It failed: the electronics.",
    SelfTestResult.FAILED_SERVO: "It failed: the servo or a seek.",
    SelfTestResult.FAILED_READ: "It failed: a block could not be read.",
    SelfTestResult.FAILED_HANDLING: "It failed: the drive suspects damage from handling.",
    SelfTestResult.UNKNOWN: "The drive reports a result that no standard defines.",
}


def describe_request_refusal(refusal: RequestRefusal, verb: DiskVerb, host: HostName) -> str:
    """Return a refusal as a sentence for the person who asks."""
    never = refusal.since is None
    asked = (
        "never asked for work" if never else f"not asked for work since {refusal.since:%Y-%m-%d %H:%M} UTC"
    )
    return REFUSAL_TEXTS[refusal.kind].format(
        host=host,
        asked=asked,
        what=PERMISSION_TEXTS[verb.permission],
        word=verb.permission.value,
        drain=refusal.drain,
        count=refusal.count,
        device=refusal.device,
    )


def describe_request(one: StoredRequest) -> str:
    """Return the state or the end of a request as a sentence, with the words of the program that was run."""
    verb, host = one.request.verb, one.request.host
    if one.outcome is None:
        if one.sent_at is None:
            return f"It waits for {host}, which asks for work three times a minute."
        return f"{host} has fetched it."
    outcome, detail = one.outcome, one.detail
    told = OUTCOME_TEXTS[outcome].format(
        host=host, what=PERMISSION_TEXTS[verb.permission], word=verb.permission.value
    )
    return f"{told} It said: {detail}" if detail else told
