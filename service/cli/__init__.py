"""The command line. One file a command; packages are imported when their command runs.

Exit codes: 0 done, 1 failed (one plain sentence on stderr, with the cure), 2 usage, 3 done in part.
"""

from __future__ import annotations

import os
import sys

from cyclopts import App, CycloptsError

from data.refusal import Refusal

# LightGBM's OpenMP threads spin while they wait and starve all else (measured: 39x on a busy machine).
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
# Unless told not to, MLflow reports its use to its makers, prints addresses and asks a dead server for minutes.
for name, value in (
    ("DISABLE_TELEMETRY", "true"),
    ("SUPPRESS_PRINTING_URL_TO_STDOUT", "true"),
    ("HTTP_REQUEST_MAX_RETRIES", "2"),
):
    os.environ.setdefault(f"MLFLOW_{name}", value)

app = App(
    name="predrain",
    help="Forecasts disk failures in Ceph clusters and drains the dying OSDs before they fail.",
    version_flags=["--version"],
)
smart = App(name="smart", help="Read smartctl's output.")
drain = App(name="drain", help="Plan, ask for, approve and watch drains.")
config = App(name="config", help="Check settings, list them, make tokens.")
deadletter = App(name="deadletter", help="Readings that could not be taken: list them, send them again.")
models = App(name="models", help="Bundles: list, put on trial, promote, go back, compare.")
for group in (smart, drain, config, deadletter, models):
    app.command(group)

app.command("service.cli.up:up", name="up")
app.command("service.cli.demo:demo", name="demo")
app.command("service.cli.halt:halt", name="halt")
app.command("service.cli.halt:unhalt", name="unhalt")
app.command("service.cli.outcome:outcome", name="outcome")
app.command("service.cli.doctor:doctor", name="doctor")
app.command("service.cli.score:score", name="score")
app.command("service.cli.train:train", name="train")
app.command("service.cli.evaluate:evaluate", name="evaluate")
app.command("service.cli.backtest:backtest", name="backtest")
smart.command("service.cli.smart:parse", name="parse")
drain.command("service.cli.drain:listing", name="list")
drain.command("service.cli.drain:plan", name="plan")
drain.command("service.cli.drain:apply", name="apply")
drain.command("service.cli.drain:approve", name="approve")
drain.command("service.cli.drain:pause", name="pause")
drain.command("service.cli.drain:resume", name="resume")
drain.command("service.cli.drain:cancel", name="cancel")
drain.command("service.cli.drain:explain", name="explain")
config.command("service.cli.config:check", name="check")
config.command("service.cli.config:show", name="show")
config.command("service.cli.config:token", name="token")
models.command("service.cli.models:listing", name="list")
models.command("service.cli.models:challenge", name="challenge")
models.command("service.cli.models:promote", name="promote")
models.command("service.cli.models:rollback", name="rollback")
models.command("service.cli.models:compare", name="compare")
deadletter.command("service.cli.deadletter:listing", name="list")
deadletter.command("service.cli.deadletter:replay", name="replay")


GROUPS = (app, smart, drain, config, deadletter, models)


def _describe() -> None:
    """Import every command, so that a list of commands has the first line of each docstring."""
    for group in GROUPS:
        for name in group:
            group[name]


def main(argv: list[str] | None = None) -> int:
    """Run one command; returns its exit code."""
    arguments = sys.argv[1:] if argv is None else argv
    debug = "--debug" in arguments
    arguments = [argument for argument in arguments if argument != "--debug"]
    if not arguments or {"--help", "-h"} & set(arguments):
        _describe()
    try:
        result = app(arguments, exit_on_error=False, result_action="return_value")
    except CycloptsError:
        return 2
    except Refusal as refusal:
        if debug:
            raise
        print(f"predrain: {refusal}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        sys.stderr.close()
        return 0
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        if debug:
            raise
        kind = type(error).__name__
        print(
            f"predrain: unexpected {kind}: {error}; run again with --debug for the traceback", file=sys.stderr
        )
        return 1
    return result if isinstance(result, int) else 0


def run() -> None:
    """Entry point of the `predrain` command."""
    sys.exit(main())
