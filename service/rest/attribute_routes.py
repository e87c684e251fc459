"""`GET devices/{id}/attributes`: what a drive reports, what it means, how it went, and how rare it is in service."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from statistics import median
from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from predrain.data.ids import DeviceId
from predrain.data.reading import Reading, Smart
from predrain.service.fleet.fleet import FleetSnapshot
from predrain.service.fleet.smart_meanings import SOURCE_TEXTS, SmartMeaning, WorseSide
from predrain.service.fleet.value_rarity import (
    ValueKey,
    ValueRarity,
    compare_values,
    list_value_meanings,
    read_raw_value,
)
from predrain.service.rest import http_caching
from predrain.service.rest.authentication import Reader
from predrain.service.rest.dependencies import TheApplication
from predrain.service.rest.device_routes import Id, known_device
from predrain.service.rest.operating_limit import find_operating_limit
from predrain.service.rest.shared_bodies import ResponseBody, smart_of

router = APIRouter(tags=["devices"])
POINTS = 120
"""The most points of a small chart."""


class RarityBody(ResponseBody):
    """The position of a value among `compared` other drives in service: of the same model, or of all that report it.

    `better`: drives with a better value; `equal`: with the same; the others are worse.
    """

    compared: int
    better: int
    equal: int
    same_model: bool


class AttributeBody(ResponseBody):
    """One value that the drive reports. `id`, `value` (normalised), `worst` and `threshold`: of an ATA attribute.

    `worse`: the side on which a drive is worse than its peers. `shows_fault`: a rare value is a sign of a fault.
    `below_threshold`: the normalised value has reached the maker's threshold; `was_below`: it once had.
    `points`: (milliseconds since 1970, the highest raw value until the next point). `rarity`: null if no other drive
    reports the value in a form that can be compared.
    """

    name: str
    id: int | None
    title: str
    meaning: str
    meaning_source: str
    unit: str
    raw: int
    value: int | None
    worst: int | None
    threshold: int | None
    below_threshold: bool
    was_below: bool
    worse: WorseSide
    shows_fault: bool
    rarity: RarityBody | None
    points: list[tuple[int, int | None]]


class TemperatureBody(ResponseBody):
    """The drive's temperature in °C beside the fleet's. `limit_c`: the drive's own limit, where it states one.

    `median_c` and `hottest_c`: of the `compared` other drives in service; `hotter`: how many of them are hotter.
    """

    now_c: int
    limit_c: int | None
    compared: int
    hotter: int
    median_c: float | None
    hottest_c: int | None


class AttributesBody(ResponseBody):
    """The values of the drive's newest readable report, and how each value went over the last `days`.

    `taken_at`: of that report; null, and `values` empty, if there is none.
    """

    device: str
    taken_at: datetime | None
    days: int
    model: str | None
    temperature: TemperatureBody | None
    values: list[AttributeBody]


@router.get(
    "/devices/{id:path}/attributes",
    response_model=AttributesBody,
    responses=http_caching.declare_polled_responses(401, 404, 422),
)
def list_attributes(
    request: Request,
    application: TheApplication,
    _: Reader,
    id: Id,  # noqa: A002
    days: Annotated[int, Query(ge=1, le=3650)] = 60,
) -> Response:
    """Every value of a drive's newest readable report, with its history and its rarity among the drives in service."""
    snapshot, name = application.get_snapshot(), DeviceId(id)
    known_device(snapshot, name)
    past = application.store.readings(name, application.clock.now() - timedelta(days=days))
    newest = [reading for reading in (*past, snapshot.readings.get(name)) if smart_of(reading) is not None]
    body = _build_attributes_body(snapshot, name, newest[-1] if newest else None, past, days)
    return http_caching.build_etag_response(request, body)


