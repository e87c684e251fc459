"""The pages that tell how to add something are followed on a copy of the tree: what they add works and can be seen."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.docs.followed_page import CannotFollow, Step, copy_tree, follow, list_steps, run_in, run_python
from tests.docs.pages import DOCS, ROOT

FOLDER = DOCS / "how-to" / "contribute"
MOST_FILES: Mapping[str, int] = {
    "add-a-guard": 5,
    "add-a-notifier": 4,
    "add-a-feature": 3,
    "add-an-importer": 5,
    "add-a-drain-strategy": 3,
    "add-a-smartctl-field": 2,
    "add-a-metric": 3,
}
"""Files that a person has to touch; the reference is written from the code."""


def follow_page(name: str, tree: Path) -> None:
    """Follow a page on a copy of the tree, all commands that it shows included."""
    assert len(follow(FOLDER / f"{name}.md", tree)) <= MOST_FILES[name]


def test_every_page_of_the_folder_is_followed() -> None:
    assert {page.stem for page in FOLDER.glob("add-*.md")} == MOST_FILES.keys()


@pytest.mark.parametrize("name", MOST_FILES)
def test_a_page_touches_no_more_files_than_the_index_says(name: str) -> None:
    files = {step.file for step in list_steps(FOLDER / f"{name}.md")}
    told = re.search(rf"\({name}\.md\) \| (\d+) \|", (FOLDER / "README.md").read_text())
    assert told
    assert len(files) == int(told[1]) <= MOST_FILES[name]


@pytest.mark.parametrize("name", MOST_FILES)
def test_every_step_of_a_page_fits_the_tree(name: str, tmp_path: Path) -> None:
    for step in list_steps(FOLDER / f"{name}.md"):
        target = tmp_path / step.file
        if step.how != "new" and not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text((ROOT / step.file).read_text())
        assert step.how != "new" or not (ROOT / step.file).exists()
        step.apply(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", MOST_FILES)
def test_code_that_a_page_adds_is_formatted_and_linted_like_all_other_code(name: str, tmp_path: Path) -> None:
    copy_tree(tmp_path)
    steps = list_steps(FOLDER / f"{name}.md")
    for step in steps:
        step.apply(tmp_path)
    files = " ".join(sorted({step.file for step in steps if step.file.endswith(".py")}))
    run_in(tmp_path, f".venv/bin/ruff check {files} && .venv/bin/ruff format --check {files}")


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(1800)
def test_a_guard_that_is_added_is_in_the_reference_and_over_rest(tmp_path: Path) -> None:
    follow_page("add-a-guard", tmp_path)
    reference = (tmp_path / "docs/reference/guards.md").read_text()
    assert "| [flagged-target](../guards/flagged-target.md) | a target of the plan has a flag |" in reference
    probe = tmp_path / "tests/service/test_followed_guard.py"
    probe.write_text(
        "from tests.service.test_drain_ways import closed, proposed, read\n"
        "def test_rest_shows_it(closed):\n"
        "    _, site = closed\n"
        "    shown = {one['code']: one for one in read(site, proposed(site))['guards']}\n"
        "    assert shown['flagged-target'] == {\n"
        "        'code': 'flagged-target', 'ok': True, 'sentence': 'no target of the plan has a flag',\n"
        "        'insistable': False, 'overruled': False, 'transient': False,\n"
        "    }\n"
    )
    run_in(tmp_path, f".venv/bin/python -m pytest {probe}")


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(1800)
def test_a_notifier_that_is_added_is_set_looked_at_and_written_down(tmp_path: Path) -> None:
    follow_page("add-a-notifier", tmp_path)
    assert "## `[syslog]`" in (tmp_path / "docs/reference/settings.md").read_text()
    (tmp_path / "p.toml").write_text('[syslog]\nhost = "127.0.0.1"\nport = 1\n')
    told = run_python(
        tmp_path,
        "from pathlib import Path",
        "from predrain.data.clock import SystemClock",
        "from predrain.service.doctor.examination import LOOKS",
        "from predrain.service.config.settings import load_settings",
        "from predrain.service.config import collector_table",
        "settings = load_settings(Path('p.toml'), {})",
        "collector_table.load_collector_settings(Path('p.toml'), {})",
        "look = dict(LOOKS)['syslog']",
        "print(*look(settings, SystemClock()))",
    )
    assert "the syslog server 127.0.0.1:1 did not take a line" in told


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(1800)
def test_a_feature_that_is_added_is_measured_learned_from_and_leaves_the_shipped_bundle_as_it_was(
    tmp_path: Path,
) -> None:
    forecast = (
        "import hashlib",
        "from pathlib import Path",
        "import numpy as np",
        "from predrain.data.history import HistoryFiles",
        "from predrain.features import NAMES_IN_ORDER, compute_feature_vectors, ledger_of, rows_at",
        "from predrain.models.forecast.bundle import Bundle",
        "past = HistoryFiles([Path('tests/data/drives/daily.parquet')], threads=1).read()",
        "ledger, day = ledger_of(past), np.full(past.drives, int(past.day.max()))",
        "seen = np.flatnonzero(rows_at(ledger, np.arange(past.drives), day) >= 0)",
        "x = compute_feature_vectors(ledger, seen, day[seen])",
        "model = np.full(len(seen), 'ST4000DM000', dtype=object)",
        "p = Bundle.load().forecast(x, model, np.ones(len(seen), dtype=bool)).p_fail",
        "print(len(seen), hashlib.sha256(p.tobytes()).hexdigest())",
    )
    before, after = tmp_path / "before", tmp_path / "after"
    was = run_python(copy_tree(before), *forecast)
    follow_page("add-a-feature", after)
    assert run_python(after, *forecast) == was
    assert int(was.split()[0]) > 20
    read = run_python(
        after,
        *forecast[:6],
        "made, ships = Bundle.load(Path('dist/with-crc')), Bundle.load()",
        "name = 'smart_199_up_7d'",
        "print(name in NAMES_IN_ORDER, name in made.facts.measured, name in ships.facts.measured)",
    )
    assert read.split() == ["True", "True", "False"]


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(1800)
def test_a_feature_whose_window_is_changed_under_the_same_words_refuses_the_shipped_bundle(
    tmp_path: Path,
) -> None:
    copy_tree(tmp_path)
    schema = tmp_path / "features" / "feature_schema.py"
    week, fortnight = (f"h.compute_rise(n, {days})) for n in (5, 187, 197)" for days in (7, 15))
    assert week in schema.read_text()
    schema.write_text(schema.read_text().replace(week, fortnight))
    told = run_python(
        tmp_path,
        "from predrain.models.forecast.bundle import Bundle, CorruptBundle",
        "try:",
        "    Bundle.load()",
        "except CorruptBundle as refused:",
        "    print(refused)",
    )
    assert "sectors_up_7d measured otherwise" in told


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(1800)
def test_an_importer_that_is_added_is_a_command_that_fills_the_store(tmp_path: Path) -> None:
    follow_page("add-an-importer", tmp_path)
    assert "## data import smartd" in (tmp_path / "docs/reference/commands.md").read_text()
    log = tmp_path / "attrlog.ST4000DM000_1F2168-Z300ABCD.ata.csv"
    log.write_text("2026-05-31 12:00:00;\t5;100;8;\t9;77;20123;\t197;100;16;\n")
    state = tmp_path / "state"
    command = (
        f".venv/bin/predrain data import smartd {log.name} --timezone UTC --host osd7 --state {state} --json"
    )
    assert '"readings": 1' in run_in(tmp_path, command)
    assert '"parts_before": 1' in run_in(tmp_path, command)  # what was read to its end is not read again


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(1800)
def test_a_drain_strategy_that_is_added_decides_which_osd_is_emptied_first(tmp_path: Path) -> None:
    follow_page("add-a-drain-strategy", tmp_path)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(1800)
def test_a_smartctl_field_that_is_added_is_in_the_reading(tmp_path: Path) -> None:
    follow_page("add-a-smartctl-field", tmp_path)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(1800)
def test_a_metric_that_is_added_is_scraped_and_written_down(tmp_path: Path) -> None:
    follow_page("add-a-metric", tmp_path)
    assert "| `predrain_insisted_drains` |" in (tmp_path / "docs/reference/metrics.md").read_text()


@pytest.mark.parametrize(
    ("anchor", "why"), [("absent", "0 lines of a.txt begin with absent"), ("same", "2 lines of a.txt")]
)
def test_a_step_whose_place_is_not_one_line_is_refused(tmp_path: Path, anchor: str, why: str) -> None:
    (tmp_path / "a.txt").write_text("same\n  same again\n")
    with pytest.raises(CannotFollow, match=why):
        Step("below", "a.txt", anchor, "new\n").apply(tmp_path)


def test_a_block_that_no_line_places_is_refused(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text('Somewhere:\n\n```python title="a.py"\npass\n```\n')
    with pytest.raises(CannotFollow, match="1 blocks with a title, and says of 0"):
        list_steps(page)
