"""`predrain ceph adopt`: texts in the cluster that carry no good signature, listed, and signed by a person's word."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from predrain.service.cli.audited_commands import record_done
from predrain.service.cli.cluster_connection import ClusterAddress, make_cluster_channel
from predrain.service.cli.shared_options import AsJson, escape_to_one_line, print_json

if TYPE_CHECKING:
    from collections.abc import Iterable

    from predrain.actions.cluster.signed_keys import UnverifiedText

HERE = ClusterAddress()
MOST_SHOWN = 20
"""Settings of one drain, and lines of another text."""


def adopt_texts_command(
    *,
    list_id: Annotated[
        str,
        Parameter(help="The list meant, as this command prints it; refused where it is another one by now."),
    ] = "",
    reach: ClusterAddress = HERE,
    as_json: AsJson = False,
) -> int:
    """List what predrain keeps in the cluster without a good signature; with --list-id sign exactly that list.

    No text is acted on before it is signed: after an upgrade from 0.1.0, after the key was lost with the state
    directory, or when another person or program wrote below predrain/. Requests are never signed. Exits
    with 3 while texts remain that are not signed.

    Example: predrain ceph adopt
    """
    from predrain.actions.cluster.cluster_port import ClusterUnreachable
    from predrain.actions.cluster.config_key_store import ConfigKeys
    from predrain.actions.cluster.signed_keys import SignedKeys, compute_digest
    from predrain.service.cli.cluster_commands import NoClusterAnswer
    from predrain.service.config.state_directory import StateDir
    from predrain.service.storage.signing_key import SigningKeyUnusable, find_signing_key

    settings = reach.settings()
    key = find_signing_key(settings.ceph, StateDir(settings.service.state))
    if key is None:
        raise SigningKeyUnusable(
            f"there is no signing key in {settings.service.state}; start predrain there once, or say --state or "
            "--signing-key"
        )
    channel = make_cluster_channel(reach)
    try:
        keys = SignedKeys(ConfigKeys(channel), key)
        signed = keys.adopt(list_id) if list_id else ()
        if signed:
            record_done(settings, "ceph adopt", {"signed": list(signed)})
        left = keys.find_unverified()
    except ClusterUnreachable as silent:
        raise NoClusterAnswer(f"The cluster does not answer: {silent}") from silent
    finally:
        channel.close()
    digest = compute_digest(one for one in left if one.is_adoptable)
    if as_json:
        rows = [
            {"key": f"predrain/{one.name}", "fault": one.fault.value, **_describe_unverified_text(one)}
            for one in left
        ]
        print_json(
            {
                "signed": list(signed),
                "list_id": digest if any(one.is_adoptable for one in left) else None,
                "texts": rows,
            }
        )
    else:
        _print_unverified_texts(signed, left, digest)
    return 3 if left else 0


def _describe_unverified_text(one: UnverifiedText) -> dict[str, Any]:
    """Return the contents of the text, and what predrain would do with it once it is signed."""
    from predrain.actions.controller.replication import CopyUnreadable, decode_drain_copy

    if not one.is_adoptable:
        return {"says": one.text[:200], "then": "never signed: the caller asks again"}
    if not one.name.startswith("drain/"):
        then = {
            "ended": "these drains are over, even if a store says otherwise",
            "steps": "which controller led last, and so whether the cluster's copy of a drain or the store's counts",
            "lives": "these life expectancies count as predrain's own: renewed, and withdrawn when they are over",
        }
        return {"says": one.text, "then": then.get(one.name, "it is read as predrain's own")}
    try:
        drain = decode_drain_copy(one.name, one.text)
    except CopyUnreadable as error:
        return {"says": str(error), "then": "everything waits; remove it"}
    plan = drain.plan
    return {
        "drain": drain.id,
        "osds": list(drain.osds),
        "state": drain.state.value,
        "revision": drain.revision,
        "intent": drain.intent.value,
        "asked_by": drain.asked_by,
        "reason": drain.reason,
        "pgs": None if plan is None else len(plan.moves),
        "bytes": None if plan is None else plan.bytes,
        "set": {str(key): value for key, value in drain.ours.items()},
        "puts_back": {str(key): value for key, value in drain.saved.items()},
        "then": "it goes on where this says, and a cancel puts back what this says",
    }


def _print_unverified_texts(signed: tuple[str, ...], left: Iterable[UnverifiedText], digest: str) -> None:
    left = tuple(left)
    for name in signed:
        print(f"signed predrain/{escape_to_one_line(name)}")
    if not left:
        print("all that predrain keeps in the cluster is signed")
        return
    for one in left:
        print(f"predrain/{escape_to_one_line(one.name)}: {one.fault.value}")
        for what, said in _describe_unverified_text(one).items():
            if isinstance(said, dict):
                shown = [f"{key} = {value}" for key, value in said.items()]
            else:
                shown = str(said).splitlines()
            more = [f"and {len(shown) - MOST_SHOWN} more"] if len(shown) > MOST_SHOWN else []
            for row in [*shown[:MOST_SHOWN], *more]:
                print(f"    {what}: {escape_to_one_line(row)}")
    if any(one.is_adoptable for one in left):
        print(f"to sign exactly this list: predrain ceph adopt --list-id {digest}")
    print(
        "predrain: nothing of this is acted on; remove what is nobody's: ceph config-key rm KEY",
        file=sys.stderr,
    )
