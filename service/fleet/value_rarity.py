"""Compare the values of a drive with those of the drives in service (decision 0069).

Each value is compared with that of the living drives of the same model. Where too few of them report it, all drives
that report it are compared. A drive is not compared with itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import TypeAlias

from predrain.data.ids import DeviceId
from predrain.data.reading import Counters, Logs, Reading, Smart
from predrain.service.fleet.smart_meanings import (
    UNKNOWN_MEANING,
    VALUE_MEANINGS,
    SmartMeaning,
    WorseSide,
    find_attribute_meaning,
)

LEAST_OF_MODEL = 20
"""The number of other drives of the model from which a comparison among the model alone says something: with it, the
rarest position is 5 %.
"""
ValueKey: TypeAlias = int | str
"""The id of an ATA attribute, or the name of another value of a reading."""
_COUNTERS = tuple(field.name for field in fields(Counters))
_LOGS = tuple(field.name for field in fields(Logs))


@dataclass(frozen=True, slots=True)
class ValueRarity:
    """The position of a value among `compared` other drives. Better and worse are meant by the side of its meaning."""

    compared: int
    better: int
    """Drives with a better value."""
    equal: int
    same_model: bool
    """True if only drives of the same model were compared."""

    @property
    def as_bad(self) -> int:
        """The number of other drives whose value is as bad or worse."""
        return self.compared - self.better


def list_value_meanings(seen: Smart) -> dict[ValueKey, SmartMeaning]:
    """Return the meaning of every value that a drive reports: attributes in order of their ids, then the others.

    Counters that an ATA drive's attributes hold already are left out, and so are its hours and its temperature if the
    raw value of an attribute of the same meaning is the same number.
    """
    found: dict[ValueKey, SmartMeaning] = {
        id_: find_attribute_meaning(id_, attribute.name) for id_, attribute in sorted(seen.attributes.items())
    }
    names = (*(() if seen.attributes else _COUNTERS), *_LOGS, "temperature_c", "power_on_hours")
    told = {(meaning.title, read_raw_value(seen, key)) for key, meaning in found.items()}
    for name in names:
        meaning, value = VALUE_MEANINGS[name], read_raw_value(seen, name)
        if value is not None and (meaning.title, value) not in told:
            found[name] = meaning
    return found


def read_raw_value(seen: Smart, key: ValueKey) -> int | None:
    """Return the raw value of an attribute, a counter, a log, the temperature or the hours; None if not reported."""
    if isinstance(key, int):
        attribute = seen.attributes.get(key)
        return None if attribute is None else attribute.raw
    for holder in (seen, seen.counters, seen.logs):
        if holder is not None and hasattr(holder, key):
            value: int | None = getattr(holder, key)
            return value
    return None


def compare_values(
    device: DeviceId, seen: Smart, drives: Iterable[Reading], least: int = LEAST_OF_MODEL
) -> Mapping[ValueKey, ValueRarity]:
    """Compare every value of a drive with those of other drives; a value that no other drive reports is left out.

    drives: the newest readings of the living drives, the drive itself among them or not. least: the number of drives
    of the model from which only those are compared.
    """
    meanings = list_value_meanings(seen)
    own = {
        key: value for key, one in meanings.items() if (value := _compared_value(seen, key, one)) is not None
    }
    counts = {
        key: [[0, 0, 0], [0, 0, 0]] for key in own
    }  # [of the model, of the others]: compared, better, equal
    for reading in drives:
        if reading.device == device or not isinstance(reading.seen, Smart):
            continue
        other = reading.seen
        group = 0 if other.identity.model is not None and other.identity.model == seen.identity.model else 1
        for key, value in own.items():
            theirs = _compared_value(other, key, meanings[key])
            if theirs is None or (group == 1 and not _has_same_meaning(other, key, meanings[key])):
                continue
            count = counts[key][group]
            count[0] += 1
            count[1] += theirs < value
            count[2] += theirs == value
    return {
        key: found
        for key, (model, others) in counts.items()
        if (found := _build_rarity(model, others, least))
    }


def _build_rarity(model: list[int], others: list[int], least: int) -> ValueRarity | None:
    if model[0] >= least:
        return ValueRarity(model[0], model[1], model[2], same_model=True)
    compared, better, equal = (mine + theirs for mine, theirs in zip(model, others, strict=True))
    return ValueRarity(compared, better, equal, same_model=False) if compared else None


def _compared_value(seen: Smart, key: ValueKey, meaning: SmartMeaning) -> int | None:
    """Return the value by which drives are compared, with its sign turned where less is worse: the greater is worse."""
    if meaning.side is WorseSide.NORMALISED:
        attribute = seen.attributes.get(key) if isinstance(key, int) else None
        return None if attribute is None or attribute.value is None else -attribute.value
    raw = read_raw_value(seen, key)
    return None if raw is None else -raw if meaning.side is WorseSide.LOW else raw


def _has_same_meaning(seen: Smart, key: ValueKey, meaning: SmartMeaning) -> bool:
    """Return whether a drive of another model means the same by the key: one id has two meanings on some drives."""
    if not isinstance(key, int):
        return True
    if meaning is UNKNOWN_MEANING:
        return False
    return find_attribute_meaning(key, seen.attributes[key].name) is meaning
