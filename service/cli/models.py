"""`predrain models`: which bundles there are, which one scores, which one is on trial, and how they stand."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from predrain.data.refusal import Refusal
from predrain.service.cli.options import HERE, AsJson, Where, print_json, terminal
from predrain.service.cli.recording import record_done
from predrain.service.state_directory import StateDir

if TYPE_CHECKING:
    from predrain.models.bundle_store import Roles, Shelf
    from predrain.models.model_comparison import Comparison
    from predrain.models.registry import Registry
    from predrain.service.scoring.deployed_models import Lineup
    from predrain.service.settings import Settings

Track = Annotated[
    str | None,
    Parameter(
        name="--track",
        help="MLflow store: sqlite:///FILE or a server's URI; the settings', else STATE/models.sqlite.",
    ),
]
FOLLOWS = "A running `predrain up` takes it within seconds, without a restart"


class UntriedChallenger(Refusal):
    """A challenger without a single forecast would be promoted."""


@dataclass(frozen=True, slots=True)
class BundleLocation:
    """Where one service keeps its bundles."""

    state: StateDir
    track: str | None
    base: Path | None
    """The bundle of the settings, which scores until one is promoted."""
    settings: Settings

    @property
    def shelf(self) -> Shelf:
        """The bundles that are installed."""
        from predrain.models.bundle_store import Shelf

        return Shelf(self.state.bundles)

    def registry(self) -> Registry | None:
        """The registry; None while there is none. Raises NoTracking."""
        from predrain.models.registry import Registry

        if self.track is None and not self.state.registry.is_file():
            return None
        print("opening the model registry", file=sys.stderr, flush=True)
        return Registry(self.track or f"sqlite:///{self.state.registry}")


def listing(*, where: Where = HERE, track: Track = None, as_json: AsJson = False) -> int:
    """Registered versions, newest first, and what is installed here.

    Example: predrain models list
    """
    place = _place(where, track)
    roles = place.shelf.roles()
    named = {roles.champion: "champion", roles.challenger: "challenger"}
    told, missing = [], None
    try:
        registry = place.registry()
        versions = registry.versions() if registry else ()
    except Refusal as refusal:
        versions, missing = (), str(refusal)
    for one in versions:
        until = one.parameters.get("until") or one.parameters.get("to", "")
        told.append(
            {
                "version": one.number,
                "name": one.name,
                "known_until": until,
                "deaths": int(one.figures.get("deaths", 0)),
                "made_at": one.made_at.isoformat(timespec="minutes"),
                "aliases": list(one.aliases),
                "here": named.pop(one.digest, None),
                "digest": one.digest,
            }
        )
    for digest, role in named.items():
        if digest is not None:
            told.append({"version": None, "name": _name(place, digest), "here": role, "digest": digest})
    if as_json:
        print_json(told)
    else:
        _print(told)
        if roles.champion is None:
            print("nothing is promoted here: the bundle of the settings scores, or the one that ships")
    if missing is not None:
        print(f"predrain: {missing}", file=sys.stderr)
        return 3
    return 0


def challenge(
    bundle: Annotated[str | None, Parameter(help="Version, alias or folder; none ends the trial.")] = None,
    /,
    *,
    where: Where = HERE,
    track: Track = None,
) -> int:
    """Let a bundle score in the champion's shadow: it is written down, never shown, and proposes nothing.

    Example: predrain models challenge 3
    """
    place = _changing(where, track)
    if bundle is None:
        place.shelf.challenge(None)
        record_done(place.settings, "models challenge", {"bundle": None})
        print("no bundle is on trial any more")
    else:
        digest = _installed(place, bundle)
        place.shelf.challenge(digest)
        record_done(place.settings, "models challenge", {"bundle": digest})
        print(f"{_name(place, digest)} is challenger. {FOLLOWS}; see predrain models compare.")
    return _mirrored(place)


def promote(
    bundle: Annotated[
        str | None, Parameter(help="Version, alias or folder; the challenger by default.")
    ] = None,
    /,
    *,
    untried: Annotated[
        bool, Parameter(negative="", help="Promote a challenger that has not scored a disk here yet.")
    ] = False,
    where: Where = HERE,
    track: Track = None,
) -> int:
    """Let a bundle score here. It is verified, installed in the state directory, and taken by a running service.

    Example: predrain models promote 3
    """
    from predrain.models.bundle_store import NoSuchBundle

    place = _changing(where, track)
    challenger = place.shelf.roles().challenger
    digest = challenger if bundle is None else _installed(place, bundle)
    if digest is None:
        raise NoSuchBundle("There is no challenger here; name a version, an alias or a folder to promote.")
    if digest == challenger and not untried and not _has_scored(place, digest):
        raise UntriedChallenger(
            "The challenger has not scored a disk here yet, so nothing is known of it. Let the service run with it "
            "for some weeks (predrain models compare says how it stands), or promote it with --untried."
        )
    place.shelf.promote(digest)
    record_done(place.settings, "models promote", {"bundle": digest})
    quiet = where.settings().policy.new_bundle_quiet_hours
    print(f"{_name(place, digest)} is champion. {FOLLOWS}; nothing is proposed by itself for {quiet:.0f} h.")
    return _mirrored(place)


def rollback(*, where: Where = HERE, track: Track = None) -> int:
    """Let the bundle of before score again. Needs no registry.

    Example: predrain models rollback
    """
    place = _changing(where, track)
    roles = place.shelf.rollback()
    record_done(place.settings, "models rollback", {"bundle": roles.champion})
    now = "the bundle of the settings" if roles.champion is None else _name(place, roles.champion)
    print(f"{now} is champion again. {FOLLOWS}.")
    return _mirrored(place)


def compare(*, where: Where = HERE, as_json: AsJson = False) -> int:
    """Champion and challenger on what has happened since both forecast: failures foretold, false alarms, Brier score.

    Example: predrain models compare
    """
    with _compared(_place(where, None)) as (lineup, comparison):
        if as_json:
            from predrain.service.rest.forecast import comparison_body

            print_json(comparison_body(comparison).model_dump(mode="json"))
            return 0
        from rich.table import Table

        table = Table("", "bundle", "foretold", "of them bad", "false alarms", "of them bad", "Brier", "expected",
                      "median lead", box=None)  # fmt: skip
        names = [one.name for one in (lineup.champion, lineup.challenger) if one is not None]
        for role, name, one in zip(("champion", "challenger"), names, comparison.standings, strict=False):
            table.add_row(
                role,
                name,
                f"{one.foretold} of {comparison.failures}",
                str(one.foretold_bad),
                f"{one.alarmed} of {comparison.windows}",
                str(one.alarmed_bad),
                "not known" if one.brier is None else f"{one.brier:.5f}",
                f"{one.expected:.1f} for {comparison.observed}",
                "not known" if one.lead_days is None else f"{one.lead_days:.0f} days",
            )
        terminal().print(table)
        print(
            f"{comparison.rows} forecasts with a known outcome; healthy windows are a disk's 30 days. "
            + comparison.sentence()
        )
    return 0


@contextmanager
def _compared(place: BundleLocation) -> Iterator[tuple[Lineup, Comparison]]:
    from predrain.data.clock import SystemClock
    from predrain.data.scorebook import Scorebook
    from predrain.models.bundle_store import NoSuchBundle
    from predrain.service.backends import standing_store
    from predrain.service.scoring.deployed_models import Lineup
    from predrain.service.scoring.watch import compared
    from predrain.service.up import forecaster_of

    state = place.state
    if not state.scorebook.is_file():
        raise NoSuchBundle(f"{state.path} holds no forecasts yet; start the service there (predrain up).")
    print("reading forecasts and outcomes", file=sys.stderr, flush=True)
    lineup = Lineup(forecaster_of(place.base), state.bundles)
    lineup.follow()
    assert lineup.champion is not None
    if lineup.trouble is not None:
        raise NoSuchBundle(lineup.trouble)
    with standing_store(place.settings) as store, closing(Scorebook(state.scorebook)) as scorebook:
        if store is None:
            raise NoSuchBundle(f"{state.path} holds no forecasts yet; start the service there (predrain up).")
        now = SystemClock().now()
        yield lineup, compared(lineup.champion, lineup.challenger, scorebook, store, now)[0]


def _place(where: Where, track: str | None) -> BundleLocation:
    settings = where.settings()
    return BundleLocation(
        StateDir(settings.service.state),
        track or settings.forecast.tracking,
        settings.forecast.bundle,
        settings,
    )


def _changing(where: Where, track: str | None) -> BundleLocation:
    """Where bundles are kept, for a command that writes there. Raises StateUnusable."""
    place = _place(where, track)
    place.state.for_its_owner()
    return place


def _installed(place: BundleLocation, word: str) -> str:
    """Bring a version, an alias or a folder to the shelf; returns its digest."""
    folder = Path(word)
    if not word.isdigit() and folder.is_dir():
        return _install(place, folder)
    registry = place.registry()
    if registry is None:
        from predrain.models.bundle_store import NoSuchBundle

        raise NoSuchBundle(
            f"There is no folder {word}, and no registry in {place.state.path} to look for a version in; "
            "name a folder made by `predrain train --out`, or say --track."
        )
    with TemporaryDirectory() as kept:
        return _install(place, registry.fetch(registry.version(word), Path(kept)))


def _has_scored(place: BundleLocation, digest: str) -> bool:
    """Whether the scorebook holds a forecast of the installed bundle."""
    from predrain.data.scorebook import Scorebook
    from predrain.service.scoring.bundled import BundledForecaster

    if not place.state.scorebook.is_file():
        return False
    fingerprint = BundledForecaster.load(place.shelf.folder(digest)).fingerprint
    with closing(Scorebook(place.state.scorebook)) as scorebook:
        return scorebook.has_lines(fingerprint)


def _install(place: BundleLocation, folder: Path) -> str:
    place.state.make()
    return place.shelf.install(folder)


def _name(place: BundleLocation, digest: str) -> str:
    from predrain.models.bundle import Bundle

    return f"{Bundle.load(place.shelf.folder(digest)).name} ({digest[:12]})"


def _mirrored(place: BundleLocation) -> int:
    """Let the registry's aliases say what is installed here; 3 when it cannot be told."""
    from predrain.models.registry import CHALLENGER, CHAMPION

    roles: Roles = place.shelf.roles()
    try:
        registry = place.registry()
        if registry is not None:
            registry.point(CHAMPION, roles.champion)
            registry.point(CHALLENGER, roles.challenger)
    except Refusal as refusal:
        print(f"predrain: done here, but the registry was not told: {refusal}", file=sys.stderr)
        return 3
    return 0


def _print(told: list[dict[str, Any]]) -> None:
    from rich.table import Table

    table = Table("version", "name", "known until", "deaths", "made", "aliases", "here", "digest", box=None)
    for one in told:
        table.add_row(
            str(one["version"] or "-"),
            str(one["name"]),
            str(one.get("known_until", "")),
            str(one.get("deaths", "")),
            str(one.get("made_at", "")),
            ", ".join(one.get("aliases", ())),
            str(one["here"] or ""),
            str(one["digest"])[:12],
        )
    console = terminal()
    if not console.is_terminal:
        console.width = 140
    if told:
        console.print(table)
    else:
        print("no bundle is registered; `predrain train --track` registers one")
