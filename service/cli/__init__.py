"""The command line. One file a command; packages are imported when their command runs.

Exit codes: 0 done, 1 failed (one plain sentence on stderr, with the cure), 2 usage, 3 done in part.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Mapping
from importlib import metadata
from typing import Any, Final

from cyclopts import App, CycloptsError, Group

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

WATCH = Group("See how disks and cluster are (a service here or on another machine)", sort_key=1)
ACT = Group("Act (a service here or on another machine)", sort_key=2)
RUN = Group("Run predrain's processes", sort_key=3)
KEEP = Group("Set up and look after a service, on its machine", sort_key=4)
LEARN = Group("Forecasts: score, train, compare, bring in history", sort_key=5)

COMMANDS: Final[Mapping[Group, Mapping[str, str | tuple[str, Mapping[str, Any]]]]] = {
    WATCH: {
        "disks": "disks_commands:list_disks_command",
        "disk": "disk_commands:disk",
        "osds": "osds_commands:list_osds_command",
        "events": "events_commands:list_events_command",
        "report": "report_commands:show_report_command",
        "causes": "silence_commands:list_causes_command",
        "audit": "audit_commands:show_audit_command",
    },
    ACT: {
        "drain": (
            "Plan, ask for, approve and watch drains.",
            {
                "list": "drain_commands:list_drains_command",
                "plan": "drain_commands:plan_drain_command",
                "apply": "drain_commands:apply_drain_command",
                "approve": "drain_commands:approve_drain_command",
                "pause": "drain_commands:pause_drain_command",
                "resume": "drain_commands:resume_drain_command",
                "cancel": "drain_commands:cancel_drain_command",
                "reject": "drain_commands:reject_drain_command",
                "way-out": "way_out_commands:way_out",
                "insist": "way_out_commands:insist_past_guards_command",
                "explain": "drain_commands:explain_drain_command",
                "hand-over": "drain_commands:hand_over_drain_command",
            },
        ),
        "fill": "drain_commands:fill_osd_command",
        "halt": "halt_commands:set_halt_command",
        "unhalt": "halt_commands:lift_halt_command",
        "silence": (
            "Causes of which no message is sent for a while.",
            {
                "add": "silence_commands:add_silence_command",
                "preview": "silence_commands:preview_silence_command",
                "list": "silence_commands:list_silences_command",
                "expire": "silence_commands:lift_silence_command",
            },
        ),
        "receiver": (
            "The channels of messages: list them, send a test message.",
            {
                "list": "receiver_commands:list_receivers_command",
                "test": "receiver_commands:send_test_command",
            },
        ),
        "outcome": "outcome_commands:record_outcome_command",
    },
    RUN: {
        "up": "up_commands:run_service_command",
        "demo": "demo_commands:run_demo_command",
        "collect": "collect_commands:run_collector_command",
        "work": "work_commands:run_worker_command",
        "control": "control_commands:run_controller_command",
        "serve": "serve_commands:run_server_command",
    },
    KEEP: {
        "doctor": "doctor_commands:run_doctor_command",
        "config": (
            "Check settings, list them.",
            {
                "check": "config_commands:check_settings_command",
                "show": "config_commands:show_settings_command",
            },
        ),
        "token": (
            "Access: make tokens, list them, revoke them; enrol collectors.",
            {
                "create": "token_commands:make_token_command",
                "list": "token_commands:list_tokens_command",
                "revoke": "token_commands:revoke_token_command",
                "enrol": "token_commands:enrol_hosts_command",
            },
        ),
        "backup": "backup_commands:backup_state_command",
        "restore": "backup_commands:restore_state_command",
        "store": (
            "Where history is kept: bring it up, look at it, take it out for training.",
            {
                "migrate": "store_commands:migrate_store_command",
                "rollback": "store_commands:rollback_store_command",
                "status": "store_commands:show_store_command",
                "export": "store_commands:export_history_command",
            },
        ),
        "deadletter": (
            "Readings that could not be taken: list them, send them again.",
            {
                "list": "dead_letter_commands:list_dead_letters_command",
                "replay": "dead_letter_commands:replay_dead_letters_command",
            },
        ),
        "topics": (
            "The log's topics in Kafka.",
            {
                "create": "topics_commands:create_topics_command",
                "list": "topics_commands:list_topics_command",
            },
        ),
        "cluster": (
            "The state of the cluster and of others; record it to plan against.",
            {
                "list": "cluster_list_commands:list_clusters_command",
                "status": "cluster_commands:show_cluster_command",
                "record": "cluster_commands:record_cluster_command",
            },
        ),
        "ceph": (
            "Rights and signed keys in the cluster.",
            {
                "auth": "ceph_commands:show_cephx_user_command",
                "adopt": "adopt_commands:adopt_texts_command",
            },
        ),
        "completion": "completion_commands:print_completion_command",
    },
    LEARN: {
        "models": (
            "Bundles: list, put on trial, promote, go back, compare.",
            {
                "list": "models_commands:list_bundles_command",
                "challenge": "models_commands:set_challenger_command",
                "promote": "models_commands:promote_bundle_command",
                "rollback": "models_commands:rollback_bundle_command",
                "compare": "models_commands:compare_bundles_command",
            },
        ),
        "policy": (
            "The effect that other settings of the policy would have had here.",
            {
                "preview": "policy_commands:preview_policy_command",
            },
        ),
        "score": "score_commands:score_drives_command",
        "train": "train_commands:train_bundle_command",
        "evaluate": "evaluate_commands:evaluate_forecast_command",
        "backtest": "backtest_commands:run_backtest_command",
        "latency": (
            "Latencies of disks: find those that are slow beside their peers.",
            {
                "score": "latency_commands:score_latency_command",
            },
        ),
        "data": (
            "Bring in history that others kept.",
            {
                "import": (
                    "Readings from Backblaze's tables, smartctl's outputs, Ceph, any SQL.",
                    {
                        "backblaze": "data_commands:import_backblaze_command",
                        "smartctl-json": "data_commands:smartctl_json",
                        "smartctl-text": "data_commands:smartctl_text",
                        "ceph-health-metrics": "data_commands:ceph_health_metrics",
                        "sql": "data_commands:import_sql_command",
                    },
                ),
            },
        ),
        "smart": (
            "Read smartctl's output.",
            {
                "parse": "smart_commands:parse_smart_command",
            },
        ),
    },
}
"""The commands by their group in `--help`: a name leads to MODULE:FUNCTION below this package, which is imported when
the command runs, or to a sentence and further commands.
"""


def _add_commands(above: App, commands: Mapping[str, Any], **shown: Any) -> None:
    for name, told in commands.items():
        if isinstance(told, str):
            above.command(f"{__name__}.{told}", name=name, **shown)
        else:
            text, below = told
            group = App(name=name, help=text, **shown)
            above.command(group)
            _add_commands(group, below)


for shown_in, commands_of_group in COMMANDS.items():
    _add_commands(app, commands_of_group, group=shown_in)


def import_all_commands(above: App = app) -> None:
    """Import every command, so that a list of commands shows the first line of each docstring."""
    for name in [*above]:
        try:
            found = above[name]
        except ImportError:  # with only the collector installed, no other command can run
            del above[name]
        else:
            import_all_commands(found)


def main(argv: list[str] | None = None) -> int:
    """Run one command; returns its exit code."""
    arguments = sys.argv[1:] if argv is None else argv
    debug = "--debug" in arguments
    arguments = [argument for argument in arguments if argument != "--debug"]
    if not arguments or {"--help", "-h"} & set(arguments):
        import_all_commands()
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
        said = explain_missing_package(error, arguments)
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
