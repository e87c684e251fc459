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
from predrain.service.cli.audited_commands import record_done
from predrain.service.cli.shared_options import THIS_MACHINE, AsJson, StateAddress, make_console, print_json
from predrain.service.config.state_directory import StateDir

if TYPE_CHECKING:
    from predrain.models.deploy.bundle_registry import Registry
    from predrain.models.deploy.bundle_store import BundleRoles, BundleStore
    from predrain.models.deploy.model_comparison import Comparison
    from predrain.service.config.settings import Settings
    from predrain.service.forecasting.deployed_models import DeployedModels

Track = Annotated[
    str | None,
    Parameter(
        name="--tracking-uri",
        help="MLflow store: sqlite:///FILE or a server's URI; the settings', else STATE/models.sqlite.",
    ),
]
FOLLOWS = "A running `predrain up` takes it within seconds, without a restart"


class UntriedChallenger(Refusal):
    """A challenger without a single forecast would be promoted."""


@dataclass(frozen=True, slots=True)
class BundleLocation:
    """The places in which one service keeps its bundles."""

    state: StateDir
    tracking_uri: str | None
    base: Path | None
    """The bundle of the settings, which scores until one is promoted."""
    settings: Settings

    @property
    def bundle_store(self) -> BundleStore:
        """The bundles that are installed."""
        from predrain.models.deploy.bundle_store import BundleStore

        return BundleStore(self.state.bundles)

    def registry(self) -> Registry | None:
        """The registry; None while there is none. Raises NoTracking."""
        from predrain.models.deploy.bundle_registry import Registry

        if self.tracking_uri is None and not self.state.registry.is_file():
            return None
        print("opening the model registry", file=sys.stderr, flush=True)
        return Registry(self.tracking_uri or f"sqlite:///{self.state.registry}")


def list_bundles_command(
    *, where: StateAddress = THIS_MACHINE, tracking_uri: Track = None, as_json: AsJson = False
) -> int:
    """Registered versions, newest first, and what is installed here.

    Example: predrain models list
    """
    place = _find_bundle_location(where, tracking_uri)
    roles = place.bundle_store.roles()
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
            told.append(
                {"version": None, "name": _describe_bundle(place, digest), "here": role, "digest": digest}
            )
    if as_json:
        print_json(told)
    else:
        _print_bundle_table(told)
        if roles.champion is None:
            print("nothing is promoted here: the bundle of the settings scores, or the one that ships")
    if missing is not None:
        print(f"predrain: {missing}", file=sys.stderr)
        return 3
    return 0


def set_challenger_command(
    bundle: Annotated[str | None, Parameter(help="Version, alias or folder; none ends the trial.")] = None,
    /,
    *,
    where: StateAddress = THIS_MACHINE,
    tracking_uri: Track = None,
) -> int:
    """Let a bundle score in the champion's shadow: it is written down, never shown, and proposes nothing.

    Example: predrain models challenge 3
    """
    place = _require_writable_location(where, tracking_uri)
    if bundle is None:
        place.bundle_store.challenge(None)
        record_done(place.settings, "models challenge", {"bundle": None})
        print("no bundle is on trial any more")
    else:
        digest = _install_named_bundle(place, bundle)
        place.bundle_store.challenge(digest)
        record_done(place.settings, "models challenge", {"bundle": digest})
        print(f"{_describe_bundle(place, digest)} is challenger. {FOLLOWS}; see predrain models compare.")
    return _update_registry_aliases(place)


def promote_bundle_command(
    bundle: Annotated[
        str | None, Parameter(help="Version, alias or folder; the challenger by default.")
    ] = None,
    /,
    *,
    untried: Annotated[
        bool, Parameter(negative="", help="Promote a challenger that has not scored a disk here yet.")
    ] = False,
    where: StateAddress = THIS_MACHINE,
    tracking_uri: Track = None,
) -> int:
    """Let a bundle score here. It is verified, installed in the state directory, and taken by a running service.

    Example: predrain models promote 3
    """
    from predrain.models.deploy.bundle_store import NoSuchBundle

    place = _require_writable_location(where, tracking_uri)
    challenger = place.bundle_store.roles().challenger
    digest = challenger if bundle is None else _install_named_bundle(place, bundle)
    if digest is None:
        raise NoSuchBundle("There is no challenger here; name a version, an alias or a folder to promote.")
    if digest == challenger and not untried and not _has_scored(place, digest):
        raise UntriedChallenger(
            "The challenger has not scored a disk here yet, so nothing is known of it. Let the service run with it "
            "for some weeks (predrain models compare says how it stands), or promote it with --untried."
        )
    place.bundle_store.promote(digest)
    record_done(place.settings, "models promote", {"bundle": digest})
    quiet = where.settings().policy.new_bundle_quiet_hours
    print(
        f"{_describe_bundle(place, digest)} is champion. {FOLLOWS}; nothing is proposed by itself for {quiet:.0f} h."
    )
    return _update_registry_aliases(place)


def rollback_bundle_command(*, where: StateAddress = THIS_MACHINE, tracking_uri: Track = None) -> int:
    """Let the bundle of before score again. Needs no registry.

    Example: predrain models rollback
    """
    place = _require_writable_location(where, tracking_uri)
    roles = place.bundle_store.rollback()
    record_done(place.settings, "models rollback", {"bundle": roles.champion})
    now = "the bundle of the settings" if roles.champion is None else _describe_bundle(place, roles.champion)
    print(f"{now} is champion again. {FOLLOWS}.")
    return _update_registry_aliases(place)


