"""Every setting has one text, by which store, cluster, journal and mgr module keep and name it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from predrain.data.ids import DeviceId, OsdId, PgId
from predrain.data.setting import (
    BalancerSwitch,
    ConfigOption,
    DeviceLife,
    LocatingLight,
    OsdAffinity,
    OsdCrushWeight,
    OsdFlag,
    OsdOverride,
    Setting,
    UpmapItem,
    ValueBefore,
    YieldedValue,
    read_setting,
    strip_note,
)

OSDS = st.integers(0, 10**9 - 1).map(OsdId)
WORDS = st.from_regex(r"[a-z][a-z_0-9]{0,20}", fullmatch=True)
PLAIN = st.one_of(
    st.builds(
        lambda pool, seed: UpmapItem(PgId(f"{pool}.{seed:x}")), st.integers(0, 999), st.integers(0, 2**31)
    ),
    OSDS.map(OsdOverride),
    OSDS.map(OsdCrushWeight),
    OSDS.map(OsdAffinity),
    st.builds(ConfigOption, WORDS, st.sampled_from(["osd", "mon", "global"])),
    st.just(BalancerSwitch()),
    WORDS.map(OsdFlag),
    WORDS.map(lambda name: DeviceLife(DeviceId(name))),
    WORDS.map(lambda name: LocatingLight(DeviceId(name))),
)


@given(PLAIN, st.sampled_from([lambda setting: setting, ValueBefore, YieldedValue]))
def test_a_setting_is_read_back_from_its_text(plain: Setting, note: type[ValueBefore | YieldedValue]) -> None:
    setting = note(plain)
    assert read_setting(str(setting)) == setting
    assert strip_note(setting) == plain


@pytest.mark.parametrize(
    ("setting", "text"),
    [
        (UpmapItem(PgId("3.1f")), "upmap/3.1f"),
        (OsdOverride(OsdId(3)), "osd.3/reweight"),
        (OsdCrushWeight(OsdId(3)), "osd.3/crush_weight"),
        (OsdAffinity(OsdId(3)), "osd.3/affinity"),
        (ConfigOption("osd_max_backfills"), "option/osd_max_backfills"),
        (ConfigOption("paxos_propose_interval", "mon"), "option/mon/paxos_propose_interval"),
        (BalancerSwitch(), "balancer"),
        (ValueBefore(OsdFlag("norebalance")), "flag/norebalance~"),
        (YieldedValue(ConfigOption("osd_max_backfills")), "option/osd_max_backfills!"),
    ],
)
def test_the_texts_are_those_that_every_release_kept(setting: Setting, text: str) -> None:
    assert str(setting) == text


@pytest.mark.parametrize(
    "text", ["", "upmap/", "upmap/x.1", "osd.3", "osd.3/size", "osd.-1/reweight", "flag/", "what/3"]
)
def test_a_text_that_names_no_setting_is_refused_with_its_name(text: str) -> None:
    with pytest.raises(ValueError, match="names no setting that a drain writes"):
        read_setting(text)
