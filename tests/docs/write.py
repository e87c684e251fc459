"""Writes what the code says into reference, pictures and shipped card: `.venv/bin/python -m tests.docs.write`."""

from __future__ import annotations

from predrain.actions.core.state_machine import build_state_reference
from predrain.models.forecast.bundle import DEFAULT
from tests.docs.pages import DOCS
from tests.docs.pictures import write_pictures
from tests.docs.references import BLOCKS
from tests.docs.shipped_card import expected_card, replace_card
from tests.docs.written import rewritten


def main() -> None:
    """Rewrite every page of the reference, every drawn picture, and the card of the bundle that ships."""
    (DOCS / "reference" / "states.md").write_text(build_state_reference())
    for page in sorted((DOCS / "reference").glob("*.md")):
        page.write_text(rewritten(page, BLOCKS))
    write_pictures()
    replace_card(DEFAULT, expected_card(DEFAULT))


if __name__ == "__main__":
    main()
