"""REST keeps to its own description: requests made from the OpenAPI document, good ones and bad ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import negative_data_rejection, positive_data_acceptance
from schemathesis.core.failures import Failure, FailureGroup

from predrain.service.access.tokens import load_admin_tokens
from predrain.service.rest.rest_app import create_app
from tests.service.conftest import Place, week_of
from tests.service.test_drains import World, made
from tests.service.test_worker import work

EXAMPLES = 5
"""Requests made of each operation, of each kind."""


@pytest.fixture
def world(place: Place) -> Iterator[World]:
    """A cluster with a bad disk, and nobody who is asked to wait."""
    access = place.settings.access.model_copy(
        update={"requests_per_second": 1e6, "address_requests_per_second": 1e6}
    )
    place.settings = place.settings.model_copy(update={"access": access})
    for world in made(place):
        world.application.ingest(week_of("A", world.application.clock.now(), pending=400))
        work(world.application)
        world.tick(3)
        yield world


@pytest.fixture
def api(world: World, place: Place) -> Any:
    """The app, by its document."""
    app = create_app(world.application, load_admin_tokens(place.state.token))
    found = schemathesis.openapi.from_asgi("/api/v1/openapi.json", app, headers={"Host": "127.0.0.1"})
    return found.exclude(path="/api/v1/events")  # it never ends


@pytest.mark.slow
def test_no_answer_is_a_5xx_or_one_that_the_document_does_not_allow(api: Any, place: Place) -> None:
    headers = {"Authorization": f"Bearer {place.state.token.read_text().strip()}", "Host": "127.0.0.1"}
    wrong = []
    for found in api.get_all_operations():
        operation = found.ok()
        for mode in GenerationMode:
            try:
                _try(operation.as_strategy(generation_mode=mode), headers)
            except Unsatisfiable:
                continue  # nothing that could be wrong with it
            except (Failure, FailureGroup) as failure:
                wrong.append(f"{operation.label}, {mode.value}: {failure!r}\n{failure}")
    assert not wrong, "\n\n".join(wrong)


def _try(requests: Any, headers: dict[str, str]) -> None:
    @given(requests)
    @settings(
        max_examples=EXAMPLES, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck),
        phases=(Phase.explicit, Phase.generate), database=None,
    )  # fmt: skip
    def holds(case: schemathesis.Case) -> None:
        # A value of the allowed form need not exist (cursors, targets), and may be refused. The service refuses each
        # item of an array by itself, so an array with a wrong item may be accepted.
        excluded = [positive_data_acceptance]
        if case.path in ("/api/v1/readings", "/api/v1/latency"):
            excluded.append(negative_data_rejection)
        case.call_and_validate(headers=headers, excluded_checks=excluded)

    holds()


@pytest.mark.slow
def test_the_document_is_valid_openapi_3_1(api: Any) -> None:
    assert api.raw_schema["openapi"].startswith("3.1")
    api.validate()
