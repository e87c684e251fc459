"""The committed OpenAPI document and the types of client and page are those that the pydantic models give."""

from __future__ import annotations

import json
import os
import re
from typing import Any

import pytest

from tests.docs.contract import (
    CLIENT_TYPES,
    COMMAND,
    OPENAPI,
    PAGE_COLUMNS,
    PAGE_TYPES,
    GeneratorMissing,
    render_client_types,
    render_openapi,
    render_page_columns,
    render_page_types,
)

STALE = f"run: {COMMAND}"


@pytest.fixture
def committed() -> dict[str, Any]:
    """The OpenAPI document of the repository."""
    parsed: dict[str, Any] = json.loads(OPENAPI.read_text())
    return parsed


@pytest.mark.slow
def test_the_committed_document_is_the_one_that_the_service_answers() -> None:
    assert OPENAPI.read_text() == render_openapi(), STALE


@pytest.mark.slow
def test_the_clients_types_are_generated_from_the_committed_document(committed: dict[str, Any]) -> None:
    assert CLIENT_TYPES.read_text() == render_client_types(committed), STALE


@pytest.mark.slow
def test_the_pages_types_are_generated_from_the_committed_document(committed: dict[str, Any]) -> None:
    try:
        generated = render_page_types(committed)
    except GeneratorMissing as error:
        pytest.fail(str(error)) if os.environ.get("CI") == "true" else pytest.skip(str(error))
    assert PAGE_TYPES.read_text() == generated, STALE


def test_the_page_has_the_columns_of_the_command_line() -> None:
    assert PAGE_COLUMNS.read_text() == render_page_columns(), STALE


def test_every_schema_is_called_by_the_class_that_describes_it(committed: dict[str, Any]) -> None:
    """FastAPI gives two classes of one name the paths of their modules, and one class with two forms a suffix."""
    names = committed["components"]["schemas"]
    assert [name for name in names if not re.fullmatch(r"[A-Z][A-Za-z0-9]*", name)] == []


def test_every_field_of_an_answer_is_always_there(committed: dict[str, Any]) -> None:
    """Check that no field is optional: an unknown value is null, so client and page need not handle absent fields."""
    answers = {
        name: schema
        for name, schema in committed["components"]["schemas"].items()
        if name.endswith(("Body", "Page")) and name != "ProblemBody"
    }
    optional = {
        name: sorted(schema["properties"].keys() - set(schema["required"]))
        for name, schema in answers.items()
    }
    assert {name: fields for name, fields in optional.items() if fields} == {}
