"""A plan on the terminal: what it does, what bounds it, who receives what, and the map's difference line by line."""

from __future__ import annotations

from rich.table import Table

from predrain.actions.core.messages import describe_estimate, describe_hours
from predrain.service.cli.shared_options import format_binary_size, format_whole_percent, make_console
from predrain.service.terminal.service_connection import Json

RECEIVERS = 8
"""So many of the OSDs that receive most are listed; `--json` has all."""


def print_plan(target: str, made: Json, *, lines: bool = False) -> None:
    """made: as `GET plan` answers, or the shorter one inside a drain. lines: every PG's way, too."""
    eta = (
        "unknown"
        if made["eta_hours"] is None
        else f"{describe_estimate(made['eta_hours'])} ({made['bottleneck']})"
    )
    print(f"{target}: {made['mechanic']}, since {made['reason']}")
    print(f"moves {format_binary_size(made['bytes'])} in {made['pgs']} PGs; takes {eta}")
    if made["fullest_osd"] is not None:
        print(
            f"fullest target after it: osd.{made['fullest_osd']}, {format_whole_percent(made['fullest_after'])} full"
        )
    if made["cluster_after"] is not None:
        print(f"cluster after it: {format_whole_percent(made['cluster_after'])} full")
    for rack in made["targets"]:
        name, size = rack["rack"] or "no rack", format_binary_size(rack["bytes"])
        print(f"  {name}: {size} on {rack['osds']} OSDs of {rack['hosts']} hosts")
    for bound in made.get("bounds", [])[1:4]:
        print(f"  next bound: {bound['name']}, {describe_hours(bound['hours'])}")
    for other in made.get("rejected", []):
        print(f"  not taken: {other}")
    if receivers := made.get("receivers"):
        _print_receivers(receivers)
    for line in made.get("diff", []) if lines else []:
        print(line["text"])
    for refusal in made["refusals"]:
        print(f"  refused: {refusal}")


def _print_receivers(receivers: list[Json]) -> None:
    table = Table("receives", "PGs", "size", "full before", "full after", box=None)
    for one in receivers[:RECEIVERS]:
        table.add_row(
            f"osd.{one['osd']}",
            str(one["pgs"]),
            format_binary_size(one["bytes"]),
            format_whole_percent(one["before"]),
            format_whole_percent(one["after"]),
        )
    make_console().print(table)
    if len(receivers) > RECEIVERS:
        print(f"  and {len(receivers) - RECEIVERS} more")
