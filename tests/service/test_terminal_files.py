"""Man pages and completions of shells, as packages install them: judged by `man`, mandoc and the shells themselves."""

from __future__ import annotations

import os
import shutil
import subprocess
from datetime import date
from pathlib import Path

import pytest

from predrain.service.cli import main
from predrain.service.cli.command_catalogue import list_commands
from predrain.service.cli.terminal_files import write_terminal_files

pytestmark = pytest.mark.slow
DAY = date(2026, 3, 10)


def require_program(name: str) -> None:
    """Skip the test where the program is missing; in CI that is a failure."""
    if shutil.which(name) is None:
        why = f"{name} is not installed: apt-get install man-db mandoc zsh fish"
        pytest.fail(why) if os.environ.get("CI") == "true" else pytest.skip(why)


@pytest.fixture(scope="module")
def share(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("share")
    write_terminal_files(folder, DAY)
    return folder


def test_every_command_has_a_man_page_and_the_overview_names_each(share: Path) -> None:
    folder = share / "man" / "man1"
    names = {"-".join(("predrain", *page.words)) for page in list_commands()}
    assert {file.stem for file in folder.iterdir()} == {"predrain", *names}
    overview = (folder / "predrain.1").read_text().replace("\\-", "-")
    assert [name for name in names if f".BR {name} (1)" not in overview] == []


def test_a_man_page_names_every_option_and_the_example(share: Path) -> None:
    page = (share / "man" / "man1" / "predrain-disks.1").read_text().replace("\\-", "-")
    for part in (
        ".B --sort SORT",
        ".B --token-file TOKEN-FILE",
        "temperature>45",
        "predrain disks --filter",
        DAY.isoformat(),
    ):
        assert part in page


def test_the_same_day_gives_the_same_files(share: Path, tmp_path: Path) -> None:
    write_terminal_files(tmp_path, DAY)
    files = [file.relative_to(share) for file in share.rglob("*") if file.is_file()]
    assert [file for file in files if (share / file).read_bytes() != (tmp_path / file).read_bytes()] == []


@pytest.mark.parametrize(
    "judge",
    [("man", "--warnings", "--local-file"), ("mandoc", "-T", "lint", "-W", "warning")],
    ids=lambda one: one[0],
)
def test_no_man_page_has_a_fault(share: Path, judge: tuple[str, ...]) -> None:
    require_program(judge[0])
    for page in sorted((share / "man" / "man1").iterdir()):
        ran = subprocess.run([*judge, str(page)], capture_output=True, text=True, check=False)
        found = ran.stderr + (ran.stdout if judge[0] == "mandoc" else "")
        assert (ran.returncode, found) == (0, ""), page.name


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_reads_its_completion_without_an_error(share: Path, shell: str) -> None:
    require_program(shell)
    (script,) = [
        file for file in share.rglob("*predrain*") if file.is_file() and shell in str(file.relative_to(share))
    ]
    ran = subprocess.run([shell, "-n", str(script)], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")


@pytest.mark.parametrize(
    ("typed", "completed"),
    [("dis", {"disk", "disks"}), ("disks --fil", {"--filter"}), ("drain app", {"apply", "approve"})],
)
def test_bash_completes_commands_and_options(share: Path, typed: str, completed: set[str]) -> None:
    words = ["predrain", *typed.split()]
    program = (
        f"source {share}/bash-completion/completions/predrain; COMP_WORDS=({' '.join(words)}); "
        f'COMP_CWORD={len(words) - 1}; _predrain; echo "${{COMPREPLY[@]}}"'
    )
    ran = subprocess.run(["bash", "--norc", "-c", program], capture_output=True, text=True, check=True)
    assert set(ran.stdout.split()) == completed


def test_the_command_prints_the_script_that_packages_install(
    share: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["completion", "bash"]) == 0
    assert capsys.readouterr().out == (share / "bash-completion" / "completions" / "predrain").read_text()
