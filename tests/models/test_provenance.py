"""A training names the histories and the code that it was made from."""

from __future__ import annotations

import re
from pathlib import Path

from predrain.models.forecast.provenance import describe_code, digest_histories


def test_the_same_files_in_another_order_and_place_have_the_same_digest(tmp_path: Path) -> None:
    one, two, other = (tmp_path / name for name in ("one", "two", "other"))
    one.write_bytes(b"1")
    two.write_bytes(b"2")
    other.write_bytes(b"1")
    assert digest_histories([one, two]) == digest_histories([two, other])
    other.write_bytes(b"3")
    assert digest_histories([one, two]) != digest_histories([two, other])


def test_the_code_is_named_by_its_release_and_its_commit_where_there_is_one() -> None:
    told = describe_code()
    assert told["release"]
    assert re.fullmatch(r"([0-9a-f]{40}(\+changes)?)?", told["commit"])
