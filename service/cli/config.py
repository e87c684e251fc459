"""`predrain config`: check the settings, list them, make a token."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from service.cli.options import AsJson, print_json
from service.settings import keys, load
from service.tokens import new_token


def check(*, config: Path | None = None) -> int:
    """Read the settings file and the variables; say what is wrong and exit with 1.

    Example: predrain config check --config predrain.toml
    """
    service = load(config).service
    print(f"settings are good: {service.host}:{service.port}, state in {service.state}")
    return 0


def show(*, config: Path | None = None, as_json: AsJson = False) -> int:
    """Every setting with its value now, its default, and what it means.

    Example: predrain config show
    """
    settings = load(config)
    rows = [
        {
            "key": f"{table}.{key}",
            "value": getattr(getattr(settings, table), key),
            "default": default,
            "means": told,
        }
        for table, key, default, told in keys()
        if table != "tokens"
    ]
    if as_json:
        print_json(
            [{**row, "value": _plain(row["value"]), "default": _plain(row["default"])} for row in rows]
        )
        return 0
    from rich.console import Console
    from rich.table import Table

    table = Table("key", "value", "meaning", box=None)
    for row in rows:
        changed = row["value"] != row["default"] and row["default"] is not None
        table.add_row(
            str(row["key"]), f"[bold]{row['value']}[/]" if changed else str(row["value"]), str(row["means"])
        )
    Console().print(table)
    return 0


def token(
    *,
    name: Annotated[str, Parameter(help="Who will hold it.")],
    scope: Annotated[
        tuple[Literal["read", "ingest", "act", "admin"], ...], Parameter(help="What it may do.")
    ],
) -> int:
    """Print a new token once, and the lines for the settings file that let it in; only its hash is kept.

    Example: predrain config token --name collectors --scope ingest
    """
    made = new_token()
    scopes = ", ".join(f'"{one}"' for one in scope)
    print(f"token: {made}\n")
    print("Give it to its holder now, it is not shown again. Add this to the settings file and restart:\n")
    digest = hashlib.sha256(made.encode()).hexdigest()
    print(f'[[tokens]]\nname = "{name}"\nscopes = [{scopes}]\nsha256 = "{digest}"')
    return 0


def _plain(value: object) -> object:
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
