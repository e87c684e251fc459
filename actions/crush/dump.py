"""`ceph osd crush dump` to a `CrushMap`: the border where CRUSH comes in as bytes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from actions.crush.map import Bucket, CrushMap, Rule, RuleStep, Tunables
from data.outside_text import CLUSTER_NAME, clean_identifier
from data.refusal import Refusal


class UnreadableCrushDump(Refusal):
    """The bytes are not what `ceph osd crush dump --format json` prints."""


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


class _Dump(msgspec.Struct):
    devices: list[_Device]
    buckets: list[_Bucket]
    rules: list[_Rule]
    tunables: _Tunables
    types: list[_Type] = []
    choose_args: dict[str, Any] = {}


_DUMP = msgspec.json.Decoder(_Dump)
_LEAF = "osd"
_UNNAMED_STEPS = {
    10: "set_choose_local_tries",
    11: "set_choose_local_fallback_tries",
    12: "set_chooseleaf_vary_r",
    13: "set_chooseleaf_stable",
}
"""Steps that Ceph dumps as their number in crush.h, with `arg1` and `arg2`."""


def crush_of_dump(dump: bytes) -> CrushMap:
    """The map in the JSON of `ceph osd crush dump`; keys that later releases added are passed over.

    Type 0 is called `osd` here, whatever it is called there. Raises UnreadableCrushDump on other bytes.
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
    return CrushMap(
        buckets={
            bucket.id: Bucket(
                id=bucket.id,
                name=clean_identifier(bucket.name, CLUSTER_NAME.limit),
                type=renamed.get(bucket.type_name, bucket.type_name),
                items=tuple(item.id for item in sorted(bucket.items, key=_position)),
                weights=tuple(item.weight for item in sorted(bucket.items, key=_position)),
                algorithm=bucket.alg,
            )
            for bucket in parsed.buckets
        },
        rules={
            rule.rule_id: Rule(
                id=rule.rule_id,
                name=clean_identifier(rule.rule_name, CLUSTER_NAME.limit),
                steps=tuple(_step(step, renamed) for step in rule.steps),
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
        has_choose_args=bool(parsed.choose_args),
    )


def _position(item: _Item) -> int:
    return item.pos


def _step(step: _Step, renamed: Mapping[str, str]) -> RuleStep:
    if not step.op:
        return RuleStep(op=_UNNAMED_STEPS.get(step.opcode, f"opcode {step.opcode}"), item=step.arg1)
    value = step.num if step.op.startswith("set_") else step.item
    return RuleStep(op=step.op, item=value, num=step.num, type=renamed.get(step.type, step.type))
