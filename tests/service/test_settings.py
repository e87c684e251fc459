"""Settings: every mistake is named with its cure, and every key is explained."""

from __future__ import annotations

import json
import re
from dataclasses import fields
from datetime import timedelta
from pathlib import Path

import pytest

from predrain.actions.core.drain_cost import DeathCosts
from predrain.actions.core.drain_policy import Policy
from predrain.service.cli import main
from predrain.service.config.collector_table import BadCollectorSettings, load_collector_settings
from predrain.service.config.policy_table import PolicyTable
from predrain.service.config.renamed_settings import RENAMED
from predrain.service.config.settings import BadSettings, list_setting_keys, load_settings, read_policy
from tests.service.conftest import NOON

DOCS = Path(__file__).parents[2] / "docs" / "reference"


def written(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "predrain.toml"
    file.write_text(text)
    return file


def test_without_a_file_everything_has_its_default() -> None:
    settings = load_settings(environment={})
    assert settings.service.port == 8080
    assert settings.policy.to_policy() == Policy()


def test_every_limit_of_the_policy_can_be_set() -> None:
    set_by = set(PolicyTable().to_policy().snapshot())
    names = {name.rsplit("_", 1)[0] for name in PolicyTable.model_fields} | set(PolicyTable.model_fields)
    assert {field.name for field in fields(Policy)} - names == {"known_releases"}
    assert set_by == {field.name for field in fields(Policy)}


def test_a_duration_is_set_in_the_unit_that_its_key_names(tmp_path: Path) -> None:
    settings = load_settings(
        written(tmp_path, "[policy]\noutlook_age_max_hours = 12\nwithdraw_after_days = 2"), {}
    )
    policy = settings.policy.to_policy()
    assert policy.outlook_age_max == timedelta(hours=12)
    assert policy.withdraw_after == timedelta(days=2)


def test_an_unknown_key_names_the_nearest_one(tmp_path: Path) -> None:
    with pytest.raises(BadSettings, match=r"unknown key service\.prot; did you mean service\.port\?"):
        load_settings(written(tmp_path, "[service]\nprot = 1"), {})


def test_an_unknown_table_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(BadSettings, match="unknown key servise"):
        load_settings(written(tmp_path, "[servise]\nport = 1"), {})


def test_a_value_out_of_range_says_what_would_do(tmp_path: Path) -> None:
    with pytest.raises(BadSettings, match=r"service\.port: .*65535.*given: 70000"):
        load_settings(written(tmp_path, "[service]\nport = 70000"), {})


@pytest.mark.parametrize(("given", "seconds"), [("0.25", 0.25), ("0.9", 0.9), ("0", None)])
def test_fast_maps_are_a_number_of_seconds_or_off(tmp_path: Path, given: str, seconds: float | None) -> None:
    settings = load_settings(written(tmp_path, f"[policy]\nfast_maps_seconds = {given}"), {})
    assert settings.policy.to_policy().fast_maps_seconds == seconds


@pytest.mark.parametrize("given", ["0.1", "0.249", "1.0", "-1", "nan"])
def test_an_interval_whose_price_was_not_reckoned_is_refused_with_a_sentence(
    tmp_path: Path, given: str
) -> None:
    with pytest.raises(
        BadSettings, match=r"policy\.fast_maps_seconds: .*from 0\.25 to below 1, or 0 for off"
    ):
        load_settings(written(tmp_path, f"[policy]\nfast_maps_seconds = {given}"), {})


@pytest.mark.parametrize("hours", ["[22, 26]", "[25, 30]", "[-2, 6]"])
def test_hours_that_no_day_has_are_refused(tmp_path: Path, hours: str) -> None:
    with pytest.raises(BadSettings, match=r"policy\.window\.[01]: .*(24|0) \(given"):
        load_settings(written(tmp_path, f"[policy]\nwindow = {hours}"), {})


def test_an_error_about_two_settings_keys_quotes_no_secret_in_their_values(tmp_path: Path) -> None:
    with pytest.raises(BadSettings, match=r"webhook: url needs secret_file") as refused:
        load_settings(written(tmp_path, "[webhook]\nurl = 'https://jo:swordfish@example.org'"), {})
    assert "swordfish" not in str(refused.value)


@pytest.mark.parametrize(
    "text",
    [
        "[retention]\nhistory_days = inf",
        "[retention]\nhistory_days = 1_000_000",
        "[forecast]\nreading_interval_hours = inf",
        "[policy]\nwithdraw_after_days = 1e12",
        "[access]\nrequests_per_second = inf",
        "[collector]\nspool_days = inf",
    ],
)
def test_a_time_without_an_end_is_refused_before_a_calendar_breaks_over_it(tmp_path: Path, text: str) -> None:
    table, key = text.partition(" =")[0].strip("[").split("]\n")
    with pytest.raises(BadSettings, match=rf"{table}.*{key}: (a century, 36525|it must be)|{key}.*(876600)"):
        load_settings(written(tmp_path, text), {})


def test_a_century_is_as_good_as_for_ever(tmp_path: Path) -> None:
    kept = load_settings(written(tmp_path, "[retention]\nhistory_days = 36525"), {}).retention
    assert NOON - timedelta(days=kept.history_days) < NOON


def test_a_file_that_is_no_toml_names_the_line(tmp_path: Path) -> None:
    with pytest.raises(BadSettings, match="line 2"):
        load_settings(written(tmp_path, "[service]\nport = = 1"), {})


def test_a_missing_file_is_an_error_when_it_was_asked_for(tmp_path: Path) -> None:
    with pytest.raises(BadSettings, match="does not exist"):
        load_settings(tmp_path / "nowhere.toml", {})


def test_a_certificate_needs_its_key(tmp_path: Path) -> None:
    with pytest.raises(BadSettings, match="tls_key together"):
        load_settings(written(tmp_path, '[service]\ntls_certificate = "/a.pem"'), {})


def test_a_variable_wins_over_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PREDRAIN_SERVICE__PORT", "9001")
    settings = load_settings(written(tmp_path, '[service]\nport = 9000\ncluster_name = "x"'))
    assert (settings.service.port, settings.service.cluster_name) == (9001, "x")


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("SERVICE__ALLOWED_HOSTS", "predrain.example.org", r"allowed_hosts.*JSON, '\[\"one\", \"two\"\]'"),
        ("POLICY__WINDOW", "22-6", r"policy\.window: .*'22-6'.*JSON.*'\[22, 6\]'"),
        ("SERVICE", "here", "'here'.*each key has a variable of its own"),
        ("SERVICE__STATE", "", r"service\.state: name a directory, or leave it out"),
        ("SERVICE__PORT", "many", r"service\.port: .*'many'"),
        ("SERVICE__PROT", "80", r"unknown key service\.prot; did you mean service\.port"),
    ],
)
def test_a_variable_that_is_wrong_is_told_by_its_own_name_and_not_by_the_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str, told: str
) -> None:
    monkeypatch.setenv(f"PREDRAIN_{name}", value)
    for file in (None, written(tmp_path, '[service]\ncluster_name = "x"')):
        with pytest.raises(BadSettings, match=f"^the variable PREDRAIN_{name}: .*{told}"):
            load_settings(file)


