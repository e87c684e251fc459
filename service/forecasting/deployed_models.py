"""The models that score: the champion, and a challenger in its shadow, according to the promoted bundles.

Promotions are followed while the service runs. A bundle that cannot be loaded changes nothing: the previous
champion stays.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from predrain.data.refusal import Refusal
from predrain.service.forecasting.forecaster import Forecaster


class DeployedModels:
    """Champion and challenger. One thread loads them; any thread may read.

    base: loads the bundle that scores until one is promoted. installed: the directory of promoted bundles
    (models.deploy.bundle_store); None: none is ever promoted.
    """

    def __init__(self, base: Callable[[], Forecaster[Any]], installed: Path | None) -> None:
        self.champion: Forecaster[Any] | None = None
        self.challenger: Forecaster[Any] | None = None
        self.trouble: str | None = None
        """The reason why a promoted bundle does not score, a sentence; None if it does."""
        self._load_base, self._installed = base, installed
        self._base: Forecaster[Any] | None = None
        self._seen: tuple[int, int] | None = None
        self._names: dict[str, str | None] = {}

    def load_promoted_models(self) -> None:
        """Load the bundles that were promoted since the last call.

        Raises what loading raises while there is no champion at all; later the reason is in `trouble`.
        """
        stamp = self._stamp()
        if self.champion is not None and self.trouble is None and stamp == self._seen:
            return
        try:
            self._take()
        except Refusal as refusal:
            if self.champion is None:
                raise
            self.trouble = str(refusal)
        else:
            self._seen, self.trouble = stamp, None

    def _take(self) -> None:
        if self._installed is None or self._stamp() is None:
            self._names = {}
            self.champion, self.challenger = self._basic(), None
            return
        from predrain.models.deploy.bundle_store import BundleStore
        from predrain.service.forecasting.bundle_choice import BundledForecaster

        bundle_store = BundleStore(self._installed)
        roles = bundle_store.roles()

        def loaded(role: str, digest: str | None, held: Forecaster[Any] | None) -> Forecaster[Any] | None:
            if digest is None:
                return None
            if held is not None and self._names.get(role) == digest:
                return held
            return BundledForecaster.load(bundle_store.verify_folder(digest))

        champion = loaded("champion", roles.champion, self.champion) or self._basic()
        if roles.challenger != self._names.get("challenger"):
            self.challenger = None  # an old challenger must not pass for the one that cannot be loaded
        self.champion, self._names = champion, {**self._names, "champion": roles.champion}
        self.challenger = loaded("challenger", roles.challenger, self.challenger)
        self._names["challenger"] = roles.challenger

    def _basic(self) -> Forecaster[Any]:
        if self._base is None:
            self._base = self._load_base()
        return self._base

    def _stamp(self) -> tuple[int, int] | None:
        """Return a value that changes with every change of roles, at the cost of one `stat`."""
        if self._installed is None:
            return None
        try:
            found = (self._installed / "roles.json").stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_ino
