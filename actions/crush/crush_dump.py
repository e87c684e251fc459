"""Parses `ceph osd crush dump` into a `CrushMap`."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from predrain.actions.crush.crush_map import (
    Bucket,
    ChooseArg,
    ChooseArgs,
    CrushMap,
    CrushRule,
    RuleStep,
    Tunables,
)
from predrain.data.outside_text import CLUSTER_NAME, clean_identifier
from predrain.data.refusal import Refusal


class UnreadableCrushDump(Refusal):
    """The bytes are not the output of `ceph osd crush dump --format json`."""


class _Device(msgspec.Struct):
    id: int
    class_: str = msgspec.field(default="", name="class")


class _Item(msgspec.Struct):
    id: int
    weight: int
    pos: int = 0


class _Bucket(msgspec.Struct):
    id: int
    name: str
    type_name: str
    alg: str
    items: list[_Item]
    hash: str = "rjenkins1"


class _Step(msgspec.Struct):
    op: str = ""
    opcode: int = -1
    arg1: int = 0
    item: int = 0
    num: int = 0
    type: str = ""


class _Rule(msgspec.Struct):
    rule_id: int
    rule_name: str
    steps: list[_Step]


class _Type(msgspec.Struct):
    type_id: int
    name: str


class _Tunables(msgspec.Struct):
    choose_total_tries: int = 50
    chooseleaf_descend_once: int = 1
    chooseleaf_vary_r: int = 1
    chooseleaf_stable: int = 1
    choose_local_tries: int = 0
    choose_local_fallback_tries: int = 0


class _ChooseArg(msgspec.Struct):
    bucket_id: int
    weight_set: list[list[float]] = []
    ids: list[int] = []


class _Dump(msgspec.Struct):
    devices: list[_Device]
    buckets: list[_Bucket]
    rules: list[_Rule]
    tunables: _Tunables
    types: list[_Type] = []
    choose_args: dict[str, list[_ChooseArg]] = {}


_DUMP = msgspec.json.Decoder(_Dump)
_GRAIN = 0x10000
_LEAF = "osd"
_UNNAMED_STEPS = {
    10: "set_choose_local_tries",
    11: "set_choose_local_fallback_tries",
    12: "set_chooseleaf_vary_r",
    13: "set_chooseleaf_stable",
}
"""Steps that Ceph dumps as their number in crush.h, with `arg1` and `arg2`."""


def crush_of_dump(dump: bytes) -> CrushMap:
    """Parse the JSON of `ceph osd crush dump`; keys that later releases added are ignored.

    Type 0 becomes `osd`, even if the map has another name for it. Raises UnreadableCrushDump on other bytes.
    """
    try:
        parsed = _DUMP.decode(dump)
    except msgspec.DecodeError as error:
        raise UnreadableCrushDump(
            f"This is not the output of `ceph osd crush dump --format json`: {error}."
        ) from error
    tunables = parsed.tunables
    leaf = next((kind.name for kind in parsed.types if kind.type_id == 0), _LEAF)
    renamed = {leaf: _LEAF, _LEAF: leaf}  # another type may be called "osd"
    buckets = {
        bucket.id: Bucket(
            id=bucket.id,
            name=clean_identifier(bucket.name, CLUSTER_NAME.limit),
            type=renamed.get(bucket.type_name, bucket.type_name),
            items=tuple(item.id for item in sorted(bucket.items, key=_get_item_position)),
            weights=tuple(item.weight for item in sorted(bucket.items, key=_get_item_position)),
            algorithm=bucket.alg,
        )
        for bucket in parsed.buckets
    }
    return CrushMap(
        buckets=buckets,
        rules={
            rule.rule_id: CrushRule(
                id=rule.rule_id,
                name=clean_identifier(rule.rule_name, CLUSTER_NAME.limit),
                steps=tuple(_parse_rule_step(step, renamed) for step in rule.steps),
            )
            for rule in parsed.rules
        },
        tunables=Tunables(
            choose_total_tries=tunables.choose_total_tries,
            chooseleaf_descend_once=tunables.chooseleaf_descend_once,
            chooseleaf_vary_r=tunables.chooseleaf_vary_r,
            chooseleaf_stable=tunables.chooseleaf_stable,
            choose_local_tries=tunables.choose_local_tries,
            choose_local_fallback_tries=tunables.choose_local_fallback_tries,
        ),
        classes={device.id: device.class_ for device in parsed.devices if device.class_},
        choose_args={
            _set_key(key): _choose_args(key, args, buckets) for key, args in parsed.choose_args.items()
        },
    )


def _set_key(key: str) -> int:
    """Return the id of a pool, or COMPAT_SET: -1 as a 64-bit number, signed or unsigned. Raises
    UnreadableCrushDump.
    """
    if not key.removeprefix("-").isdecimal():
        raise UnreadableCrushDump(
            f"The crush dump has choose_args of {key!r}, which is not the id of a pool."
        )
    number = int(key)
    return number - (1 << 64) if number >= 1 << 63 else number


def _choose_args(key: str, args: list[_ChooseArg], buckets: Mapping[int, Bucket]) -> ChooseArgs:
    """Parse one set. Raises UnreadableCrushDump.

    Ceph prints the weights as fractions, which are whole multiples of 1/65536 up to a weight of 256.
    """
    found: dict[int, ChooseArg] = {}
    for arg in args:
        if (bucket := buckets.get(arg.bucket_id)) is None:
            continue
        weight_set = tuple(tuple(round(weight * _GRAIN) for weight in weights) for weights in arg.weight_set)
        if any(len(row) != len(bucket.items) for row in (*weight_set, *filter(None, [arg.ids]))):
            raise UnreadableCrushDump(
                f"The crush dump has choose_args {key} of bucket {bucket.name} for another number of items than it has."
            )
        if any(not 0 <= weight < 1 << 32 for row in weight_set for weight in row):
            raise UnreadableCrushDump(
                f"The crush dump has choose_args {key} of bucket {bucket.name} out of range."
            )
        found[arg.bucket_id] = ChooseArg(weight_set, tuple(arg.ids))
    return found


def _get_item_position(item: _Item) -> int:
    return item.pos


def _parse_rule_step(step: _Step, renamed: Mapping[str, str]) -> RuleStep:
    if not step.op:
        return RuleStep(op=_UNNAMED_STEPS.get(step.opcode, f"opcode {step.opcode}"), item=step.arg1)
    value = step.num if step.op.startswith("set_") else step.item
    return RuleStep(op=step.op, item=value, num=step.num, type=renamed.get(step.type, step.type))
