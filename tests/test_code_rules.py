"""The rules of the code base: names that no dependency ships, packages that say what they are for, no pickles."""

from __future__ import annotations

import importlib.metadata
import re

import pytest

from tests.measure.prose_reading import find_prose_readings, find_prose_readings_of_page
from tests.measure.source import (
    PACKAGES,
    ROOT,
    find_long_functions,
    find_participle_functions,
    find_shared_class_names,
    find_shared_module_names,
    list_class_files,
    list_product_files,
    list_tracked_files,
)

OWN_CLOCK = {ROOT / "data" / "clock.py", ROOT / "actions" / "ceph_mgr" / "predrain" / "module.py"}
"""The clock itself, and what ceph-mgr starts: nobody hands it one."""


@pytest.mark.slow
def test_no_installed_dependency_ships_one_of_our_top_level_names() -> None:
    taken = [
        f"{distribution.name} ships {file}"
        for distribution in importlib.metadata.distributions()
        if distribution.name != "predrain"
        for file in distribution.files or ()
        if file.parts[0] in ("predrain", "tests")
    ]
    assert taken == []


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_says_what_it_is_for(package: str) -> None:
    first = (ROOT / package / "__init__.py").read_text().splitlines()[0]
    assert re.match(rf'"""{package}: .+', first), f"{package}/__init__.py opens with: {first!r}"


def test_no_product_code_reads_or_writes_a_pickle() -> None:
    guilty = [
        path.relative_to(ROOT)
        for path in list_tracked_files("*.py")
        if path.parts[len(ROOT.parts)] in PACKAGES
        and re.search(r"^\s*(import|from) (pickle|joblib|cloudpickle)\b", path.read_text(), re.MULTILINE)
    ]
    assert guilty == []


def test_no_two_public_classes_have_one_name() -> None:
    assert find_shared_class_names(list_class_files()) == {}


def test_no_two_modules_of_a_package_have_one_name() -> None:
    assert find_shared_module_names(list_product_files()) == {}


def test_no_module_lies_loose_in_actions_or_service() -> None:
    loose = [
        str(path.relative_to(ROOT))
        for package in ("actions", "service")
        for path in list_tracked_files(f"{package}/*.py")
        if path.parent == ROOT / package and path.name != "__init__.py"
    ]
    assert loose == []


def test_no_public_function_is_a_bare_participle() -> None:
    assert find_participle_functions(list_product_files()) == {}


def test_no_function_has_grown_into_two_ideas() -> None:
    assert find_long_functions(list_tracked_files("*.py")) == {}


def test_no_package_but_service_reads_the_environment_or_the_clock() -> None:
    reads = re.compile(r"os\.environ|os\.getenv|datetime\.now\(|time\.time\(|datetime\.utcnow\(")
    guilty = [
        str(path.relative_to(ROOT))
        for path in list_tracked_files("*.py")
        if path.parts[len(ROOT.parts)] in PACKAGES
        and path.parts[len(ROOT.parts)] != "service"
        and path not in OWN_CLOCK
        and reads.search(path.read_text())
    ]
    assert guilty == []


def test_the_readme_names_the_two_commands() -> None:
    readme = (ROOT / "README.md").read_text()
    assert "make demo" in readme
    assert "make test" in readme


def test_every_make_target_explains_itself() -> None:
    makefile = (ROOT / "Makefile").read_text()
    phony = re.search(r"^\.PHONY: (.+)$", makefile, re.MULTILINE)
    assert phony is not None
    unexplained = [t for t in phony[1].split() if not re.search(rf"^{t}:.*## \S", makefile, re.MULTILINE)]
    assert unexplained == []


def test_no_name_of_a_test_has_a_pronoun_as_its_subject() -> None:
    pattern = re.compile(r"^ *(?:async )?def (test_(?:what|who)(?:ever|m|se)?_\w+)", re.MULTILINE)
    files = [path for path in list_tracked_files("tests/*.py") if path.name.startswith("test_")]
    assert len(files) > 500
    assert [found for file in files for found in pattern.findall(file.read_text())] == []


def test_every_test_file_has_a_name_of_its_own() -> None:
    """pytest imports them by name alone: of two with one name it would run the first and refuse the second."""
    names = [path.name for path in list_tracked_files("tests/*.py") if path.name.startswith("test_")]
    assert sorted(name for name in set(names) if names.count(name) > 1) == []


