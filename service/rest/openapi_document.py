"""The OpenAPI document: the routes' own descriptions, and the answers that every request may get."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fastapi import FastAPI

from predrain.service.rest.http_caching import UNCHANGED
from predrain.service.rest.problem_answers import ProblemBody, declare_problem_responses

Json = dict[str, Any]
ANYWHERE: tuple[int, ...] = (400, 429, 503)
"""Statuses of every route: a foreign Host header; too many requests; a store that does not answer."""
OF_BODIES = (408, 413, 415, 422)
"""Statuses of routes with a body: the body is too slow, too large, compressed, or invalid."""
SECRETS = frozenset({"session", "enrolment"})
"""Tags of routes whose secret is in the body or a cookie."""
IF_NONE_MATCH: Json = {
    "name": "If-None-Match",
    "in": "header",
    "required": False,
    "schema": {"type": "string"},
    "description": "The ETag of an answer that the client already has.",
}


def install_openapi_schema(app: FastAPI) -> None:
    """Let `app` answer with the whole document, which is built once."""
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
            for method, operation in _iterate_operations(document):
                _complete_operation(method, operation)
            app.openapi_schema = document
        return app.openapi_schema

    app.openapi = described  # type: ignore[method-assign]


def _complete_operation(method: str, operation: Json) -> None:
    """Add to an operation the answers and parameters that its route does not declare."""
    answers: Json = operation["responses"]
    named = {int(status) for status in answers if status.isdigit()}
    wanted = set[int](ANYWHERE)
    if "requestBody" in operation:
        wanted.update(OF_BODIES)
    if operation.get("parameters"):
        wanted.add(422)
    if 401 in named and SECRETS.isdisjoint(operation["tags"]):
        # A request from this machine that only reads needs no token; such routes require no scope but `read`.
        looks = method == "get" and 403 not in named
        operation["security"] = [{"token": []}, {}] if looks else [{"token": []}]
        wanted.add(403)
    if UNCHANGED in named:
        operation.setdefault("parameters", []).append(IF_NONE_MATCH)
    for status, told in declare_problem_responses(*sorted(wanted)).items():
        # FastAPI's own 422 has another shape than ours.
        if status not in named or status == 422:
            answers[str(status)] = told
    for told in answers.values():
        for shape in told.get("content", {}).values():
            # `itemSchema` of a stream belongs to OpenAPI 3.2, and this is 3.1.
            if shape.pop("itemSchema", None):
                shape["schema"] = {"type": "string"}
    operation["responses"] = dict(sorted(answers.items()))


def _iterate_operations(document: Json) -> Iterator[tuple[str, Json]]:
    for path in document["paths"].values():
        yield from path.items()
