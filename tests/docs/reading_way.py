"""A reading's way from the disk to the drain: the stages, each with the functions of the product that carry it.

The functions are imported, so that one which is gone or renamed breaks this module. Every link is checked against the
code: a call against the text of the caller, which must name what it calls; a hand-over against the modules of both
ends, which must know the medium. `check_way` raises BrokenLink.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fastapi.routing import APIRoute

import predrain
from predrain.actions.cluster.cluster_port import SetUpmap
from predrain.actions.cluster.live_ceph import LiveCluster, to_ceph_commands
from predrain.actions.controller.controller import Controller
from predrain.actions.controller.fast_maps import TimedCluster
from predrain.actions.engine import decision
from predrain.actions.engine.decision import decide_drain_steps
from predrain.actions.engine.plan_building import plan_drain
from predrain.actions.engine.progress import next_batch
from predrain.actions.engine.proposals import draft_drain, propose_drains
from predrain.actions.engine.strategies import STRATEGIES
from predrain.actions.guards import evaluate_guards, list_refusals
from predrain.actions.mechanics.drain_steps import build_upmap_steps, next_emptying_batch
from predrain.actions.mechanics.step_batch import build_upmap_command
from predrain.collector.agent import Agent
from predrain.collector.delivery import http_sink
from predrain.collector.delivery.http_sink import WebSink
from predrain.collector.delivery.shipper import Shipper
from predrain.collector.delivery.sinks import LogSink
from predrain.collector.delivery.spool import Spool
from predrain.collector.disks.disk_reader import DiskWatch
from predrain.collector.disks.smartctl_result import interpret_smartctl_run
from predrain.data.drain import Intent
from predrain.data.log.kafka.kafka_log import KafkaLog
from predrain.data.log.log_port import Topic
from predrain.data.outlook import Outlook
from predrain.data.smart.smartctl_document import decode_smartctl_output
from predrain.data.store.sql_store import SqlStore
from predrain.data.store.store_port import Store
from predrain.data.wire.acceptance import accept_reading
from predrain.features.drive_state import compute_state_matrix, observe_reading
from predrain.features.feature_vectors import measure_features
from predrain.models.forecast import outlooks
from predrain.models.forecast.bundle import Bundle
from predrain.models.forecast.outlooks import build_outlooks
from predrain.models.forecast.rules import judge_drive
from predrain.service.app.application import Application
from predrain.service.drains.drain_control import DrainControl
from predrain.service.forecasting.bundle_choice import BundledForecaster
from predrain.service.forecasting.forecaster import FallbackForecaster
from predrain.service.forecasting.worker import ScoringWorker
from predrain.service.notifications.channel import NotificationChannel
from predrain.service.notifications.notifier import Notifier
from predrain.service.rest import reading_routes
from predrain.service.streams.outlook_announcements import Announcements

Piece = Callable[..., Any]
"""A function, a method, or a class that is called."""


class BrokenLink(Exception):
    """The code does not hold what the picture says."""


@dataclass(frozen=True, slots=True)
class Link:
    """A link from one function to another.

    Without `through`, the first function calls the second. With `through`, the first hands something to the second,
    and `holds` tells whether the code still does so.
    """

    start: Piece
    end: Piece
    through: str = ""
    holds: Callable[[], bool] | None = None


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage: its functions, of which each calls the next one unless a link says otherwise."""

    title: str
    pieces: tuple[Piece, ...]
    links: tuple[Link, ...] = ()
    """Inside the stage, in place of a call."""

    def list_links(self) -> Iterator[Link]:
        """List the links from each function to the next one."""
        given = {(link.start, link.end): link for link in self.links}
        for start, end in zip(self.pieces, self.pieces[1:], strict=False):
            yield given.get((start, end), Link(start, end))


def _share(start: Piece, end: Piece, medium: object) -> Callable[[], bool]:
    """Return a function that tells whether the modules of both functions know `medium`."""
    return lambda: all(
        any(value is medium for value in vars(inspect.getmodule(piece)).values()) for piece in (start, end)
    )


def _posts_to_route() -> bool:
    """Return whether the sink posts readings to the path at which the route answers."""
    path = f"/{http_sink._choose_topic_path(Topic.READINGS)}"
    return any(
        isinstance(route, APIRoute)
        and route.endpoint is reading_routes.ingest_readings
        and route.path == path
        for route in reading_routes.router.routes
    )


