"""The command line. One file a command; packages are imported when their command runs.

Exit codes: 0 done, 1 failed (one plain sentence on stderr, with the cure), 2 usage, 3 done in part.
"""

from __future__ import annotations

import errno
import os
import sys
from importlib import metadata

from cyclopts import App, CycloptsError

from predrain.data.refusal import Refusal

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
    version=lambda: metadata.version("predrain"),
    version_flags=["--version"],
)
smart = App(name="smart", help="Read smartctl's output.")
drain = App(name="drain", help="Plan, ask for, approve and watch drains.")
config = App(name="config", help="Check settings, list them.")
token = App(name="token", help="Who may enter: make tokens, list them, revoke them; enrol collectors.")
deadletter = App(name="deadletter", help="Readings that could not be taken: list them, send them again.")
latency = App(name="latency", help="Latencies of disks: who is slow beside its peers.")
cluster = App(name="cluster", help="How the cluster is; record it to plan against.")
ceph = App(name="ceph", help="What the cluster must allow.")
kept = App(name="data", help="Bring in history that others kept.")
imports = App(name="import", help="Readings from Backblaze's tables, smartctl's outputs, Ceph, any SQL.")
kept.command(imports)
topics = App(name="topics", help="The log's topics in Kafka.")
store = App(name="store", help="Where history is kept: bring it up, look at it, take it out for training.")
models = App(name="models", help="Bundles: list, put on trial, promote, go back, compare.")
silence = App(name="silence", help="What nobody wants to hear of for a while.")
disk = App(name="disk", help="Which host has a disk that several hosts name.")
policy = App(name="policy", help="What other settings of the policy would have done here.")
for group in (
    smart,
    drain,
    config,
    token,
    deadletter,
    latency,
    cluster,
    ceph,
    kept,
    topics,
    store,
    models,
    silence,
    disk,
    policy,
):
    app.command(group)

app.command("predrain.service.cli.up:up", name="up")
app.command("predrain.service.cli.demo:demo", name="demo")
app.command("predrain.service.cli.collect:collect", name="collect")
app.command("predrain.service.cli.work:work", name="work")
app.command("predrain.service.cli.control:control", name="control")
app.command("predrain.service.cli.serve:serve", name="serve")
app.command("predrain.service.cli.fill:fill", name="fill")
app.command("predrain.service.cli.halt:halt", name="halt")
app.command("predrain.service.cli.halt:unhalt", name="unhalt")
app.command("predrain.service.cli.outcome:outcome", name="outcome")
app.command("predrain.service.cli.silence:causes", name="causes")
app.command("predrain.service.cli.disks:disks", name="disks")
app.command("predrain.service.cli.doctor:doctor", name="doctor")
app.command("predrain.service.cli.audit:audit", name="audit")
app.command("predrain.service.cli.events:events", name="events")
app.command("predrain.service.cli.backup:backup", name="backup")
app.command("predrain.service.cli.backup:restore", name="restore")
app.command("predrain.service.cli.score:score", name="score")
app.command("predrain.service.cli.train:train", name="train")
app.command("predrain.service.cli.evaluate:evaluate", name="evaluate")
app.command("predrain.service.cli.backtest:backtest", name="backtest")
smart.command("predrain.service.cli.smart:parse", name="parse")
drain.command("predrain.service.cli.drain:listing", name="list")
drain.command("predrain.service.cli.drain:plan", name="plan")
drain.command("predrain.service.cli.drain:apply", name="apply")
drain.command("predrain.service.cli.drain:approve", name="approve")
drain.command("predrain.service.cli.drain:pause", name="pause")
drain.command("predrain.service.cli.drain:resume", name="resume")
drain.command("predrain.service.cli.drain:cancel", name="cancel")
drain.command("predrain.service.cli.reject:reject", name="reject")
drain.command("predrain.service.cli.way_out:way_out", name="way-out")
drain.command("predrain.service.cli.insist:insist", name="insist")
drain.command("predrain.service.cli.drain:explain", name="explain")
drain.command("predrain.service.cli.drain:done", name="done")
config.command("predrain.service.cli.config:check", name="check")
config.command("predrain.service.cli.config:show", name="show")
policy.command("predrain.service.cli.policy:preview", name="preview")
token.command("predrain.service.cli.token:make", name="make")
token.command("predrain.service.cli.token:listing", name="list")
token.command("predrain.service.cli.token:revoke", name="revoke")
token.command("predrain.service.cli.token:enrol", name="enrol")
latency.command("predrain.service.cli.latency:score", name="score")
cluster.command("predrain.service.cli.cluster:status", name="status")
cluster.command("predrain.service.cli.cluster:record", name="record")
ceph.command("predrain.service.cli.ceph:auth", name="auth")
ceph.command("predrain.service.cli.adopt:adopt", name="adopt")
models.command("predrain.service.cli.models:listing", name="list")
models.command("predrain.service.cli.models:challenge", name="challenge")
models.command("predrain.service.cli.models:promote", name="promote")
models.command("predrain.service.cli.models:rollback", name="rollback")
models.command("predrain.service.cli.models:compare", name="compare")
imports.command("predrain.service.cli.data:backblaze", name="backblaze")
imports.command("predrain.service.cli.data:smartctl_json", name="smartctl-json")
imports.command("predrain.service.cli.data:smartctl_text", name="smartctl-text")
imports.command("predrain.service.cli.data:ceph_health_metrics", name="ceph-health-metrics")
imports.command("predrain.service.cli.data:sql", name="sql")
deadletter.command("predrain.service.cli.deadletter:listing", name="list")
deadletter.command("predrain.service.cli.deadletter:replay", name="replay")
topics.command("predrain.service.cli.topics:create", name="create")
topics.command("predrain.service.cli.topics:listing", name="list")
silence.command("predrain.service.cli.silence:add", name="add")
silence.command("predrain.service.cli.silence:listing", name="list")
silence.command("predrain.service.cli.silence:lift", name="lift")
disk.command("predrain.service.cli.disk:home", name="home")
for name in ("migrate", "status", "export"):
    store.command(f"predrain.service.cli.store:{name}", name=name)


GROUPS = (
    app,
    smart,
    drain,
    config,
    token,
    deadletter,
    latency,
    cluster,
    ceph,
    imports,
    topics,
    store,
    models,
    silence,
    disk,
)


def _describe() -> None:
    """Import every command, so that a list of commands has the first line of each docstring."""
    for group in GROUPS:
        for name in [*group]:
            try:
                group[name]
            except ImportError:  # where only the collector is installed, its command alone can run
                del group[name]


def main(argv: list[str] | None = None) -> int:
    """Run one command; returns its exit code."""
    arguments = sys.argv[1:] if argv is None else argv
    debug = "--debug" in arguments
    arguments = [argument for argument in arguments if argument != "--debug"]
    if not arguments or {"--help", "-h"} & set(arguments):
        _describe()
    try:
        result = app(arguments, exit_on_error=False, result_action="return_value")
        print(end="", flush=True)  # what cannot be written is told below, not by the interpreter's end
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
        print(f"predrain: {_unexpected(error)}", file=sys.stderr)
        return 1
    return result if isinstance(result, int) else 0


def _unexpected(error: Exception) -> str:
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        where = f"for {error.filename}" if error.filename else "where it writes, its output perhaps"
        return f"no room is left {where} ({error.strerror}): make room on that disk, and run it again"
    return f"unexpected {type(error).__name__}: {error}; run again with --debug for the traceback"


def run() -> None:
    """Entry point of the `predrain` command."""
    sys.exit(main())
