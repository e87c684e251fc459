"""`predrain up`: everything in one process, answering before the heavy packages are imported."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from data.clock import SystemClock
from data.log.sqlite import SqliteLog
from data.scorebook import Scorebook, ScorebookUnusable
from data.store.sqlite import SqliteStore
from service import tokens
from service.house import House, Ports
from service.listening import Server, bind, url_of
from service.scoring.forecasting import Forecaster
from service.settings import Settings
from service.state import StateDir


def up(settings: Settings, tell: Callable[[str], None], *, watched: bool) -> None:
    """Run until SIGINT or SIGTERM. Raises what is in the way as a Refusal, before anything was started.

    `watched`: a person reads what is told, and gets an address that may act; a journal must not keep one.
    """
    with ExitStack() as closing:
        listener = bind(settings.service)
        closing.callback(listener.close)
        state = closing.enter_context(StateDir(settings.service.state))
        log = SqliteLog(state.log)
        closing.callback(log.close)
        store = SqliteStore(state.store)
        closing.callback(store.close)
        known = tokens.gather(state.token, ((one.name, one.scopes, one.sha256) for one in settings.tokens))
        once = tokens.new_token()
        known = known.adding(once, tokens.Caller("page", frozenset({tokens.Scope.READ, tokens.Scope.ACT})))
        scorebook = None
        try:
            scorebook = Scorebook(state.scorebook)
            closing.callback(scorebook.close)
        except ScorebookUnusable as unusable:
            tell(f"bundles are not compared: {unusable}")
        ports = Ports(
            log,
            store,
            SystemClock(),
            forecaster_of(settings.forecast.bundle),
            installed=state.bundles,
            scorebook=scorebook,
        )
        house = House(ports, settings.policy.policy(), settings)
        closing.callback(house.stop)
        url = url_of(listener, settings.service)

        def started() -> None:
            state.url.write_text(url + "\n")
            tell(f"predrain answers at {url}\nprograms act with the token in {state.token}")
            if watched:
                tell(f"open {url}/#token={once}\n(this address may act until the process ends)")
            house.run()

        Server(house, known, listener, started=started).serve_here()


def forecaster_of(bundle: Path | None) -> Callable[[], Forecaster[Any]]:
    """Loads the bundle when it is called: LightGBM takes longer to import than all the rest."""

    def load() -> Forecaster[Any]:
        from service.scoring.bundled import BundledForecaster

        return BundledForecaster.load(bundle)

    return load
