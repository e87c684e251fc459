"""An object's PG from its name, beside what `ceph osd map` says."""

from __future__ import annotations

import pytest

from predrain.actions.crush.object_hash import name_hash, names_of, seed_of


@pytest.mark.parametrize(
    ("name", "hashed"),
    [("foo", 0x7FC1F406), ("probe.0", 0xDDE98859), ("rbd_data.1.0000000000000000", 0xAADC340C)],
)
def test_a_names_hash_is_cephs(name: str, hashed: int) -> None:
    """Beside what a Pacific cluster's `osd map` said."""
    assert name_hash(name) == hashed


@pytest.mark.parametrize("pg_num", [1, 2, 3, 12, 32, 100])
def test_every_pg_gets_a_name_that_belongs_to_it(pg_num: int) -> None:
    names = names_of(pg_num, "probe.")
    assert sorted(names) == list(range(pg_num))
    assert all(seed_of(name, pg_num) == seed for seed, name in names.items())
