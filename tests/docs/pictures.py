"""The pictures that are drawn from the code, by the name of their file under `docs/pictures/`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tests.docs.package_map import draw_package_map
from tests.docs.pages import DOCS
from tests.docs.reading_map import draw_reading_map

FOLDER = DOCS / "pictures"
PICTURES: Mapping[str, Callable[[], str]] = {
    "packages.svg": draw_package_map,
    "reading.svg": draw_reading_map,
}


def write_pictures() -> None:
    """Draw every picture into its file."""
    FOLDER.mkdir(exist_ok=True)
    for name, draw in PICTURES.items():
        (FOLDER / name).write_text(draw())
