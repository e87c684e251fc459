"""`predrain config`: check the settings, list them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from predrain.service.cli.shared_options import AsJson, make_console, print_json

if TYPE_CHECKING:
    from predrain.service.config.settings import Settings

SettingsFile = Annotated[
    Path | None, Parameter(help="Settings file; /etc/predrain/predrain.toml when not given, if it is there.")
]


def check_settings_command(*, config: SettingsFile = None) -> int:
    """Read the settings file and the variables; say what is wrong and exit with 1.

    Example: predrain config check --config predrain.toml
    """
    from predrain.service.config.settings import load_settings
    from predrain.service.http.server import nothing_in_the_clear

    service = load_settings(config).service
    nothing_in_the_clear(service)
    print(f"settings are good: {service.host}:{service.port}, state in {service.state}")
    return 0


def show_settings_command(*, config: SettingsFile = None, as_json: AsJson = False) -> int:
    """Every setting with its value now, its default, and what it means.

    Example: predrain config show
    """
    from predrain.service.config.settings import list_setting_keys, load_settings

    settings = load_settings(config)
    rows = [
        {"key": f"{written}.{key}", "value": value, "default": default, "means": told}
        for table, key, default, told in list_setting_keys()
        for written, value in _list_values(settings, table, key, default)
    ]
    if as_json:
        print_json(
            [
                {**row, "value": _to_json_value(row["value"]), "default": _to_json_value(row["default"])}
                for row in rows
            ]
        )
        return 0
    from rich.table import Column, Table
    from rich.text import Text

    folded = Column("value", overflow="fold"), Column("meaning", overflow="fold")
    table = Table(Column("key", no_wrap=True), *folded, box=None)
    for row in rows:
        changed = row["value"] != row["default"] and row["default"] is not None
        table.add_row(str(row["key"]), Text(str(row["value"]), "bold" if changed else ""), str(row["means"]))
    make_console().print(table)
    return 0


def _list_values(settings: Settings, table: str, key: str, default: object) -> list[tuple[str, object]]:
    """Return the value of a key in each table that has it, with the table's name; the default where no person named a
    table.
    """
    kind, _, named = table.partition(".")
    found = getattr(settings, kind)
    if named and found:
        return [(f"{kind}.{name}", getattr(one, key)) for name, one in found.items()]
    if named:
        return [(table, default)]
    return [(table, found.get(key, default) if kind == "collector" else getattr(found, key))]


def _to_json_value(value: object) -> object:
    if isinstance(value, tuple):
        return [_to_json_value(one) for one in value]
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
