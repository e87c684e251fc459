"""The OpenAPI document: what the routes say of themselves, and what every request may meet besides."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fastapi import FastAPI

from predrain.service.rest.caching import UNCHANGED
from predrain.service.rest.problems import ProblemBody, declared

Json = dict[str, Any]
ANYWHERE: tuple[int, ...] = (400, 429, 503)
"""A foreign Host header; too many requests; a store that does not answer."""
OF_BODIES = (408, 413, 415, 422)
"""Too slow, too large, packed, or not what was asked for."""
SECRETS = frozenset({"session", "enrolment"})
"""Tags of routes whose secret is in the body or a cookie."""
IF_NONE_MATCH: Json = {
    "name": "If-None-Match",
    "in": "header",
    "required": False,
    "schema": {"type": "string"},
    "description": "ETag of an answer that is there already.",
}


def describe(app: FastAPI) -> None:
    """Let `app` answer with the whole document, made once."""
    plain = app.openapi

    def described() -> Json:
        if app.openapi_schema is None:
            document = plain()
            parts = document.setdefault("components", {})
            shapes = parts.setdefault("schemas", {})
            shapes["ProblemBody"] = ProblemBody.model_json_schema()
            for unused in ("HTTPValidationError", "ValidationError"):
                shapes.pop(unused, None)
            parts["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
            for method, operation in _operations(document):
                _complete(method, operation)
            app.openapi_schema = document
        return app.openapi_schema

    app.openapi = described  # type: ignore[method-assign]


def _complete(method: str, operation: Json) -> None:
    """Add what its own route does not say of an operation."""
    answers: Json = operation["responses"]
    named = {int(status) for status in answers if status.isdigit()}
    wanted = set[int](ANYWHERE)
    if "requestBody" in operation:
        wanted.update(OF_BODIES)
    if operation.get("parameters"):
        wanted.add(422)
    if 401 in named and SECRETS.isdisjoint(operation["tags"]):
        # Who only looks needs no token on the machine itself; no scope but `read` is asked for then.
        looks = method == "get" and 403 not in named
        operation["security"] = [{"token": []}, {}] if looks else [{"token": []}]
        wanted.add(403)
    if UNCHANGED in named:
        operation.setdefault("parameters", []).append(IF_NONE_MATCH)
    for status, told in declared(*sorted(wanted)).items():
        # FastAPI's own 422 is not the shape that we answer with.
        if status not in named or status == 422:
            answers[str(status)] = told
    for told in answers.values():
        for shape in told.get("content", {}).values():
            # A stream's items are a word of OpenAPI 3.2, and this is 3.1.
            if shape.pop("itemSchema", None):
                shape["schema"] = {"type": "string"}
    operation["responses"] = dict(sorted(answers.items()))


def _operations(document: Json) -> Iterator[tuple[str, Json]]:
    for path in document["paths"].values():
        yield from path.items()
