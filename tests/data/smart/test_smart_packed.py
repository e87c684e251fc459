"""Vendor packing: the forms that smartctl prints, and the bare integers of drives that it does not know."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from predrain.data.reading import Identity
from predrain.data.smart.packed_counts import decode_raw_value, packs_rates, unpack_raw_value

# attribute, raw.value, raw.string, meaning; from the files named
PRINTED = [
    (5, 2000 << 32, "0 (2000 0)", 0),  # text/ata-071, Fujitsu
    (196, 5494 << 16, "0 (0 5494)", 0),  # text/ata-071
    (9, 167031278144165, "2725 (151 234 0)", 2725),  # ata-031
    (9, 209259396633810, "38098 (190 82 0)", 38098),  # ata-070
    (9, 29294, "488h+14m", 488),  # text/ata-022, minutes
    (9, 7963, "7963h+07m+54.620s", 7963),  # text/ata-014
    (188, (190 << 32) + (190 << 16) + 193, "190 190 193", 193),  # text/ata-026
    (188, 1, "0 0 1", 1),  # ata-040
    (188, 4295032833, "4295032833", 1),  # text/ata-016: 1, 1, 1 undecoded
    (188, 65583, "65583", 47),  # text/ata-056: 0, 1, 47
    (188, 111670853706, "111670853706", 74),  # text/ata-027
    (190, 588709920, "32 (Min/Max 23/35)", 32),  # ata-011
    (194, 98784247832, "24 (0 23 0 0 0)", 24),  # ata-035
    (194, 35, "35 (Min/Max 24/51 #2689)", 35),
    (1, (2765 << 32) + 13191816, "2765/13191816", 2765),  # text/ata-103
    (240, 260725989826497, "122817 (237 33 0)", 122817),  # ata-011
    (240, 12884541110758725, "11589h+49m+59.916s", 11589),  # ata-040
    (241, 15017138, "15017138", 15017138),
]


@pytest.mark.parametrize(("attribute", "value", "printed", "meant"), PRINTED)
def test_a_printed_raw_value_means_one_count(attribute: int, value: int, printed: str, meant: int) -> None:
    assert decode_raw_value(attribute, value, printed) == meant


@pytest.mark.parametrize(
    ("attribute", "value", "meant"),
    [
        (5, 2000 << 32, 0),
        (196, 5494 << 16, 0),
        (9, 167031278144165, 2725),
        (188, (190 << 32) + (190 << 16) + 193, 193),
        (190, 588709920, 32),
        (194, 98784247832, 24),
        (194, (40 << 16) + 0xFB, -5),
        (240, 260725989826497, 122817),
        (197, 4295032833, 4295032833),
    ],
)
def test_a_bare_integer_means_the_same_count(attribute: int, value: int, meant: int) -> None:
    assert unpack_raw_value(attribute, value) == meant


def test_a_count_that_the_drive_database_prints_plainly_is_not_cut_at_16_bits() -> None:
    assert decode_raw_value(5, 70000, "70000") == 70000
    assert unpack_raw_value(5, 70000) == 70000 & 0xFFFF


@pytest.mark.parametrize("attribute", [1, 7, 195])
def test_a_seagate_rate_holds_errors_above_32_bits_of_operations(attribute: int) -> None:
    """ata-053: 52383508216 is 12 errors in 843900 thousand operations; 10^8 is no error at all."""
    assert decode_raw_value(attribute, 52383508216, "52383508216", errors_above_operations=True) == 12
    assert decode_raw_value(attribute, 103699713, "103699713", errors_above_operations=True) == 0
    assert decode_raw_value(attribute, 103699713, "103699713") == 103699713


@pytest.mark.parametrize(
    ("identity", "packs"),
    [
        (Identity(model="ST18000NM000J-2TV103", rotation_rpm=7200), True),
        (Identity(model="SEAGATE ST373453LC", rotation_rpm=15015), True),
        (Identity(model="ST3500418AS", family="Seagate Barracuda 7200.12"), True),
        (Identity(model="ST1000LM024 HN-M101MBB", family="Seagate Samsung SpinPoint M8 (AF)"), False),
        (Identity(model="ST500LM012", family="SAMSUNG SpinPoint M8"), False),
        (Identity(model="XA960LE10063", family="Seagate Nytro SATA SSD", rotation_rpm=0), False),
        (Identity(model="STORAGE X1"), False),
        (Identity(model="MB4000GCWDC", wwn="5000c5007ba725b1", rotation_rpm=7200), True),
        (Identity(model="OOS12000G", wwn="5000c500a4847915"), True),
        (Identity(model="MB4000ECWLR", wwn="5000cca22bcdfabc", rotation_rpm=7200), False),
        (Identity(model="XA960LE10063", wwn="5000c5003d0f0e88", rotation_rpm=0), False),
        (Identity(model="HGST HUH721008ALE604", rotation_rpm=7200), False),
        (Identity(), False),
    ],
)
def test_only_seagates_own_hard_disks_pack_rates(identity: Identity, packs: bool) -> None:
    assert packs_rates(identity) is packs


@given(st.integers(0, 0xFFFF), st.integers(0, 0xFFFF), st.integers(0, 0xFFFF))
def test_three_printed_words_and_their_integer_mean_the_same(
    over_7s: int, over_5s: int, all_of_them: int
) -> None:
    value = over_7s << 32 | over_5s << 16 | all_of_them
    assert (
        decode_raw_value(188, value, f"{over_7s} {over_5s} {all_of_them}")
        == decode_raw_value(188, value, str(value))
        == all_of_them
    )


@given(st.integers(1, 255), st.integers(0, 2**56 - 1), st.text(max_size=40) | st.none())
def test_a_raw_value_decodes_to_a_whole_number_for_any_printed_text(
    attribute: int, value: int, printed: str | None
) -> None:
    assert isinstance(decode_raw_value(attribute, value, printed), int)