FOREIGN_TEXTS = {
    "actions/cluster/config_key_store.py": "compares the name of a Ceph command, which has two words",
    "actions/cluster/dumps/daemon_dumps.py": "Ceph's version line and the titles of its progress events",
    "actions/cluster/rados_child.py": "the name of an operation in the protocol between service and librados child",
    "actions/controller/held_caps.py": "compares the name of a Ceph command, which has two words",
    "collector/disk_requests/slot_light.py": "messages of sudo, which has one exit status for all of them",
    "collector/osd_devices/kernel_log_lines.py": "lines of the kernel's log",
    "data/smart/ata.py": "messages of smartctl",
    "data/smart/background_scan.py": "output of smartctl",
    "data/smart/scsi.py": "output of smartctl",
    "data/smart/smartctl_document.py": "messages of smartctl",
    "data/smart/text/ata_text.py": "output of smartctl",
    "data/smart/text/clean_lines.py": "output of smartctl",
    "data/smart/text/log_text.py": "output of smartctl",
    "data/smart/text/nvme_text.py": "output of smartctl",
    "data/smart/text/scsi_text.py": "output of smartctl",
    "data/smart/text/text_document.py": "output of smartctl",
    "data/older_documents.py": "lines of journals of version 0.1.0, read once where a line enters",
    "data/sqlite_file.py": "an error of Python's SQLite driver, which has no code",
    "data/unreadable.py": "sentences of collectors of version 0.1.0, read once where a reading enters",
    "models/forecast/drive_family.py": "model names of drive makers",
    "service/forecasting/model_succession.py": "the line of a journal whose `decided` is the fingerprint of a bundle",
    "service/forecasting/shared_forecasts.py": "the same line",
    "service/storage/audit_ends.py": "the line of a restore, whose `decided` is a word and JSON",
    "service/streams/history_import.py": "the name of a note in the store",
}
"""The files that may search for words of a text, each with the reason: the text comes from another program."""


def test_no_program_reads_prose_but_that_of_other_programs() -> None:
    reading = {
        str(path.relative_to(ROOT)) for path in list_product_files() if find_prose_readings(path.read_text())
    }
    assert reading == FOREIGN_TEXTS.keys(), "decide by an enum, or name the foreign text here"


def test_no_source_of_the_page_reads_prose() -> None:
    sources = [path for path in list_tracked_files("service/page/src/*.ts*") if ".test." not in path.name]
    assert len(sources) > 50
    reading = [
        f"{path.relative_to(ROOT)}:{line}"
        for path in sources
        for line in find_prose_readings_of_page(path.read_text())
    ]
    assert reading == []


@pytest.mark.parametrize(
    "line",
    [
        'line.decided == "lift the halt"',
        'why.startswith("whether the cluster says")',
        '"with the rights" in why',
        'why.partition("; it takes ")',
        're.search(r"nothing has moved for (\\d+) h", told)',
        'told in ("is held", "stands still")',
        'match told:\n    case "no reason given":\n        pass',
        '_UNREAD = "cannot be read"\nhalted.startswith(_UNREAD)',
        "drain.held_by == sentences",
        "one.held_by[0] != other.held_by[0]",
        "(one.in_flight, one.held_by) == (other.in_flight, other.held_by)",
        'drain.held_by[0].startswith("Halted")',
        'refuse.sentence.partition(":")',
        "old.sentence in known",
        'one["state_text"] == state',
        "match drain.ended_why:\n    case why:\n        pass",
        "describe_plan_refusal(old) == describe_plan_refusal(new)",
        'describe_bound(bound).startswith("then")',
        'application.describe_controller() == "running"',
    ],
)
def test_the_rule_against_reading_prose_finds(line: str) -> None:
    assert find_prose_readings(line)


@pytest.mark.parametrize(
    "line",
    [
        'state == "holding"',
        'key.startswith("drain/")',
        'text.split(" ")',
        'told = "nothing has moved"',
        'one + " two words"',
        "drain.held_by == ()",
        'drain.ended_why != ""',
        "drain.hold_cause == other.hold_cause",
        "old.refusals != new.refusals",
        "told = drain.held_by[0] if drain.held_by else describe_bottleneck(plan)",
    ],
)
def test_the_rule_against_reading_prose_lets_pass(line: str) -> None:
    assert not find_prose_readings(line)


@pytest.mark.parametrize(
    "line",
    [
        "const own = state_text !== name;",
        "if (drain.held_by[0] === last) return;",
        'const full = plan.refusals[0]?.includes("full");',
        "drain.state_text.startsWith(noun)",
    ],
)
def test_the_rule_against_reading_prose_finds_it_on_the_page(line: str) -> None:
    assert find_prose_readings_of_page(line)


@pytest.mark.parametrize(
    "line",
    [
        "const told = drain.held_by[0] ?? plan.refusals[0];",
        "if (sentence === null) onDone();",
        "if (drain.held_by.length === 0) return;",
        'drain.state === "holding"',
    ],
)
def test_the_rule_against_reading_prose_lets_the_page_show_it(line: str) -> None:
    assert not find_prose_readings_of_page(line)