def _empties_by_strategy() -> bool:
    movement = STRATEGIES[Intent.REPLACE].movement
    return movement is not None and movement.next_batch is next_emptying_batch


DecisionRound = decision.DecisionRound
_READ = Stage(
    "Read the disk with smartctl",
    (Agent._round, DiskWatch.read_disks, interpret_smartctl_run, decode_smartctl_output),
)
_SPOOL = Stage("Keep the reading in the spool", (Agent._keep, Spool.accept))
_SHIP = Stage("Take a batch from the spool", (Agent.deliver, Shipper.ship_batch, Spool.take_batch))
_HTTP = Stage(
    "Deliver over HTTP",
    (
        WebSink.deliver,
        reading_routes.ingest_readings,
        reading_routes._ingest_body_under_lock,
        reading_routes._take_alone,
        Application.ingest,
    ),
    (Link(WebSink.deliver, reading_routes.ingest_readings, "POST /api/v1/readings", _posts_to_route),),
)
_KAFKA = Stage("Deliver over Kafka", (LogSink.deliver, KafkaLog.append))
_ACCEPT = Stage("Take from the log and accept", (ScoringWorker.step, ScoringWorker._judge, accept_reading))
_STORE = Stage("Store the reading", (ScoringWorker._take_new, ScoringWorker._take, SqlStore.add_readings))
_STATE = Stage("Fold into the drive's state", (ScoringWorker._score, BundledForecaster.fold, observe_reading))
_VECTOR = Stage(
    "Compute the feature vector",
    (
        FallbackForecaster.compute_outlooks,
        BundledForecaster.compute_outlooks,
        build_outlooks,
        outlooks._forecast_states,
        compute_state_matrix,
        measure_features,
    ),
)
_FORECAST = Stage("Forecast by the model", (Bundle.forecast,))
_RULES = Stage("Judge by rules", (judge_drive,))
_OUTLOOK = Stage(
    "Make the outlook",
    (outlooks._choose_graver_outlook, outlooks._build_model_outlook, Outlook),
)
_ALERT = Stage("Alert people", (ScoringWorker._announce, Announcements.select_news))
_MESSAGE = Stage(
    "Send a message",
    (
        Application.step_telling,
        Notifier.send_notifications,
        Notifier._send_news,
        Notifier._deliver,
        NotificationChannel.deliver,
    ),
)
_KEEP = Stage("Store the outlook", (ScoringWorker._take, SqlStore.save_outlooks))
_PROPOSE = Stage(
    "Propose a drain",
    (
        DrainControl._step,
        Controller.tick,
        Controller._decide,
        decide_drain_steps,
        propose_drains,
        draft_drain,
        plan_drain,
    ),
)
_GUARD = Stage(
    "Ask the guards",
    (
        DecisionRound.decide_drain,
        DecisionRound._answer,
        DecisionRound._guarded,
        list_refusals,
        evaluate_guards,
    ),
)
_UPMAP = Stage(
    "Choose the next upmaps",
    (
        DecisionRound._draining,
        next_batch,
        next_emptying_batch,
        build_upmap_steps,
        build_upmap_command,
        SetUpmap,
    ),
    (Link(next_batch, next_emptying_batch, "the drain's strategy", _empties_by_strategy),),
)
_SEND = Stage(
    "Send them to the cluster",
    (Controller._carry_out, Controller._send, TimedCluster.apply, LiveCluster.apply, to_ceph_commands),
)

ROWS: tuple[tuple[Stage, ...], ...] = (
    (_READ,),
    (_SPOOL,),
    (_SHIP,),
    (_HTTP, _KAFKA),
    (_ACCEPT,),
    (_STORE,),
    (_STATE,),
    (_VECTOR,),
    (_FORECAST, _RULES),
    (_OUTLOOK,),
    (_KEEP, _ALERT),
    (_PROPOSE, _MESSAGE),
    (_GUARD,),
    (_UPMAP,),
    (_SEND,),
)
"""The stages from the disk down to the drain; those of one row stand side by side."""

