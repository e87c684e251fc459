"""`GET report`: what predrain did in one month, with the disks and drains behind each number."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from predrain.data.drain import Intent
from predrain.service.app.month_reading import read_monthly_report
from predrain.service.fleet.monthly_report import BadMonth, MonthlyReport, ReportEntry, ReportKind
from predrain.service.rest import http_caching
from predrain.service.rest.authentication import Reader
from predrain.service.rest.dependencies import TheApplication
from predrain.service.rest.problem_answers import HttpProblem
from predrain.service.rest.shared_bodies import ResponseBody

router = APIRouter(tags=["history"])


class ReportEntryBody(ResponseBody):
    """One disk or drain of the report. A field that does not apply to the kind, or whose value is not known, is null.

    `called_days`: days for which the disk had been called warning or worse. `hours_above`, `hours_measured`: hours of
    the drain in which the latency ratio was above the limit, and in which the ratio is known.
    """

    at: datetime
    kind: ReportKind
    sentence: str
    device: str | None
    host: str | None
    osd: int | None
    drain: str | None
    intent: Intent | None
    moved_bytes: int | None
    called_days: float | None
    hours_above: float | None
    hours_measured: float | None


class ReportBody(ResponseBody):
    """The numbers of one month, in UTC, and the entries from which they are counted, oldest first.

    `whole`: false if the month is not over, or the stored history begins within it. `latency_limit`: the ratio of an
    OSD's latency to that of its last hour above which a drain holds. `hours_above` and `hours_measured` are null if no
    drain was measured.
    """

    since: datetime
    until: datetime
    whole: bool
    latency_limit: float
    moved_bytes: int
    drains: int
    hours_above: float | None
    hours_measured: float | None
    swapped_empty: int
    failures: int
    failed_empty: int
    failed_while_draining: int
    failed_called: int
    missed: int
    false_alarms: int
    entries: list[ReportEntryBody]


@router.get("/report", response_model=ReportBody, responses=http_caching.declare_polled_responses(401, 422))
def get_report(
    request: Request,
    application: TheApplication,
    _: Reader,
    *,
    month: Annotated[
        str | None,
        Query(
            pattern=r"^\d{4}-(0[1-9]|1[0-2])$",
            description="Such as 2026-10; the last whole month without it.",
        ),
    ] = None,
) -> Response:
    """The report of one month: drives swapped empty, failures, false alarms, bytes, hours of slow clients."""
    try:
        report = read_monthly_report(application, month)
    except BadMonth as error:
        raise HttpProblem(422, str(error)) from None
    return http_caching.build_etag_response(request, _build_report_body(report))


def _build_report_body(report: MonthlyReport) -> ReportBody:
    return ReportBody(
        since=report.since,
        until=report.until,
        whole=report.is_whole,
        latency_limit=report.latency_limit,
        moved_bytes=report.moved_bytes,
        drains=report.count_entries(ReportKind.DRAIN),
        hours_above=report.hours_above,
        hours_measured=report.hours_measured,
        swapped_empty=report.count_entries(ReportKind.SWAPPED_EMPTY),
        failures=report.failures,
        failed_empty=report.count_entries(ReportKind.FAILED_EMPTY),
        failed_while_draining=report.count_entries(ReportKind.FAILED_WHILE_DRAINING),
        failed_called=report.count_entries(ReportKind.FAILED_CALLED),
        missed=report.missed,
        false_alarms=report.count_entries(ReportKind.FALSE_ALARM),
        entries=[_build_entry_body(entry) for entry in report.entries],
    )


def _build_entry_body(entry: ReportEntry) -> ReportEntryBody:
    return ReportEntryBody(
        at=entry.at,
        kind=entry.kind,
        sentence=entry.sentence,
        device=entry.device,
        host=entry.host,
        osd=entry.osd,
        drain=entry.drain,
        intent=entry.intent,
        moved_bytes=entry.moved_bytes,
        called_days=entry.called_days,
        hours_above=entry.hours_above,
        hours_measured=entry.hours_measured,
    )