def _build_attributes_body(
    snapshot: FleetSnapshot, name: DeviceId, newest: Reading | None, past: Sequence[Reading], days: int
) -> AttributesBody:
    seen = smart_of(newest)
    if newest is None or seen is None:
        return AttributesBody(device=name, taken_at=None, days=days, model=None, temperature=None, values=[])
    drives = _list_living_readings(snapshot)
    rarities = compare_values(name, seen, drives)
    return AttributesBody(
        device=name,
        taken_at=newest.taken_at,
        days=days,
        model=seen.identity.model,
        temperature=_build_temperature_body(name, seen, drives),
        values=[
            _build_attribute_body(seen, key, meaning, rarities, past)
            for key, meaning in list_value_meanings(seen).items()
        ],
    )


def _list_living_readings(snapshot: FleetSnapshot) -> list[Reading]:
    return [reading for device, reading in snapshot.readings.items() if snapshot.is_living(device)]


def _build_attribute_body(
    seen: Smart,
    key: ValueKey,
    meaning: SmartMeaning,
    rarities: Mapping[ValueKey, ValueRarity],
    past: Sequence[Reading],
) -> AttributeBody:
    attribute = seen.attributes.get(key) if isinstance(key, int) else None
    name = attribute.name if attribute is not None else str(key)
    value, threshold = (attribute.value, attribute.threshold) if attribute is not None else (None, None)
    worst = attribute.worst if attribute is not None else None
    rarity = rarities.get(key)
    return AttributeBody(
        name=name,
        id=key if isinstance(key, int) else None,
        title=meaning.title or name.replace("_", " "),
        meaning=meaning.sentence,
        meaning_source=SOURCE_TEXTS[meaning.source],
        unit=meaning.unit,
        raw=read_raw_value(seen, key) or 0,
        value=value,
        worst=worst,
        threshold=threshold,
        below_threshold=_has_reached(value, threshold),
        was_below=_has_reached(worst, threshold),
        worse=meaning.side,
        shows_fault=meaning.shows_fault,
        rarity=RarityBody(
            compared=rarity.compared, better=rarity.better, equal=rarity.equal, same_model=rarity.same_model
        )
        if rarity is not None
        else None,
        points=thin_points([(one.taken_at, _raw_at(one, key)) for one in past]),
    )


def _has_reached(value: int | None, threshold: int | None) -> bool:
    """Return whether a normalised value is at its threshold or below it. A threshold of 0 never fails."""
    return value is not None and threshold is not None and threshold > 0 and value <= threshold


def _raw_at(reading: Reading, key: ValueKey) -> int | None:
    seen = smart_of(reading)
    return read_raw_value(seen, key) if seen is not None else None


def thin_points(
    points: Sequence[tuple[datetime, int | None]], most: int = POINTS
) -> list[tuple[int, int | None]]:
    """Return at most `most` points, oldest first, each with the highest value of its share of the time.

    points: oldest first; None: a reading without the value. Times are in milliseconds since 1970.
    """
    if not points:
        return []
    first, last = points[0][0], points[-1][0]
    width = max((last - first).total_seconds() / most, 1e-9)
    shares: dict[int, tuple[datetime, int | None]] = {}
    for at, value in points:
        share = min(most - 1, int((at - first).total_seconds() / width))
        held = shares.get(share)
        if held is None or held[1] is None or (value is not None and value > held[1]):
            shares[share] = (held[0] if held is not None else at, value)
    return [(round(at.astimezone(UTC).timestamp() * 1000), value) for at, value in shares.values()]


def _build_temperature_body(
    device: DeviceId, seen: Smart, drives: Sequence[Reading]
) -> TemperatureBody | None:
    if seen.temperature_c is None:
        return None
    others = [
        other.temperature_c
        for reading in drives
        if reading.device != device
        and (other := smart_of(reading)) is not None
        and other.temperature_c is not None
    ]
    return TemperatureBody(
        now_c=seen.temperature_c,
        limit_c=limit if (limit := find_operating_limit(seen)) is not None else seen.temperature_critical_c,
        compared=len(others),
        hotter=sum(one > seen.temperature_c for one in others),
        median_c=median(others) if others else None,
        hottest_c=max(others) if others else None,
    )