BETWEEN: tuple[tuple[Stage, Stage, tuple[Link, ...]], ...] = (
    (_READ, _SPOOL, (Link(Agent._round, Agent._keep),)),
    (
        _SPOOL,
        _SHIP,
        (
            Link(
                Spool.accept,
                Spool.take_batch,
                "the spool, a file",
                _share(Agent.deliver, Shipper.ship_batch, Spool),
            ),
        ),
    ),
    (_SHIP, _HTTP, (Link(Shipper.ship_batch, WebSink.deliver),)),
    (_SHIP, _KAFKA, (Link(Shipper.ship_batch, LogSink.deliver),)),
    (
        _HTTP,
        _ACCEPT,
        (
            Link(Application.ingest, accept_reading),
            Link(
                Application.ingest,
                ScoringWorker.step,
                "the log, topic readings",
                _share(Application, ScoringWorker, Topic),
            ),
        ),
    ),
    (
        _KAFKA,
        _ACCEPT,
        (
            Link(
                KafkaLog.append,
                ScoringWorker.step,
                "Kafka, topic readings",
                _share(KafkaLog, ScoringWorker, Topic),
            ),
        ),
    ),
    (_ACCEPT, _STORE, (Link(ScoringWorker.step, ScoringWorker._take_new),)),
    (_STORE, _STATE, (Link(ScoringWorker._take, ScoringWorker._score),)),
    (_STATE, _VECTOR, (Link(ScoringWorker._score, FallbackForecaster.compute_outlooks),)),
    (_VECTOR, _FORECAST, (Link(outlooks._forecast_states, Bundle.forecast),)),
    (_VECTOR, _RULES, (Link(build_outlooks, judge_drive),)),
    (_FORECAST, _OUTLOOK, (Link(build_outlooks, outlooks._choose_graver_outlook),)),
    (_RULES, _OUTLOOK, ()),
    (_OUTLOOK, _KEEP, (Link(ScoringWorker._take, ScoringWorker._score),)),
    (_OUTLOOK, _ALERT, (Link(ScoringWorker._take, ScoringWorker._announce),)),
    (
        _KEEP,
        _PROPOSE,
        (
            Link(
                SqlStore.save_outlooks,
                Controller.tick,
                "the store and the fleet",
                _share(ScoringWorker, Controller, Store),
            ),
        ),
    ),
    (
        _ALERT,
        _MESSAGE,
        (
            Link(
                Announcements.select_news,
                Application.step_telling,
                "the announcements",
                _share(ScoringWorker, Application, Announcements),
            ),
        ),
    ),
    (_PROPOSE, _GUARD, (Link(decide_drain_steps, DecisionRound.decide_drain),)),
    (_GUARD, _UPMAP, (Link(DecisionRound._answer, DecisionRound._draining),)),
    (_UPMAP, _SEND, (Link(Controller.tick, Controller._carry_out),)),
)
"""Pairs of stages of which the second follows the first, each pair with the links from the first to the second."""


def check_way() -> None:
    """Check every link against the code. Raises BrokenLink."""
    inside = [link for row in ROWS for stage in row for link in stage.list_links()]
    across = [link for _, _, links in BETWEEN for link in links]
    for link in (*inside, *across):
        holds = link.holds() if link.holds is not None else is_called(link.start, link.end)
        if not holds:
            verb = (
                f"hand anything to {name_piece(link.end)} through {link.through}"
                if link.through
                else (f"call {name_piece(link.end)}")
            )
            raise BrokenLink(f"{name_piece(link.start)} does not {verb}: mend tests/docs/reading_way.py")


def is_called(start: Piece, end: Piece) -> bool:
    """Tell whether the text of `start` names `end`: as a global that is `end`, as an attribute or as a local import."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(start)))
    known = vars(inspect.getmodule(start))
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr == end.__name__:
            return True
        if isinstance(node, ast.Name) and known.get(node.id, end if node.id == end.__name__ else None) is end:
            return True
    return False


def name_piece(piece: Piece) -> str:
    """Name a function with its class."""
    return piece.__qualname__


def name_module(piece: Piece) -> str:
    """Name the file that a function stands in, as a path of the checkout."""
    file = Path(inspect.getfile(inspect.unwrap(piece)))
    return str(file.relative_to(Path(predrain.__file__).parent))
