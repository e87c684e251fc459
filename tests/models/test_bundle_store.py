"""The shelf of installed bundles: roles change in one step, a way back stays, nothing that was touched is loaded."""

from __future__ import annotations

import hashlib
import shutil
import threading
from pathlib import Path

import pytest

from predrain.models.deploy.bundle_store import BundleRoles, BundleStore, NoSuchBundle, digest_of
from predrain.models.forecast.bundle import DEFAULT, Bundle, CorruptBundle, save_bundle


@pytest.fixture(scope="module")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Three bundles with the trees of the one that ships, and other names."""
    shipped, made = Bundle.load(), []
    for name in ("one", "two", "three"):
        folder = tmp_path_factory.mktemp("bundles") / name
        save_bundle(folder, type(shipped.facts)(**{**_fields(shipped), "name": name}), shipped.booster, name)
        made.append(folder)
    return made


def _fields(bundle: Bundle) -> dict[str, object]:
    return {name: getattr(bundle.facts, name) for name in bundle.facts.__struct_fields__}


@pytest.fixture
def shelf(tmp_path: Path) -> BundleStore:
    return BundleStore(tmp_path / "state" / "bundles")


def champion_of(shelf: BundleStore) -> str | None:
    digest = shelf.roles().champion
    return None if digest is None else Bundle.load(shelf.verify_folder(digest)).name


def test_nothing_is_promoted_on_an_empty_shelf(shelf: BundleStore) -> None:
    assert shelf.roles() == BundleRoles()
    assert not shelf.path.exists()
    with pytest.raises(NoSuchBundle, match="Nothing was promoted"):
        shelf.rollback()


@pytest.mark.slow
def test_promotions_are_gone_back_through_one_by_one(shelf: BundleStore, bundles: list[Path]) -> None:
    for folder in bundles:
        shelf.promote(shelf.install(folder))
    seen = []
    for _ in bundles:
        seen.append(champion_of(shelf))
        shelf.rollback()
    assert seen == ["three", "two", "one"]
    assert shelf.roles().champion is None


@pytest.mark.slow
def test_promoting_the_champion_again_does_not_lengthen_the_way_back(
    shelf: BundleStore, bundles: list[Path]
) -> None:
    digest = shelf.install(bundles[0])
    assert shelf.promote(digest) == shelf.promote(digest) == BundleRoles((digest,))


@pytest.mark.slow
def test_a_challenger_that_is_promoted_is_on_trial_no_more(shelf: BundleStore, bundles: list[Path]) -> None:
    one, two = (shelf.install(folder) for folder in bundles[:2])
    shelf.promote(one)
    two = shelf.install(bundles[1])
    assert shelf.challenge(two).challenger == two
    assert shelf.promote(two) == BundleRoles((one, two), None)
    with pytest.raises(NoSuchBundle, match="champion already"):
        shelf.challenge(two)


@pytest.mark.slow
def test_only_bundles_with_a_role_are_kept(shelf: BundleStore, bundles: list[Path]) -> None:
    digests = [shelf.install(folder) for folder in bundles]
    shelf.promote(digests[0])
    kept = {path.name for path in shelf.path.iterdir() if path.is_dir()}
    assert kept == {digests[0]}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["model.txt", "bundle.json", "SHA256SUMS"])
def test_an_installed_file_that_was_changed_is_refused_and_cured_by_promoting_again(
    shelf: BundleStore, bundles: list[Path], name: str
) -> None:
    digest = shelf.install(bundles[0])
    shelf.promote(digest)
    with (shelf.path / digest / name).open("ab") as file:
        file.write(b"\n")
    with pytest.raises(CorruptBundle, match=r"rollback|restore"):
        Bundle.load(shelf.verify_folder(digest))
    shelf.promote(shelf.install(bundles[0]))
    assert champion_of(shelf) == "one"


@pytest.mark.slow
def test_checksums_made_to_fit_a_changed_file_do_not_help(shelf: BundleStore, bundles: list[Path]) -> None:
    digest = shelf.install(bundles[0])
    folder = shelf.path / digest
    before = (folder / "CARD.md").read_bytes()
    (folder / "CARD.md").write_bytes(b"better than it is")
    old, new = (hashlib.sha256(text).hexdigest() for text in (before, b"better than it is"))
    (folder / "SHA256SUMS").write_text((folder / "SHA256SUMS").read_text().replace(old, new))
    Bundle.load(folder)
    with pytest.raises(CorruptBundle, match="not the bundle that was installed"):
        shelf.verify_folder(digest)


@pytest.mark.slow
def test_a_broken_bundle_is_not_installed(shelf: BundleStore, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    shutil.copytree(DEFAULT, broken)
    with (broken / "model.txt").open("a") as file:
        file.write("x")
    with pytest.raises(CorruptBundle, match="not what SHA256SUMS says"):
        shelf.install(broken)
    with pytest.raises(CorruptBundle, match="holds no bundle"):
        shelf.install(tmp_path)
    assert shelf.roles() == BundleRoles()


@pytest.mark.slow
def test_a_pickle_beside_a_bundle_is_not_installed(
    shelf: BundleStore, bundles: list[Path], tmp_path: Path
) -> None:
    shutil.copytree(bundles[0], tmp_path / "with")
    (tmp_path / "with" / "model.pkl").write_bytes(b"\x80\x04.")
    folder = shelf.path / shelf.install(tmp_path / "with")
    assert not (folder / "model.pkl").exists()
    assert digest_of(folder) == digest_of(bundles[0])


@pytest.mark.slow
def test_a_reader_meets_whole_roles_while_others_change_them(shelf: BundleStore, bundles: list[Path]) -> None:
    one, two = (shelf.install(folder) for folder in bundles[:2])
    shelf.promote(one)
    two = shelf.install(bundles[1])
    shelf.challenge(two)
    lines, over = set(), threading.Event()

    def read() -> None:
        while not over.is_set():
            roles = shelf.roles()
            lines.add((roles.line, roles.challenger))

    reader = threading.Thread(target=read)
    reader.start()
    for _ in range(20):
        shelf.challenge(None)
        two = shelf.install(bundles[1])
        shelf.challenge(two)
    over.set()
    reader.join()
    assert lines <= {((one,), None), ((one,), two)}


def test_roles_that_cannot_be_read_are_told(shelf: BundleStore) -> None:
    shelf.path.mkdir(parents=True)
    (shelf.path / "roles.json").write_text('{"line": 3}')
    with pytest.raises(CorruptBundle, match="promote again"):
        shelf.roles()