@pytest.mark.parametrize(
    ("name", "near"),
    [("PREDRAIN_SERVISE__PORT", "PREDRAIN_SERVICE__PORT"), ("PREDRAIN_PORT", "")],
)
def test_a_misspelt_variable_is_an_error(name: str, near: str) -> None:
    with pytest.raises(BadSettings, match=f"{name}.*{near}"):
        load_settings(environment={name: "1"})


def test_the_folder_of_test_data_is_no_setting() -> None:
    load_settings(environment={"PREDRAIN_DATA": "somewhere", "HOME": "x"})


def test_config_show_cuts_nothing_off_in_a_narrow_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["config", "show"]) == 0
    shown = capsys.readouterr().out
    assert "\u2026" not in shown
    assert {f"{table}.{key}" for table, key, *_ in list_setting_keys()} <= set(shown.split())


def test_config_show_lists_what_is_a_list_for_programs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(tmp_path, "[policy]\nwindow = [22, 6]\n[mail]\nto = ['a@example.org']")
    assert main(["config", "show", "--json", "--config", str(file)]) == 0
    shown = {row["key"]: row["value"] for row in json.loads(capsys.readouterr().out)}
    assert (shown["policy.window"], shown["mail.to"], shown["kafka.bootstrap_servers"]) == (
        [22, 6],
        ["a@example.org"],
        [],
    )


