"""Writes into the reference what the code says: `.venv/bin/python -m tests.docs.write`."""

from __future__ import annotations

from actions.states import reference
from tests.docs.pages import DOCS
from tests.docs.references import BLOCKS
from tests.docs.written import rewritten


def main() -> None:
    """Rewrite every page of the reference."""
    (DOCS / "reference" / "states.md").write_text(reference())
    for page in sorted((DOCS / "reference").glob("*.md")):
        page.write_text(rewritten(page, BLOCKS))


if __name__ == "__main__":
    main()