def compare_bundles_command(*, where: StateAddress = THIS_MACHINE, as_json: AsJson = False) -> int:
    """Champion and challenger on what has happened since both forecast: failures foretold, false alarms, Brier score.

    Example: predrain models compare
    """
    with _open_model_comparison(_find_bundle_location(where, None)) as (deployed_models, comparison):
        if as_json:
            from predrain.service.rest.forecast_routes import comparison_body

            print_json(comparison_body(comparison).model_dump(mode="json"))
            return 0
        from rich.table import Table

        table = Table("", "bundle", "foretold", "of them bad", "false alarms", "of them bad", "Brier", "expected",
                      "median lead", box=None)  # fmt: skip
        names = [
            one.name for one in (deployed_models.champion, deployed_models.challenger) if one is not None
        ]
        for role, name, one in zip(("champion", "challenger"), names, comparison.standings, strict=False):
            table.add_row(
                role,
                name,
                f"{one.detected} of {comparison.failures}",
                str(one.detected_bad),
                f"{one.false_alarms} of {comparison.windows}",
                str(one.false_alarms_bad),
                "not known" if one.brier is None else f"{one.brier:.5f}",
                f"{one.expected:.1f} for {comparison.observed}",
                "not known" if one.lead_days is None else f"{one.lead_days:.0f} days",
            )
        make_console().print(table)
        print(
            f"{comparison.rows} forecasts with a known outcome; healthy windows are a disk's 30 days. "
            + comparison.sentence()
        )
    return 0


@contextmanager
def _open_model_comparison(place: BundleLocation) -> Iterator[tuple[DeployedModels, Comparison]]:
    from predrain.data.clock import SystemClock
    from predrain.data.scorebook import Scorebook
    from predrain.models.deploy.bundle_store import NoSuchBundle
    from predrain.service.forecasting.deployed_models import DeployedModels
    from predrain.service.forecasting.forecast_health import compare_with_challenger
    from predrain.service.processes.up import forecaster_of
    from predrain.service.storage.backends import standing_store

    state = place.state
    if not state.scorebook.is_file():
        raise NoSuchBundle(f"{state.path} holds no forecasts yet; start the service there (predrain up).")
    print("reading forecasts and outcomes", file=sys.stderr, flush=True)
    deployed_models = DeployedModels(forecaster_of(place.base), state.bundles)
    deployed_models.load_promoted_models()
    assert deployed_models.champion is not None
    if deployed_models.trouble is not None:
        raise NoSuchBundle(deployed_models.trouble)
    with standing_store(place.settings) as store, closing(Scorebook(state.scorebook)) as scorebook:
        if store is None:
            raise NoSuchBundle(f"{state.path} holds no forecasts yet; start the service there (predrain up).")
        now = SystemClock().now()
        yield (
            deployed_models,
            compare_with_challenger(
                deployed_models.champion, deployed_models.challenger, scorebook, store, now
            )[0],
        )


def _find_bundle_location(where: StateAddress, tracking_uri: str | None) -> BundleLocation:
    settings = where.settings()
    return BundleLocation(
        StateDir(settings.service.state),
        tracking_uri or settings.forecast.tracking_uri,
        settings.forecast.bundle,
        settings,
    )


def _require_writable_location(where: StateAddress, tracking_uri: str | None) -> BundleLocation:
    """Return the place of the bundles, for a command that writes there. Raises StateUnusable."""
    place = _find_bundle_location(where, tracking_uri)
    place.state.for_its_owner()
    return place


def _install_named_bundle(place: BundleLocation, word: str) -> str:
    """Install the bundle of a version, an alias or a folder in the bundle store. Return its digest."""
    folder = Path(word)
    if not word.isdigit() and folder.is_dir():
        return _install_bundle_folder(place, folder)
    registry = place.registry()
    if registry is None:
        from predrain.models.deploy.bundle_store import NoSuchBundle

        raise NoSuchBundle(
            f"There is no folder {word}, and no registry in {place.state.path} to look for a version in; "
            "name a folder made by `predrain train --out`, or say --tracking-uri."
        )
    with TemporaryDirectory() as kept:
        return _install_bundle_folder(place, registry.fetch(registry.version(word), Path(kept)))


def _has_scored(place: BundleLocation, digest: str) -> bool:
    """Return whether the scorebook holds a forecast of the installed bundle."""
    from predrain.data.scorebook import Scorebook
    from predrain.service.forecasting.bundle_choice import BundledForecaster

    if not place.state.scorebook.is_file():
        return False
    fingerprint = BundledForecaster.load(place.bundle_store.verify_folder(digest)).fingerprint
    with closing(Scorebook(place.state.scorebook)) as scorebook:
        return scorebook.has_lines(fingerprint)


def _install_bundle_folder(place: BundleLocation, folder: Path) -> str:
    place.state.ensure_exists()
    return place.bundle_store.install(folder)


def _describe_bundle(place: BundleLocation, digest: str) -> str:
    from predrain.models.forecast.bundle import Bundle

    return f"{Bundle.load(place.bundle_store.verify_folder(digest)).name} ({digest[:12]})"


def _update_registry_aliases(place: BundleLocation) -> int:
    """Set the registry's aliases to the bundles installed here. Return 3 if the registry refuses, else 0."""
    from predrain.models.deploy.bundle_registry import CHALLENGER, CHAMPION

    roles: BundleRoles = place.bundle_store.roles()
    try:
        registry = place.registry()
        if registry is not None:
            registry.set_alias(CHAMPION, roles.champion)
            registry.set_alias(CHALLENGER, roles.challenger)
    except Refusal as refusal:
        print(f"predrain: done here, but not in the registry: {refusal}", file=sys.stderr)
        return 3
    return 0


def _print_bundle_table(told: list[dict[str, Any]]) -> None:
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
    console = make_console()
    if not console.is_terminal:
        console.width = 140
    if told:
        console.print(table)
    else:
        print("no bundle is registered; `predrain train --tracking-uri` registers one")
