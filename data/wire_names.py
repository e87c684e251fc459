"""The name that a field of a dataclass has in JSON, where it differs from the name in Python."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_KEY: Final = "wire"


def name_on_wire(name: str) -> Mapping[str, str]:
    """Return the metadata of a field whose JSON keeps a name that the code no longer uses: `field(metadata=...)`."""
    return {_KEY: name}


def find_wire_name(name: str, metadata: Mapping[str, str]) -> str:
    """Return the JSON name of the field `name`."""
    return metadata.get(_KEY, name)
