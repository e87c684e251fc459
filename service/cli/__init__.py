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
from predrain.service.cli.missing_extras import explain_missing_package

# LightGBM's OpenMP threads spin while they wait and starve all else (measured: 39x on a busy machine).
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
# By default MLflow reports its use to its makers, prints addresses and retries a dead server for minutes.
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
token = App(name="token", help="Access: make tokens, list them, revoke them; enrol collectors.")
deadletter = App(name="deadletter", help="Readings that could not be taken: list them, send them again.")
latency = App(name="latency", help="Latencies of disks: find those that are slow beside their peers.")
cluster = App(name="cluster", help="The state of the cluster and of others; record it to plan against.")
ceph = App(name="ceph", help="Rights and signed keys in the cluster.")
kept = App(name="data", help="Bring in history that others kept.")
imports = App(name="import", help="Readings from Backblaze's tables, smartctl's outputs, Ceph, any SQL.")
kept.command(imports)
topics = App(name="topics", help="The log's topics in Kafka.")
store = App(name="store", help="Where history is kept: bring it up, look at it, take it out for training.")
models = App(name="models", help="Bundles: list, put on trial, promote, go back, compare.")
silence = App(name="silence", help="Causes of which no message is sent for a while.")
receiver = App(name="receiver", help="The channels of messages: list them, send a test message.")
disk = App(name="disk", help="Name the host of a disk that several hosts name.")
policy = App(name="policy", help="The effect that other settings of the policy would have had here.")
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
    receiver,
    disk,
    policy,
):
    app.command(group)

app.command("predrain.service.cli.up_commands:run_service_command", name="up")
app.command("predrain.service.cli.demo_commands:run_demo_command", name="demo")
app.command("predrain.service.cli.collect_commands:run_collector_command", name="collect")
app.command("predrain.service.cli.work_commands:run_worker_command", name="work")
app.command("predrain.service.cli.control_commands:run_controller_command", name="control")
app.command("predrain.service.cli.serve_commands:run_server_command", name="serve")
app.command("predrain.service.cli.drain_commands:fill_osd_command", name="fill")
app.command("predrain.service.cli.halt_commands:set_halt_command", name="halt")
app.command("predrain.service.cli.halt_commands:lift_halt_command", name="unhalt")
app.command("predrain.service.cli.outcome_commands:record_outcome_command", name="outcome")
app.command("predrain.service.cli.silence_commands:list_causes_command", name="causes")
app.command("predrain.service.cli.disks_commands:list_disks_command", name="disks")
app.command("predrain.service.cli.doctor_commands:run_doctor_command", name="doctor")
app.command("predrain.service.cli.audit_commands:show_audit_command", name="audit")
app.command("predrain.service.cli.events_commands:list_events_command", name="events")
app.command("predrain.service.cli.backup_commands:backup_state_command", name="backup")
app.command("predrain.service.cli.backup_commands:restore_state_command", name="restore")
app.command("predrain.service.cli.score_commands:score_drives_command", name="score")
app.command("predrain.service.cli.train_commands:train_bundle_command", name="train")
app.command("predrain.service.cli.evaluate_commands:evaluate_forecast_command", name="evaluate")
app.command("predrain.service.cli.backtest_commands:run_backtest_command", name="backtest")
smart.command("predrain.service.cli.smart_commands:parse_smart_command", name="parse")
drain.command("predrain.service.cli.drain_commands:list_drains_command", name="list")
drain.command("predrain.service.cli.drain_commands:plan_drain_command", name="plan")
drain.command("predrain.service.cli.drain_commands:apply_drain_command", name="apply")
drain.command("predrain.service.cli.drain_commands:approve_drain_command", name="approve")
drain.command("predrain.service.cli.drain_commands:pause_drain_command", name="pause")
drain.command("predrain.service.cli.drain_commands:resume_drain_command", name="resume")
drain.command("predrain.service.cli.drain_commands:cancel_drain_command", name="cancel")
drain.command("predrain.service.cli.drain_commands:reject_drain_command", name="reject")
drain.command("predrain.service.cli.way_out_commands:way_out", name="way-out")
drain.command("predrain.service.cli.way_out_commands:insist_past_guards_command", name="insist")
drain.command("predrain.service.cli.drain_commands:explain_drain_command", name="explain")
drain.command("predrain.service.cli.drain_commands:hand_over_drain_command", name="hand-over")
config.command("predrain.service.cli.config_commands:check_settings_command", name="check")
config.command("predrain.service.cli.config_commands:show_settings_command", name="show")
policy.command("predrain.service.cli.policy_commands:preview_policy_command", name="preview")
token.command("predrain.service.cli.token_commands:make_token_command", name="create")
token.command("predrain.service.cli.token_commands:list_tokens_command", name="list")
token.command("predrain.service.cli.token_commands:revoke_token_command", name="revoke")
token.command("predrain.service.cli.token_commands:enrol_hosts_command", name="enrol")
latency.command("predrain.service.cli.latency_commands:score_latency_command", name="score")
cluster.command("predrain.service.cli.cluster_commands:show_cluster_command", name="status")
cluster.command("predrain.service.cli.cluster_commands:record_cluster_command", name="record")
cluster.command("predrain.service.cli.cluster_list_commands:list_clusters_command", name="list")
ceph.command("predrain.service.cli.ceph_commands:show_cephx_user_command", name="auth")
ceph.command("predrain.service.cli.adopt_commands:adopt_texts_command", name="adopt")
models.command("predrain.service.cli.models_commands:list_bundles_command", name="list")
models.command("predrain.service.cli.models_commands:set_challenger_command", name="challenge")
models.command("predrain.service.cli.models_commands:promote_bundle_command", name="promote")
models.command("predrain.service.cli.models_commands:rollback_bundle_command", name="rollback")
models.command("predrain.service.cli.models_commands:compare_bundles_command", name="compare")
imports.command("predrain.service.cli.data_commands:import_backblaze_command", name="backblaze")
imports.command("predrain.service.cli.data_commands:smartctl_json", name="smartctl-json")
imports.command("predrain.service.cli.data_commands:smartctl_text", name="smartctl-text")
imports.command("predrain.service.cli.data_commands:ceph_health_metrics", name="ceph-health-metrics")
imports.command("predrain.service.cli.data_commands:import_sql_command", name="sql")
deadletter.command("predrain.service.cli.dead_letter_commands:list_dead_letters_command", name="list")
deadletter.command("predrain.service.cli.dead_letter_commands:replay_dead_letters_command", name="replay")
topics.command("predrain.service.cli.topics_commands:create_topics_command", name="create")
topics.command("predrain.service.cli.topics_commands:list_topics_command", name="list")
silence.command("predrain.service.cli.silence_commands:add_silence_command", name="add")
silence.command("predrain.service.cli.silence_commands:preview_silence_command", name="preview")
silence.command("predrain.service.cli.silence_commands:list_silences_command", name="list")
silence.command("predrain.service.cli.silence_commands:lift_silence_command", name="expire")
receiver.command("predrain.service.cli.receiver_commands:list_receivers_command", name="list")
receiver.command("predrain.service.cli.receiver_commands:send_test_command", name="test")
disk.command("predrain.service.cli.disk_commands:assign_disk_host_command", name="host")
for name, function in (
    ("migrate", "migrate_store_command"),
    ("rollback", "rollback_store_command"),
    ("status", "show_store_command"),
    ("export", "export_history_command"),
):
    store.command(f"predrain.service.cli.store_commands:{function}", name=name)


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
    receiver,
    disk,
)


