"""The answers of OSDs are understood alike on every release, and an answer that is not understood gives no value."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from predrain.collector.latency.latency_histogram import Histogram
from predrain.collector.latency.perf_counters import (
    NotCounted,
    TimedCounter,
    parse_osd_counters,
    unknown_command,
)
from tests.collector.latency.fake_osd import RELEASES, answers_of, looks

NAMES = ("perf histogram dump:osd", "perf dump:osd", "perf dump:bluestore", "dump_recovery_reservations",
         "dump_scrub_reservations")  # fmt: skip


def told(release: str, **changed: bytes) -> tuple[list[bytes], bytes]:
    """The arguments of `parse_osd_counters` as an OSD of the release gave them."""
    answers = answers_of(looks(release)[1]) | changed
    return [answers[name] for name in NAMES], answers["dump_blocked_ops"]


def bounds_ms(histogram: Histogram) -> tuple[float, float]:
    """Between what the mean of the operations must be."""
    ends = (*histogram.edges_ms[1:], histogram.edges_ms[-1])
    low = sum(edge * count for edge, count in zip(histogram.edges_ms, histogram.counts, strict=True))
    high = sum(edge * count for edge, count in zip(ends, histogram.counts, strict=True))
    return low / histogram.total, high / histogram.total


@pytest.mark.parametrize("release", RELEASES)
def test_operations_and_milliseconds_are_those_that_the_osd_summed_up_itself(release: str) -> None:
    look, seen = looks(release)[1], parse_osd_counters(*told(release))
    reads, writes, both = (look[f"op_{kind}_latency"] for kind in ("r", "w", "rw"))
    assert seen.reads.total == reads["avgcount"] > 0
    assert seen.writes.total == writes["avgcount"] + both["avgcount"] > 0
    low, high = bounds_ms(seen.reads)
    assert low <= 1000 * reads["avgtime"] <= high
    low, high = bounds_ms(seen.writes)
    assert low <= 1000 * writes["avgtime"] <= high


@pytest.mark.parametrize("release", RELEASES)
def test_commits_reservations_and_scrubs_are_found_on_every_release(release: str) -> None:
    seen = parse_osd_counters(*told(release))
    assert seen.commits is not None
    assert seen.commits.count > 100
    assert 0.1 < 1000 * seen.commits.seconds / seen.commits.count < 1000
    assert (seen.backfills_max, seen.recovering, seen.scrubbing) == (1, False, False)
    assert (seen.recoveries, seen.slow_ops) == (0, 0)


def test_only_pacific_has_no_count_of_slow_operations() -> None:
    has_none = {
        name for name in RELEASES if unknown_command(answers_of(looks(name)[0])["dump_blocked_ops_count"])
    }
    assert has_none == {"pacific"}


def test_operations_that_read_and_write_are_writes() -> None:
    dump = json.loads(told("reef")[0][0])
    grids = dump["osd"]
    before = parse_osd_counters(*told("reef"))
    grids["op_rw_latency_in_bytes_histogram"]["values"][9][3] += 5
    after = parse_osd_counters([json.dumps(dump).encode(), *told("reef")[0][1:]], told("reef")[1])
    assert after.writes.total - before.writes.total == 5
    assert after.reads == before.reads


def test_reservations_of_either_side_mean_that_it_recovers() -> None:
    for side in ("local_reservations", "remote_reservations"):
        answers, slow = told("pacific")
        reserved = json.loads(answers[3])
        reserved[side]["in_progress"] = [{"item": "2.5", "prio": 110, "can_preempt": True}]
        answers[3] = json.dumps(reserved).encode()
        assert parse_osd_counters(answers, slow).recovering is True


@pytest.mark.parametrize(
    ("release", "scrub"),
    [("pacific", {"scrubs_local": 1}), ("reef", {"scrubs_remote": 1}),
     ("tentacle", {"remote_scrub_reservations": {"max_allowed": 3, "in_progress": [{"item": "2.5"}]}})],
)  # fmt: skip
def test_scrubs_of_either_side_are_seen(release: str, scrub: dict[str, object]) -> None:
    answers, slow = told(release)
    answers[4] = json.dumps(json.loads(answers[4]) | scrub).encode()
    assert parse_osd_counters(answers, slow).scrubbing is True


@pytest.mark.parametrize("at", range(1, 5))
@pytest.mark.parametrize(
    "wrong", [b"", b"\xff\x00{", b"[]", b"ERROR: (22) Invalid argument\n", b'{"osd":{}}', b"[" * 9_999]
)
def test_one_answer_that_is_not_understood_leaves_the_others(at: int, wrong: bytes) -> None:
    answers, slow = told("reef")
    whole = parse_osd_counters(answers, slow)
    answers[at] = wrong
    seen = parse_osd_counters(answers, slow)
    assert (seen.reads, seen.writes, seen.slow_ops) == (whole.reads, whole.writes, 0)
    fields = ("recoveries", "commits", "backfills_max", "scrubbing")
    assert [getattr(seen, name) is None for name in fields] == [place == at for place in range(1, 5)]


def test_an_osd_without_latencies_says_nothing_and_why() -> None:
    answers, slow = told("reef")
    with pytest.raises(NotCounted, match=r"tells no latencies .* may be starting"):
        parse_osd_counters([b"{}", *answers[1:]], slow)


def test_a_count_below_zero_is_no_count() -> None:
    answers, slow = told("reef")
    answers[2] = b'{"bluestore":{"txc_commit_lat":{"avgcount":-1,"sum":1.0}}}'
    assert parse_osd_counters(answers, slow).commits is None
    assert parse_osd_counters(answers, b'{"num_blocked_ops":-4}').slow_ops is None


def test_buckets_out_of_order_are_refused() -> None:
    answers, slow = told("reef")
    dump = json.loads(answers[0])
    dump["osd"]["op_r_latency_out_bytes_histogram"]["axes"][0]["ranges"].reverse()
    with pytest.raises(NotCounted, match="out of order"):
        parse_osd_counters([json.dumps(dump).encode(), *answers[1:]], slow)


@pytest.mark.parametrize("wrong", [-1_000_000, 1 << 70])
def test_operations_that_cannot_be_are_refused(wrong: int) -> None:
    answers, slow = told("reef")
    dump = json.loads(answers[0])
    dump["osd"]["op_w_latency_in_bytes_histogram"]["values"][9][3] = wrong
    with pytest.raises(NotCounted, match="less than nothing, or more than can be"):
        parse_osd_counters([json.dumps(dump).encode(), *answers[1:]], slow)


def test_commits_have_a_name_since_quincy_and_one_before() -> None:
    for name in ("commit_lat", "txc_commit_lat"):
        answers, slow = told("reef")
        answers[2] = json.dumps({"bluestore": {name: {"avgcount": 4, "sum": 0.5}}}).encode()
        assert parse_osd_counters(answers, slow).commits == TimedCounter(4, 0.5)


@given(
    st.lists(st.binary(max_size=200) | st.sampled_from([b"{}", b"null", b"1e999"]), min_size=6, max_size=6)
)
def test_no_bytes_do_anything_but_say_that_they_are_not_understood(told: list[bytes]) -> None:
    with pytest.raises(NotCounted):
        parse_osd_counters(told[:5], told[5])
