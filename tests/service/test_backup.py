"""A backup is taken while readings come in and a drain runs; what is restored from it has everything and goes on."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import sqlite3
import tarfile
import threading
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from predrain.actions.core.drain_policy import Mode, Policy
from predrain.data.drain import DrainState
from predrain.data.log.log_port import Topic
from predrain.data.outlook import Status
from predrain.data.refusal import Refusal
from predrain.data.store.sqlite_store import SqliteStore
from predrain.models.deploy.bundle_store import BundleStore
from predrain.models.forecast.bundle import DEFAULT
from predrain.service.access.tokens import load_admin_tokens
from predrain.service.app.application import Application
from predrain.service.backup import backup as taking
from predrain.service.backup.backup import CannotBackUp, take_backup
from predrain.service.backup.backup_signature import BackupAuthority, BackupTrust
from predrain.service.backup.restore import restore_backup
from predrain.service.cli import main
from predrain.service.config.state_directory import StateDir, StateInUse, StateUnusable
from predrain.service.forecasting.worker import GROUP
from tests.service.conftest import NOON, Place, SetClock, shut, smart_reading, week_of
from tests.service.person_requests import approve_drain, propose_drain
from tests.service.test_drains import ClusterClock, Seated, World, seated
from tests.service.test_worker import work

ENOUGH = 40
BELIEVED = BackupAuthority(trusted=frozenset(BackupTrust))


def taken(state: StateDir, out: Path) -> Path:
    take_backup(state, out, "", (), "0.1.0", NOON)
    return out


def everything_known(application: Application) -> set[str]:
    """Serial numbers in the store and in what of the log is not done yet."""
    waiting = application.log.read(Topic.READINGS, GROUP, 1_000_000)
    known = {str(device) for device in application.store.latest_readings()}
    return known | {one.key for one in waiting}


@pytest.mark.slow
def test_readings_accepted_before_a_backup_are_in_it_and_the_drain_goes_on(
    place: Place, tmp_path: Path
) -> None:
    cluster = seated()
    reach = Seated(cluster)
    on_its_time = replace(place, clock=ClusterClock(cluster), policy=Policy(mode=Mode.ACT))  # type: ignore[arg-type]
    application = on_its_time.application(cluster=reach)
    application.start()
    world = World(application, cluster, reach)
    world.tick(5)
    load_admin_tokens(place.state.token)
    drain = propose_drain(application, "osd.0", "me")
    approve_drain(application, drain, "me")
    while application.store.drains()[0].state is not DrainState.DRAINING:
        world.tick()

    accepted: list[str] = []
    ending = threading.Event()

    def deliver() -> None:
        while not ending.is_set():
            reading = smart_reading(f"S{len(accepted)}", application.clock.now())
            assert application.ingest([reading]).accepted == 1
            accepted.append(str(reading.device))

    sender, worker = (
        threading.Thread(target=deliver),
        threading.Thread(target=lambda: _work_on(application, ending)),
    )
    sender.start()
    worker.start()
    while len(accepted) < ENOUGH:
        world.tick()
    before = {*accepted}
    file = taken(place.state, tmp_path / "backup.tar.gz")
    world.tick(20)
    ending.set()
    sender.join()
    worker.join()
    shut(application)

    restored = StateDir(tmp_path / "restored")
    made = restore_backup(file, restored, BELIEVED, by="me", clock=SetClock())
    assert "token" not in {one.name for one in made.files}
    again = replace(on_its_time, state=restored).application(cluster=reach)
    again.start()
    try:
        assert before <= everything_known(again)
        work(again)
        assert before <= {str(device) for device in again.store.latest_readings()}
        (kept,) = again.store.drains()
        assert (kept.id, kept.state) == (drain.id, DrainState.DRAINING)
        later = World(again, cluster, reach)
        for _ in range(3000):
            later.tick()
            if again.store.drains()[0].state is DrainState.VERIFIED:
                break
        assert again.store.drains()[0].state is DrainState.VERIFIED
        assert again.store.journal(drain.id)[0].caller == "me"
    finally:
        shut(again)


def _work_on(application: Application, ending: threading.Event) -> None:
    while not ending.is_set():
        application.step_worker()


def test_a_reading_that_is_scored_between_the_copies_is_in_one_of_them(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    application = place.application()
    application.start()
    application.ingest([smart_reading("A")])
    copy = taking._copy_state_file

    def copied(path: Path, to: Path) -> None:
        copy(path, to)
        work(application)

    monkeypatch.setattr(taking, "_copy_state_file", copied)
    file = taken(place.state, tmp_path / "backup.tar.gz")
    shut(application)
    restored = StateDir(tmp_path / "restored")
    restore_backup(file, restored, BELIEVED, by="me", clock=SetClock())
    again = replace(place, state=restored).application()
    try:
        assert everything_known(again) == {"ST4000DM000_A"}
    finally:
        shut(again)


@pytest.mark.slow
def test_bundles_outlooks_halt_and_silences_come_along(place: Place, tmp_path: Path) -> None:
    application = place.application()
    application.start()
    application.ingest(week_of("A", pending=400))
    work(application)
    application.halt("storm", "me")
    shelf = BundleStore(place.state.bundles)
    shelf.promote(shelf.install(DEFAULT))
    file = taken(place.state, tmp_path / "backup.tar.gz")
    shut(application)
    restored = StateDir(tmp_path / "restored")
    restore_backup(file, restored, BELIEVED, by="me", clock=SetClock())
    assert BundleStore(restored.bundles).roles() == shelf.roles()
    assert BundleStore(restored.bundles).verify_folder(shelf.roles().champion or "").is_dir()
    store = SqliteStore(restored.store)
    assert store.halt_reason() == "storm"
    assert [one.status for one in store.latest_outlooks().values()] == [Status.BAD]
    store.close()


def test_a_backup_is_for_its_owner_only_and_holds_no_secret(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state = StateDir(tmp_path / "state").ensure_exists()
    SqliteStore(state.store).close()
    load_admin_tokens(state.token)
    (state.path / ".pgpass").write_text("db:5432:predrain:predrain:hunter2\n")
    settings, out = tmp_path / "predrain.toml", tmp_path / "backup.tar.gz"
    settings.write_text(
        f"[service]\nstate = '{state.path}'\nport = 9000\n"
        "[store]\nurl = 'postgresql://predrain:pa55word@db.example.org/history'\n"
        "[forecast]\ntracking_uri = 'postgresql://mlflow:s3same@db.example.org/mlflow'\n"
        f"[webhook]\nurl = 'https://jo:swordfish@example.org/hook'\nsecret_file = '{settings}'\n"
    )
    assert main(["backup", "--out", str(out), "--config", str(settings)]) == 0
    told = capsys.readouterr().out
    assert "pg_dump" in told
    assert "postgresql://predrain:***@db.example.org/history" in told
    assert out.stat().st_mode & 0o777 == 0o600
    raw = gzip.decompress(out.read_bytes())
    assert b"port = 9000" in raw
    for secret in (b"pa55word", b"s3same", b"swordfish", b"hunter2", state.token.read_bytes().strip()):
        assert secret not in raw
    assert (
        main(["restore", str(out), "--state", str(tmp_path / "new"), "--key", str(state.path / "backup.pub")])
        == 0
    )


def test_a_folder_that_is_not_there_is_named_as_what_is_missing(tmp_path: Path) -> None:
    state = StateDir(tmp_path / "state").ensure_exists()
    SqliteStore(state.store).close()
    with pytest.raises(Refusal, match=r"/none is no folder that this user may write; make it"):
        taken(state, tmp_path / "none" / "backup.tar.gz")


def test_a_secret_that_is_written_with_escapes_takes_the_settings_with_it(tmp_path: Path) -> None:
    from predrain.service.backup.secret_blanking import blank_secrets
    from predrain.service.config.settings import load_settings

    settings = tmp_path / "predrain.toml"
    settings.write_text('[store]\nurl = "postgresql://predrain:pa55\\u0077ord@db/history"\n')
    assert blank_secrets(settings.read_text(), load_settings(settings, {})).startswith("# left out")


def test_the_commands_say_what_they_did(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    state, out = StateDir(tmp_path / "state").ensure_exists(), tmp_path / "backup.tar.gz"
    SqliteStore(state.store).close()
    assert main(["backup", "--out", str(out), "--state", str(state.path)]) == 0
    assert (
        main(["restore", str(out), "--state", str(tmp_path / "new"), "--key", str(state.path / "backup.pub")])
        == 0
    )
    assert "the first start makes a new token file" in capsys.readouterr().out
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o700
    assert main(["backup", "--out", str(out), "--state", str(state.path)]) == 1
    assert "is there already" in capsys.readouterr().err


def test_a_damaged_store_is_not_backed_up(tmp_path: Path) -> None:
    state = StateDir(tmp_path / "state").ensure_exists()
    store = SqliteStore(state.store)
    store.add_readings(smart_reading(f"{n}") for n in range(200))
    store.close()
    raw = bytearray(state.store.read_bytes())
    for page in range(2 * 4096, len(raw), 4096):
        raw[page : page + 64] = b"\xa5" * 64
    state.store.write_bytes(raw)
    with pytest.raises(CannotBackUp, match=r"store\.sqlite"):
        taken(state, tmp_path / "backup.tar.gz")
    assert {one.name for one in tmp_path.iterdir()} == {"state"}


@pytest.fixture
def backup(tmp_path: Path) -> Path:
    """A small backup."""
    state = StateDir(tmp_path / "state").ensure_exists()
    store = SqliteStore(state.store)
    store.add_readings(smart_reading(f"{n}") for n in range(50))
    store.close()
    return taken(state, tmp_path / "backup.tar.gz")


def test_nothing_is_restored_over_what_is_there(backup: Path, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "notes.txt").write_text("mine")
    with pytest.raises(StateUnusable, match="is not empty"):
        restore_backup(backup, StateDir(tmp_path / "there"), BELIEVED, by="me", clock=SetClock())
    assert [one.name for one in (tmp_path / "there").iterdir() if one.name != "lock"] == ["notes.txt"]


def test_a_state_in_use_is_not_restored_into(backup: Path, tmp_path: Path) -> None:
    with StateDir(tmp_path / "there"), pytest.raises(StateInUse):
        restore_backup(backup, StateDir(tmp_path / "there"), BELIEVED, by="me", clock=SetClock())


def test_a_killed_restore_leaves_no_usable_state_until_it_is_done_again(backup: Path, tmp_path: Path) -> None:
    state = StateDir(tmp_path / "there").ensure_exists()
    state.restoring.mkdir()
    (state.restoring / "store.sqlite").write_bytes(b"half")
    with pytest.raises(StateUnusable, match="did not end"):
        state.__enter__()
    restore_backup(backup, state, BELIEVED, by="me", clock=SetClock())
    with state:
        assert state.store.exists()


Damage = Callable[[bytes], bytes]


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        pytest.param(lambda raw: raw[: len(raw) // 2], "cut short", id="torn"),
        pytest.param(lambda raw: raw[:0], "damaged", id="empty"),
        pytest.param(lambda raw: b"hello " + raw, "damaged", id="something else"),
        pytest.param(
            lambda raw: raw[:4000] + b"\xff" * 64 + raw[4064:], "damaged|checksum|do not", id="bits"
        ),
    ],
)
def test_a_damaged_backup_leaves_nothing_behind(
    backup: Path, tmp_path: Path, damage: Damage, why: str
) -> None:
    backup.write_bytes(damage(backup.read_bytes()))
    with pytest.raises(Refusal, match=why):
        restore_backup(backup, StateDir(tmp_path / "there"), BELIEVED, by="me", clock=SetClock())
    assert [one.name for one in (tmp_path / "there").iterdir()] == ["lock"]


def forged(path: Path, members: Sequence[tarfile.TarInfo | tuple[str, bytes]], **head: object) -> Path:
    """Write an archive of any members, with a manifest that fits the files that it names, and return its path."""
    named = [one for one in members if isinstance(one, tuple)]
    files = [
        {
            "name": name.removeprefix("state/"),
            "size": len(content),
            "sha256": hashlib.sha256(content).hexdigest(),
        }
        for name, content in named
    ]
    manifest = {
        "format": 1, "predrain": "0.1.0", "made_at": NOON.isoformat(), "elsewhere": [], "files": files, **head,
    }  # fmt: skip
    with tarfile.open(path, "w:gz") as archive:
        for one in [("manifest.json", json.dumps(manifest).encode()), *members]:
            if isinstance(one, tarfile.TarInfo):
                archive.addfile(one)
                continue
            member = tarfile.TarInfo(one[0])
            member.size = len(one[1])
            archive.addfile(member, io.BytesIO(one[1]))
    return path


def link(name: str, to: str) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = tarfile.SYMTYPE, to
    return member


@pytest.mark.parametrize(
    "name",
    [
        "../evil",
        "/etc/evil",
        "a/../../evil",
        "a//b",
        "./a",
        "",
        "a\\..\\b",
        "a\0b",
        "token",
        "lock",
        "backup.key",
        "backup.pub",
        ".restoring/x",
        "é",
    ],
)
def test_no_file_of_a_backup_leads_out_of_the_state(tmp_path: Path, name: str) -> None:
    file = forged(tmp_path / "forged.tar.gz", [(f"state/{name}", b"evil")])
    with pytest.raises(Refusal, match="do not trust it"):
        restore_backup(file, StateDir(tmp_path / "there"), BELIEVED, by="me", clock=SetClock())
    assert {one.name for one in tmp_path.iterdir()} == {"forged.tar.gz", "there"}
    assert [one.name for one in (tmp_path / "there").iterdir()] == ["lock"]


def test_a_link_or_a_file_that_the_manifest_does_not_name_is_refused(tmp_path: Path) -> None:
    for members in (
        [link("state/store.sqlite", "/etc/passwd")],
        [("state/a", b"x"), link("state/b", "/etc")],
    ):
        file = forged(tmp_path / "forged.tar.gz", members)
        with pytest.raises(Refusal, match="holds more than it names"):
            restore_backup(file, StateDir(tmp_path / "there"), BELIEVED, by="me", clock=SetClock())


def test_content_that_is_not_what_its_checksum_says_is_refused(tmp_path: Path) -> None:
    kept = [{"name": "roles.json", "size": 4, "sha256": "0" * 64}]
    file = forged(tmp_path / "forged.tar.gz", [("state/roles.json", b"evil")], files=kept)
    with pytest.raises(Refusal, match="not what its checksum says"):
        restore_backup(file, StateDir(tmp_path / "there"), BELIEVED, by="me", clock=SetClock())


def test_a_backup_that_would_fill_the_disk_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    kept = [{"name": "store.sqlite", "size": 1 << 60, "sha256": "0" * 64}]
    file = forged(tmp_path / "forged.tar.gz", [("state/store.sqlite", b"")], files=kept)
    with pytest.raises(Refusal, match="make room"):
        restore_backup(file, StateDir(tmp_path / "there"), BELIEVED, by="me", clock=SetClock())


def test_a_backup_of_a_newer_predrain_is_refused(tmp_path: Path) -> None:
    file = forged(tmp_path / "forged.tar.gz", [], format=3, files="something else by then")
    with pytest.raises(Refusal, match="has format 3 and this predrain knows 2"):
        restore_backup(file, StateDir(tmp_path / "there"), BELIEVED, by="me", clock=SetClock())


def test_a_store_of_a_newer_predrain_is_refused_before_it_is_in_place(tmp_path: Path) -> None:
    state = StateDir(tmp_path / "state").ensure_exists()
    SqliteStore(state.store).close()
    with closing(sqlite3.connect(state.store)) as file, file:
        file.execute("UPDATE alembic_version SET version_num = '0099'")
    backup = taken(state, tmp_path / "backup.tar.gz")
    with pytest.raises(Refusal, match="update predrain"):
        restore_backup(backup, StateDir(tmp_path / "there"), BELIEVED, by="me", clock=SetClock())
    assert [one.name for one in (tmp_path / "there").iterdir()] == ["lock"]
