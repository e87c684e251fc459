"""Texts in the cluster's config-key: any length, whole or as before, and what goes wrong said in a sentence."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from predrain.actions.cluster.cluster_port import ClusterUnreachable, DamagedConfigKey
from predrain.actions.cluster.config_key_store import PIECE_BYTES, ConfigKeys
from tests.actions.made_channel import MonInMemory

LONG = "".join(f"{number:07d}é" for number in range(20_000))


def test_a_key_that_was_never_written_reads_as_none_and_is_not_listed() -> None:
    keep = ConfigKeys(MonInMemory())
    assert keep.read("halt") is None
    assert keep.names() == ()


def test_a_bare_key_that_an_operator_set_is_read_as_it_is() -> None:
    mon = MonInMemory({"predrain/halt": b"smoke in row 4", "mgr/other": b"1"})
    assert ConfigKeys(mon).read("halt") == "smoke in row 4"
    assert ConfigKeys(mon).names() == ("halt",)


@pytest.mark.slow
@given(st.lists(st.tuples(st.sampled_from(["a", "b"]), st.sampled_from(["", "x", "é" * PIECE_BYTES, LONG]))))
def test_every_text_is_read_back_and_no_piece_of_an_older_one_stays(writes: list[tuple[str, str]]) -> None:
    mon = MonInMemory()
    keep = ConfigKeys(mon)
    for name, text in writes:
        keep.write(name, text)
        assert keep.read(name) == text
    assert set(keep.names()) == {name for name, _ in writes}
    for name in ("a", "b"):
        keep.remove(name)
    assert mon.keys == {}


def test_a_text_that_looks_like_a_head_is_still_a_text() -> None:
    keep = ConfigKeys(MonInMemory())
    text = f"predrain-pieces a 3 {'0' * 64}"
    keep.write("x", text)
    assert keep.read("x") == text


@pytest.mark.parametrize("old", ["old", LONG])
@pytest.mark.parametrize("new", ["new", LONG[::-1], LONG * 2])
def test_a_write_that_breaks_off_anywhere_leaves_the_old_text_or_the_new_and_the_next_cleans_up(
    old: str, new: str
) -> None:
    for calls in range(40):
        mon = MonInMemory()
        keep = ConfigKeys(mon)
        keep.write("x", old)
        mon.calls_left = calls
        try:
            keep.write("x", new)
        except ClusterUnreachable:
            mon.calls_left = None
            assert keep.read("x") in (old, new)
            keep.write("x", new)
        mon.calls_left = None
        assert keep.read("x") == new
        keep.remove("x")
        assert mon.keys == {}


def test_a_reader_that_a_writer_overtakes_reads_the_new_text() -> None:
    mon = MonInMemory()
    writer = ConfigKeys(mon)
    writer.write("x", LONG)

    class Overtaken(MonInMemory):
        def ask(self, *arguments: object, **named: object):  # type: ignore[no-untyped-def]
            reply = mon.ask(*arguments, **named)  # type: ignore[arg-type]
            if self.calls_left is None:
                self.calls_left = 1
                writer.write("x", LONG[::-1])
            return reply

    assert ConfigKeys(Overtaken()).read("x") == LONG[::-1]


def test_a_text_that_lost_a_piece_is_damaged_and_the_cure_is_said() -> None:
    mon = MonInMemory()
    keep = ConfigKeys(mon)
    keep.write("drain/osd.7", LONG)
    del mon.keys["predrain/drain/osd.7#a.1"]
    with pytest.raises(DamagedConfigKey, match=r"config-key rm predrain/drain/osd\.7"):
        keep.read("drain/osd.7")
    keep.write("drain/osd.7", "again")
    assert keep.read("drain/osd.7") == "again"


def test_a_key_without_the_caps_is_told_where_they_are_printed() -> None:
    keep = ConfigKeys(MonInMemory(refuses=True))
    for refused in (lambda: keep.read("halt"), keep.names, lambda: keep.write("x", "y")):
        with pytest.raises(ClusterUnreachable, match="predrain ceph auth"):
            refused()
