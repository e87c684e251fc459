"""`predrain ceph auth`: the line that makes a cephx user with the least rights that predrain can work with."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Annotated

from cyclopts import Parameter

from predrain.service.cli.shared_options import THIS_MACHINE, AsJson, StateAddress, print_json


def show_cephx_user_command(
    *,
    operator: Annotated[
        bool,
        Parameter(
            negative="",
            help="A user for a person who carries out what `drain hand-over` prints: device light, orchestrator. "
            "The service does not use it.",
        ),
    ] = False,
    read_only: Annotated[
        bool, Parameter(negative="", help="For a service whose commands the mgr module carries out.")
    ] = False,
    name: Annotated[str | None, Parameter(help="Cephx user; that of the settings when not given.")] = None,
    where: StateAddress = THIS_MACHINE,
    as_json: AsJson = False,
) -> int:
    """Print the commands that make predrain's cephx user, and what each of its rights is for. Asks no cluster.

    The output is a shell script of comments and commands, to be read and then run where an admin's key is.

    Example: predrain ceph auth | less; predrain ceph auth | sudo sh
    """
    from predrain.actions.controller.ceph_caps import CephUser, build_cephx_caps, list_required_rights

    user = CephUser.HANDS if operator else CephUser.READING if read_only else CephUser.SERVICE
    settings = where.settings().ceph
    who = name or (f"{settings.name}-operator" if operator else settings.name)
    granted, needed = (
        build_cephx_caps(user, settings.pool).by_service(),
        list_required_rights(user, settings.pool),
    )
    commands = [_build_auth_command(who, granted, f"/etc/ceph/{settings.cluster_name}.{who}.keyring")]
    if "osd" in granted:
        commands = [*_build_pool_commands(settings.pool), *commands]
    if as_json:
        listed = [{"service": right.service, "cap": right.cap, "why": right.why} for right in needed]
        print_json({"user": who, "caps": granted, "rights": listed, "commands": commands})
        return 0
    for right in needed:
        print(f"# {right.service}: {right.cap}\n#      {right.why}")
    print("# for a user that is there already: `ceph auth caps` with the same words")
    print("\n".join(commands))
    return 0


def _build_auth_command(who: str, granted: Mapping[str, str], keyring: str) -> str:
    words = [word for pair in granted.items() for word in pair]
    return shlex.join(["ceph", "auth", "get-or-create", who, *words, "-o", keyring])


def _build_pool_commands(pool: str) -> tuple[str, str]:
    create = ["ceph", "osd", "pool", "create", pool, "1"]
    return shlex.join(create), shlex.join(["ceph", "osd", "pool", "application", "enable", pool, "predrain"])
