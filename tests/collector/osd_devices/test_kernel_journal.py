"""The kernel's log out of a journal, with a journalctl that may fail, hang or babble."""

from __future__ import annotations

import stat
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from predrain.collector.osd_devices import KernelErrors, systemd_journal

SAYS = """\
import json, sys, time
{before}
for number, message in enumerate(open({file!r}).read().splitlines(), 1):
    if not any(a.startswith("--after-cursor=") and int(a.partition("=")[2]) >= number for a in sys.argv):
        print(json.dumps({{"__CURSOR": str(number), "__MONOTONIC_TIMESTAMP": str(number * 10**5), "MESSAGE": message,
                           "SYSLOG_FACILITY": "0"}}))
"""
Answer = Callable[..., KernelErrors]


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """Return the file with the messages of the fake journal, one message a line."""
    kept = tmp_path / "kept"
    kept.write_text("Linux version 6.1.0\n")
    return kept


@pytest.fixture
def journalled(tmp_path: Path, kept: Path) -> Iterator[Answer]:
    """Makes a watch over a host without /dev/kmsg whose journalctl does something first."""
    made: list[KernelErrors] = []

    def make(before: str = "") -> KernelErrors:
        program = tmp_path / "journalctl"
        text = SAYS.format(before=textwrap.dedent(before), file=str(kept))
        program.write_text(f"#!{sys.executable}\n{text}")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        made.append(KernelErrors(tmp_path / "root", journalctl=(str(program),)))
        return made[-1]

    yield make
    for errors in made:
        errors.close()


def more(kept: Path, *messages: str) -> None:
    with kept.open("a") as file:
        file.writelines(f"{message}\n" for message in messages)


def test_without_kmsg_the_journal_is_read_from_where_it_ended(journalled: Answer, kept: Path) -> None:
    more(kept, "I/O error, dev sda, sector 8 op 0x0:(READ)")
    errors = journalled()
    assert errors.since_last("sda") == 0
    more(kept, "I/O error, dev sda, sector 8 op 0x0:(READ)", "I/O error, dev sdb, sector 8 op 0x0:(READ)")
    assert [errors.since_last("sda"), errors.since_last("sdb"), errors.since_last("sda")] == [1, 1, 0]
    assert errors.trouble == ()


def test_one_look_into_the_journal_serves_a_round_of_disks(journalled: Answer, kept: Path) -> None:
    looks = kept.with_name("looks")
    errors = journalled(f"open({str(looks)!r}, 'a').write('x')")
    for _ in range(3):
        assert [errors.since_last(f"sd{n}") for n in "abcdefgh"] == [0] * 8
    assert len(looks.read_text()) == 3


def test_neither_log_readable_is_unknown_and_told_with_the_cure(tmp_path: Path) -> None:
    errors = KernelErrors(tmp_path, journalctl=(str(tmp_path / "none"),))
    assert errors.since_last("sda") is None
    assert "systemd-journal" in errors.trouble[0]


def test_a_journal_that_keeps_the_kernels_lines_from_us_is_unknown(journalled: Answer, kept: Path) -> None:
    kept.write_text("")
    assert journalled().since_last("sda") is None


def test_a_journalctl_that_fails_now_and_then_loses_nothing(journalled: Answer, kept: Path) -> None:
    broken = kept.with_name("broken")
    errors = journalled(f"import os\nif os.path.exists({str(broken)!r}): sys.exit(1)")
    assert errors.since_last("sda") == 0
    broken.touch()
    more(kept, "I/O error, dev sda, sector 8 op 0x0:(READ)")
    assert errors.since_last("sda") is None
    broken.unlink()
    assert errors.since_last("sda") == 1


def test_garbage_and_programs_words_in_the_journal_are_passed_over(journalled: Answer, kept: Path) -> None:
    errors = journalled(
        """
        word = "I/O error, dev sda, sector 8 op 0x0:(READ)"
        print("{")
        print("\\udcff")
        for message, facility in (([73, 47], "0"), (None, "0"), (word, "1")):
            print(json.dumps({"__CURSOR": "1", "MESSAGE": message, "SYSLOG_FACILITY": facility}))
        """
    )
    more(kept, "I/O error, dev sda, sector 8 op 0x0:(READ)")
    assert [errors.since_last("sda"), errors.since_last("sda")] == [0, 1]


def test_the_journal_is_that_of_the_root_which_is_looked_at(
    journalled: Answer, kept: Path, tmp_path: Path
) -> None:
    asked = kept.with_name("asked")
    journalled(f"open({str(asked)!r}, 'a').write(' '.join(sys.argv))")
    assert f"--root={tmp_path / 'root'}" in asked.read_text().split()


def test_a_hung_journalctl_is_left_at_its_deadline_and_unknown(
    journalled: Answer, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hangs = kept.with_name("hangs")
    errors = journalled(f"import os\nif os.path.exists({str(hangs)!r}): time.sleep(60)")
    assert errors.since_last("sda") == 0
    monkeypatch.setattr(systemd_journal, "SECONDS", 0.3)
    hangs.touch()
    more(kept, "I/O error, dev sda, sector 8 op 0x0:(READ)")
    assert errors.since_last("sda") is None
    assert "did not answer within 0.3 s" in errors.trouble[0]
    monkeypatch.undo()
    hangs.unlink()
    assert errors.since_last("sda") == 1
