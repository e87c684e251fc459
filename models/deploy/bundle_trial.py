"""A trial of a bundle from outside, once, in a process of its own: a crash or hang there does no harm.

LightGBM is a C++ library that can end the process which calls it. `BundleTrials` remembers verdicts by checksum, so
that only the first start needs a trial. The bundle that ships is not tried, because it is part of the program.
"""

from __future__ import annotations

import hashlib
import json
import os
import resource
import signal
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Final

from predrain.models.forecast.bundle import DEFAULT, SUMS, Bundle, CorruptBundle

CPU_SECONDS: Final = 60
WALL_SECONDS: Final = 180.0
MEMORY_BYTES: Final = 3 << 30
"""Limit of the address space. A normal trial takes 1.5 GiB of it and touches 0.2 GiB."""
FIT: Final = "fit"
REMEMBERED: Final = 200
_ONE_THREAD: Final = ("env", "OMP_NUM_THREADS=1", "OPENBLAS_NUM_THREADS=1")
"""Each thread would reserve address space, which exceeds the limit on a large machine."""
_NOT_NEEDED: Final = ("sklearn", "pandas", "dask", "matplotlib", "graphviz")
CURE: Final = "train it again, or restore it."
"""The end of each verdict except those of `Bundle.load`, which name their own cure."""
_REFUSED: Final = 3
"""The exit code of a child process that has found a fault and printed it."""


class BundleTrials:
    """Remembered verdicts about bundles. file: where they are stored, or None to try a bundle each time."""

    def __init__(self, file: Path | None = None) -> None:
        self._file = file

    def check(self, folder: Path | None) -> None:
        """Try the bundle in `folder` unless its verdict is known. Raises CorruptBundle."""
        if folder is None or folder.resolve() == DEFAULT.resolve():
            return
        digest = _compute_trial_digest(folder)
        known = self._known()
        verdict = known.get(digest)
        if verdict is None:
            verdict, lasting = _run_trial_process(folder)
            if lasting:
                self._remember({**known, digest: verdict})
        if verdict != FIT:
            raise CorruptBundle(f"{folder} holds no usable bundle: {verdict}")

    def _known(self) -> dict[str, str]:
        try:
            found = json.loads(self._file.read_text()) if self._file is not None else {}
        except (OSError, ValueError):
            return {}
        return {str(key): str(value) for key, value in found.items()} if isinstance(found, dict) else {}

    def _remember(self, verdicts: dict[str, str]) -> None:
        """Write the verdicts. If the folder cannot be written, the only cost is a trial at the next start."""
        if self._file is None:
            return
        try:
            self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            begun = self._file.with_name(f"{self._file.name}.{os.getpid()}.part")
            begun.write_text(json.dumps(dict([*verdicts.items()][-REMEMBERED:]), indent=1))
            begun.replace(self._file)
        except OSError:
            return


def _compute_trial_digest(folder: Path) -> str:
    """Hash the bundle's content and the versions of the programs that read it.

    Another version of LightGBM may fail on a number that this one accepts.
    """
    try:
        sums = (folder / SUMS).read_bytes()
    except OSError:
        sums = b""  # `Bundle.load` will say that there is no bundle
    versions = f"{version('predrain')} {version('lightgbm')}".encode()
    return hashlib.sha256(sums + versions).hexdigest()


def _run_trial_process(folder: Path) -> tuple[str, bool]:
    """Return the verdict, and whether another trial would give the same."""
    try:
        done = subprocess.run(  # noqa: S603  (this interpreter, on a module of ours)
            [
                *_ONE_THREAD,
                sys.executable,
                "-m",
                "predrain.models.deploy.bundle_trial",
                str(folder.absolute()),
            ],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=WALL_SECONDS,
            check=False,
            cwd=Path(__file__).parents[2],
        )
    except subprocess.TimeoutExpired:
        return f"it did not forecast within {WALL_SECONDS:.0f} s when it was tried; {CURE}", False
    except OSError as error:
        return f"it could not be tried ({error}); {CURE}", False
    if done.returncode == 0:
        return FIT, True
    if done.returncode == _REFUSED:
        return done.stdout.decode(errors="replace").strip() or f"it was refused; {CURE}", True
    if done.returncode == -signal.SIGXCPU or done.returncode == -signal.SIGKILL:
        return f"it did not forecast within {CPU_SECONDS} s of processor time when it was tried; {CURE}", True
    if done.returncode < 0:
        name = signal.Signals(-done.returncode).name
        return f"the process in which it was tried ended by {name}; {CURE}", True
    return f"the process in which it was tried ended with code {done.returncode}; {CURE}", False


def _find_forecast_fault(folder: Path) -> str:
    """Describe the fault in the bundle's forecasts for drives of every kind; return "" if there is none."""
    import numpy as np

    from predrain.features.feature_schema import NAMES_IN_ORDER

    bundle = Bundle.load(folder)
    chance = np.random.default_rng(1)
    count = len(NAMES_IN_ORDER)
    plain = np.repeat(np.array([[0], [1], [-1], [np.nan], [1e30], [-1e30]]), count, axis=1)
    drawn = chance.normal(0, 1, (58, count)) * 10.0 ** chance.integers(0, 7, (58, 1))
    names = np.array([*bundle.facts.rates.models, *bundle.facts.lately, "ST0", "no such model"], dtype=object)
    x = np.vstack([plain, drawn]).astype(np.float32)
    x = x[np.arange(max(len(x), len(names))) % len(x)]
    model = names[np.arange(len(x)) % len(names)]
    forecast = bundle.forecast(x, model, np.ones(len(x), dtype=bool))
    if not np.isfinite(forecast.p_fail).all() or not ((forecast.p_fail >= 0) & (forecast.p_fail <= 1)).all():
        return "a chance that it forecasts is no probability"
    if (
        not np.isfinite(forecast.survival).all()
        or not ((forecast.survival >= 0) & (forecast.survival <= 1)).all()
    ):
        return "a survival that it forecasts is no probability"
    if not np.isfinite(bundle.contributions(x[:64], model[:64])).all():
        return "its reasons are no numbers"
    return ""


def _run_trial_child(folder: Path) -> int:
    """Try the bundle within the limits of the child process. Return the exit code."""
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS + 5))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # LightGBM works without these modules, and importing them takes twice as long as the trial.
    sys.modules.update(dict.fromkeys(_NOT_NEEDED))  # type: ignore[arg-type]
    try:
        wrong = _find_forecast_fault(folder)
    except CorruptBundle as refusal:
        print(refusal)
        return _REFUSED
    except MemoryError:
        wrong = f"it takes more than {MEMORY_BYTES >> 30} GiB of memory"
    except Exception as error:  # noqa: BLE001  (whatever it is, it would have happened in the service)
        wrong = f"it cannot forecast ({type(error).__name__}: {' '.join(str(error).split())[:200]})"
    if wrong:
        print(f"{wrong}; {CURE}")
    return _REFUSED if wrong else 0


if __name__ == "__main__":
    sys.exit(_run_trial_child(Path(sys.argv[1])))
