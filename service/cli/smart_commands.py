"""`predrain smart parse`: smartctl's output in, one normalised JSON object a line out."""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from predrain.data.reading import Attribute
from predrain.data.smart import LARGEST_DOCUMENT, SmartDocument, Undecodable, decode_smartctl_output


def parse_smart_command(*files: Annotated[Path, Parameter(allow_leading_hyphen=True)]) -> int:
    """Decode what `smartctl -x` printed, with `--json` or as text, one JSON object a line, in the order given.

    A file that tells nothing gives `"ok": false` with the reason; the exit code is then 3.

    Example: predrain smart parse sda.json  # after: smartctl -x --json /dev/sda > sda.json

    Parameters
    ----------
    files
        Files with the output of one smartctl run each; `-` is standard input.
    """
    if not files:
        print("predrain: name at least one FILE, or - for standard input (see --help)", file=sys.stderr)
        return 2
    for file in files:
        if str(file).startswith("-") and str(file) != "-":
            print(f"predrain: unknown option {file}; a FILE of that name is ./{file}", file=sys.stderr)
            return 2
    refused = 0
    for file in files:
        line = _decode_smart_file(file)
        refused += line["ok"] is False
        print(json.dumps(line, allow_nan=False))
    return 3 if refused else 0


def _decode_smart_file(file: Path) -> dict[str, object]:
    try:
        document = _read_smart_file(file)
    except OSError as error:
        reason = f"cannot be read ({error.strerror or error}), check its name and permissions"
        return {"file": str(file), "ok": False, "reason": reason}
    try:
        decoded = decode_smartctl_output(document)
    except Undecodable as refusal:
        return {"file": str(file), "ok": False, "reason": str(refusal)}
    return {"file": str(file), "ok": True} | _build_smart_fields(decoded)


def _read_smart_file(file: Path) -> bytes:
    """Return the file's content, at most one byte more than is allowed, so that an endless file does not fill the
    memory.
    """
    if str(file) == "-":
        return sys.stdin.buffer.read(LARGEST_DOCUMENT + 1)
    with file.open("rb") as opened:
        return opened.read(LARGEST_DOCUMENT + 1)


def _build_smart_fields(decoded: SmartDocument) -> dict[str, object]:
    smart, who = decoded.smart, decoded.smart.identity
    return {
        "device_id": decoded.device_id,
        "vendor": who.vendor,
        "model": who.model,
        "serial": who.serial,
        "wwn": who.wwn,
        "firmware": who.firmware,
        "capacity_bytes": who.capacity_bytes,
        "protocol": smart.protocol.value,
        "rotation_rpm": who.rotation_rpm,
        "taken_at": decoded.taken_at.strftime("%Y-%m-%dT%H:%M:%SZ") if decoded.taken_at else None,
        "passed": smart.passed,
        "read_failed": decoded.read_failed,
        "exit_bits": None if smart.exit_bits is None else list(smart.exit_bits),
        "power_on_hours": smart.power_on_hours,
        "temperature_c": smart.temperature_c,
        "counters": dataclasses.asdict(smart.counters),
        "attributes": {
            str(number): _build_attribute_row(row) for number, row in sorted(smart.attributes.items())
        },
    }


def _build_attribute_row(row: Attribute) -> dict[str, int | None]:
    fields = {"raw": row.raw, "value": row.value, "worst": row.worst, "threshold": row.threshold}
    return fields if row.raw_packed is None else fields | {"raw_packed": row.raw_packed}
