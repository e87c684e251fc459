"""The command line. One file a command; packages are imported when their command runs, so that `--help` is quick.

Exit codes: 0 done, 1 failed (one plain sentence on stderr, with the cure), 2 usage, 3 done in part.
"""

from __future__ import annotations

import os
import sys

from cyclopts import App, CycloptsError

from data.refusal import Refusal

# LightGBM's OpenMP threads spin while they wait and starve everything beside them (measured: 39x on a busy machine).
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

app = App(
    name="predrain",
    help="Forecasts disk failures in Ceph clusters and drains the dying OSDs before they fail.",
    version_flags=["--version"],
)
smart = App(name="smart", help="Read smartctl's output.")
app.command(smart)

smart.command("service.cli.smart:parse", name="parse")
app.command("service.cli.score:score", name="score")
app.command("service.cli.train:train", name="train")
app.command("service.cli.evaluate:evaluate", name="evaluate")


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
        print(f"predrain: unexpected {kind}: {error}; run again with --debug for the traceback", file=sys.stderr)
        return 1
    return result if isinstance(result, int) else 0


def run() -> None:
    """Entry point of the `predrain` command."""
    sys.exit(main())