def _import_all_commands() -> None:
    """Import every command, so that a list of commands shows the first line of each docstring."""
    for group in GROUPS:
        for name in [*group]:
            try:
                group[name]
            except ImportError:  # with only the collector installed, no other command can run
                del group[name]


def main(argv: list[str] | None = None) -> int:
    """Run one command; returns its exit code."""
    arguments = sys.argv[1:] if argv is None else argv
    debug = "--debug" in arguments
    arguments = [argument for argument in arguments if argument != "--debug"]
    if not arguments or {"--help", "-h"} & set(arguments):
        _import_all_commands()
    try:
        result = app(arguments, exit_on_error=False, result_action="return_value")
        print(end="", flush=True)  # a write error is reported below, not at the interpreter's end
    except CycloptsError:
        return 2
    except Refusal as refusal:
        if debug:
            raise
        print(f"predrain: {refusal}", file=sys.stderr)
        return 1
    except ImportError as error:
        said = explain_missing_package(error)
        if debug:
            raise
        print(f"predrain: {said or _describe_unexpected_error(error)}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        sys.stderr.close()
        return 0
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        if debug:
            raise
        print(f"predrain: {_describe_unexpected_error(error)}", file=sys.stderr)
        return 1
    return result if isinstance(result, int) else 0


def _describe_unexpected_error(error: Exception) -> str:
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        where = f"for {error.filename}" if error.filename else "where it writes, its output perhaps"
        return f"no room is left {where} ({error.strerror}): make room on that disk, and run it again"
    return f"unexpected {type(error).__name__}: {error}; run again with --debug for the traceback"


def run() -> None:
    """Entry point of the `predrain` command."""
    sys.exit(main())
