"""`python -m tests.chaos.host FOLDER`: `predrain collect` on a host whose clock can jump, with a witness beside it.

The process differs from `predrain collect` in five points only. Its rounds come every few seconds in place of hours,
which is less than the settings allow. Its clocks are wrong by the number of seconds in the file `shift`. Smartctl runs
without sudo, because the drives are files. Admin sockets are searched for in FOLDER, so that the process does not ask
the OSDs of this machine. The spool has a witness (tests.chaos.witness).

The clocks are `data.clock.SystemClock`, the only clock that the project's rules allow, and `time.time`, for Kafka's
client. The kernel's own clock is not changed, because other processes use it too.
"""

from __future__ import annotations

import dataclasses
import sys
import time
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import msgspec

from predrain.data.clock import SystemClock

ROUND_SECONDS = 10.0
_LOOK_SECONDS = 0.2


class _Shift:
    """By how much the clock is wrong now, looked up a few times a second."""

    def __init__(self, file: Path) -> None:
        self._file, self._true = file, time.time
        self._seconds, self._looked = 0.0, -1.0

    def seconds(self) -> float:
        if time.monotonic() - self._looked > _LOOK_SECONDS:
            self._seconds, self._looked = float(self._file.read_text() or 0), time.monotonic()
        return self._seconds

    def time(self) -> float:
        return self._true() + self.seconds()

    def now(self) -> datetime:
        return datetime.now(UTC) + timedelta(seconds=self.seconds())


def main(folder: Path) -> None:
    """Collect as FOLDER/predrain.toml says, until SIGTERM."""
    shift = _Shift(folder / "shift")
    time.time = shift.time
    SystemClock.now = lambda _: shift.now()  # type: ignore[assignment,method-assign]

    from predrain.collector.latency import admin_sockets
    from predrain.service.config.collector_table import load_collector_settings
    from predrain.service.processes import collector_process
    from predrain.service.runtime import logging_setup
    from tests.chaos.witness import WitnessedSpool

    WitnessedSpool.folder = folder
    for name, ours in (
        ("Spool", WitnessedSpool),
        ("admin_sockets", partial(admin_sockets, folder)),
        ("_SUDO", None),
    ):
        assert hasattr(collector_process, name)  # else this would change nothing
        setattr(collector_process, name, ours)
    settings = load_collector_settings(folder / "predrain.toml")
    table = msgspec.structs.replace(settings.collector, reading_interval_minutes=ROUND_SECONDS / 60)
    logging_setup.configure_logging()
    collector_process.run_collector(
        dataclasses.replace(settings, collector=table), lambda text: print(text, file=sys.stderr, flush=True)
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
