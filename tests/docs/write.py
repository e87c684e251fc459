"""Writes into the reference and the shipped card what the code says: `.venv/bin/python -m tests.docs.write`."""

from __future__ import annotations

from predrain.actions.core.state_machine import reference
from predrain.models.bundle import DEFAULT
from tests.docs.pages import DOCS
from tests.docs.references import BLOCKS
from tests.docs.shipped_card import expected_card, replace_card
from tests.docs.written import rewritten


def main() -> None:
    """Rewrite every page of the reference, and the card of the bundle that ships."""
    (DOCS / "reference" / "states.md").write_text(reference())
    for page in sorted((DOCS / "reference").glob("*.md")):
        page.write_text(rewritten(page, BLOCKS))
    replace_card(DEFAULT, expected_card(DEFAULT))


if __name__ == "__main__":
    main()