def test_config_check_exits_with_1_and_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["config", "check", "--config", str(written(tmp_path, "[policy]\nmod = 'act'"))]) == 1
    told = capsys.readouterr().err
    assert "policy.mod; did you mean policy.mode?" in told
    assert "Traceback" not in told


def test_config_check_refuses_what_the_service_would_not_start_with(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["config", "check", "--config", str(written(tmp_path, "[service]\nhost = '0.0.0.0'"))]) == 1
    assert "set tls_certificate and tls_key of [service]" in capsys.readouterr().err


def test_every_command_is_in_the_reference(capsys: pytest.CaptureFixture[str]) -> None:
    from predrain.service.cli import app
    from predrain.service.cli.command_catalogue import find_commands

    text = (DOCS / "cli.md").read_text()
    for words, _ in find_commands(app):
        assert f"`predrain {' '.join(words)}`" in text, words


def test_the_failure_cost_can_be_set_by_pool_device_class_and_host(tmp_path: Path) -> None:
    file = tmp_path / "policy.toml"
    file.write_text(
        'failure_cost = 20\nfailure_cost_overrides = { "pool:rbd" = 30, "class:ssd" = 5, "host:stor-01" = 12 }\n'
        'loss_cost_overrides = { "pool:rbd" = 200 }\n'
    )
    policy = read_policy(file)
    assert policy.death_costs("stor-02", "hdd", "cold") == DeathCosts(20, 100)
    assert policy.death_costs("stor-02", "ssd") == DeathCosts(5, 100)
    assert policy.death_costs("stor-01", "ssd", "cold") == DeathCosts(12, 100)
    assert policy.death_costs("stor-01", "ssd", "rbd") == DeathCosts(30, 200)
    assert policy.snapshot()["failure_cost_overrides"] == "class:ssd=5 host:stor-01=12 pool:rbd=30"


@pytest.mark.parametrize("cost", ["0", "-4", "0.2", "nan", "inf", "5000"])
@pytest.mark.parametrize(
    "key", ["failure_cost = {}", "loss_cost = {}", 'failure_cost_overrides = {{ "pool:rbd" = {} }}']
)
def test_a_cost_of_nothing_below_it_or_beyond_reason_is_refused_with_what_to_set(
    tmp_path: Path, key: str, cost: str
) -> None:
    file = tmp_path / "policy.toml"
    file.write_text(key.format(cost))
    with pytest.raises(BadSettings, match=r"_cost.*[Ss]et .*1 to 300"):
        read_policy(file)


@pytest.mark.parametrize("place", ["rbd", "pool:", "rack:a"])
def test_a_cost_of_a_place_that_is_none_is_refused_with_what_may_be_written(
    tmp_path: Path, place: str
) -> None:
    file = tmp_path / "policy.toml"
    file.write_text(f'failure_cost_overrides = {{ "{place}" = 20 }}')
    with pytest.raises(BadSettings, match=r'write "pool:NAME", "class:NAME" or "host:NAME"'):
        read_policy(file)


@pytest.mark.parametrize("old", sorted(RENAMED))
def test_a_key_of_0_1_0_is_refused_with_its_name_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: str
) -> None:
    (table, key), new = old.split("."), RENAMED[old]
    file = tmp_path / "predrain.toml"
    file.write_text(f"[{table}]\n{key} = 1\n")
    wanted = re.escape(f"{old} was renamed to {new}: write {new.partition('.')[2]}")
    with pytest.raises(BadSettings, match=wanted):
        load_settings(file, {})
    if table in ("collector", "kafka"):
        with pytest.raises(BadCollectorSettings, match=wanted):
            load_collector_settings(file, {})
    monkeypatch.setenv(f"PREDRAIN_{table}__{key}".upper(), "1")
    with pytest.raises(BadSettings, match=wanted):
        load_settings()


def test_every_renamed_key_leads_to_a_setting() -> None:
    keys = {f"{table}.{key}" for table, key, _, _ in list_setting_keys()}
    assert set(RENAMED.values()) <= keys
    assert not set(RENAMED) & keys


def test_a_policy_file_with_a_key_of_0_1_0_is_refused_with_its_name_now(tmp_path: Path) -> None:
    file = tmp_path / "policy.toml"
    file.write_text("pin_attempts = 5\n")
    with pytest.raises(BadSettings, match=r"policy\.pin_attempts was renamed to policy\.upmap_attempts"):
        read_policy(file)
