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

app.command("service.cli.up:up", name="up", help="Run everything in one process.")
app.command(
    "service.cli.demo:demo", name="demo", help="Run everything over a simulated cluster of real drives."
)
app.command(
    "service.cli.halt:halt", name="halt", help="Stop every command to the cluster, now, until unhalt."
)
app.command("service.cli.halt:unhalt", name="unhalt", help="Lift the halt.")
app.command("service.cli.outcome:outcome", name="outcome", help="Say what became of a disk.")
app.command("service.cli.doctor:doctor", name="doctor", help="Look for what is wrong, and say the cure.")
app.command("service.cli.score:score", name="score", help="Forecast the drives of histories.")
app.command("service.cli.train:train", name="train", help="Train a bundle on histories.")
app.command(
    "service.cli.evaluate:evaluate", name="evaluate", help="Judge scores by what became of the drives."
)
app.command(
    "service.cli.backtest:backtest",
    name="backtest",
    help="Train on the past, judge what came after, beside peers.",
)
smart.command(
    "service.cli.smart:parse", name="parse", help="Decode smartctl's output, one JSON object a line."
)
drain.command("service.cli.drain:listing", name="list", help="All drains, newest first.")
drain.command(
    "service.cli.drain:plan", name="plan", help="What draining a target would do; nothing is changed."
)
drain.command("service.cli.drain:apply", name="apply", help="Ask for drains by your word.")
drain.command("service.cli.drain:approve", name="approve", help="Let a proposed drain begin.")
drain.command("service.cli.drain:pause", name="pause", help="Hold a drain until it is resumed.")
drain.command("service.cli.drain:resume", name="resume", help="Let a paused drain go on.")
drain.command("service.cli.drain:cancel", name="cancel", help="Give up a drain and put everything back.")
drain.command(
    "service.cli.drain:explain", name="explain", help="Where a drain stands, every guard, its journal."
)
config.command("service.cli.config:check", name="check", help="Read the settings and say what is wrong.")
config.command("service.cli.config:show", name="show", help="Every setting with its unit, default and value.")
config.command("service.cli.config:token", name="token", help="Make a further token; only its hash is kept.")
models.command(
    "service.cli.models:listing", name="list", help="Registered versions, and what is installed here."
)
models.command("service.cli.models:challenge", name="challenge", help="Let a bundle score in the shadow.")
models.command("service.cli.models:promote", name="promote", help="Let a bundle score, live.")
models.command("service.cli.models:rollback", name="rollback", help="Let the bundle of before score again.")
models.command(
    "service.cli.models:compare", name="compare", help="Champion and challenger on what has happened."
)
deadletter.command("service.cli.deadletter:listing", name="list", help="Dead letters with their reasons.")
deadletter.command("service.cli.deadletter:replay", name="replay", help="Send dead letters in again.")


def main(argv: list[str] | None = None) -> int:
    """Run one command; returns its exit code."""
    arguments = sys.argv[1:] if argv is None else argv
    debug = "--debug" in arguments
    arguments = [argument for argument in arguments if argument != "--debug"]
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
