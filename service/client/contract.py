"""The values that REST takes and answers. Generated from the OpenAPI document by `make contract`.

None is "not known"; times are in UTC. A field or a word of a newer service is no error: a field that is not known here
is left out, and an enumeration is any text.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, TypeAlias

from msgspec import UNSET, Meta, Struct, UnsetType, field


class ActiveServiceBody(Struct, frozen=True, kw_only=True):
    """
    The active service: `host` and `pid` of its process, its `url` (null: it answers at none), and the time since
    which it is active.
    """

    host: str
    pid: int | None
    url: str | None
    since: datetime


Point: TypeAlias = tuple[int, int | None]


class BundleBody(Struct, frozen=True, kw_only=True):
    """A bundle that scores. `fingerprint` distinguishes two bundles of one name."""

    name: str
    fingerprint: str


class BundlePerformanceBody(Struct, frozen=True, kw_only=True):
    """The performance of one bundle on past days, by its own thresholds."""

    bundle: str
    detected: int
    detected_bad: int
    false_alarms: int
    false_alarms_bad: int
    brier: float | None
    expected: float
    lead_days: float | None


class CalibrationBody(Struct, frozen=True, kw_only=True):
    """Failures expected and seen; `ratio` is expected over observed with its 95 % interval."""

    family: str
    expected: float
    observed: int
    ratio: float | None
    low: float
    high: float | None
    off: bool
    verdict: Annotated[
        str,
        Meta(
            description="`doubtful`: the ratio differs from 1 by more than chance, on too few failures for an alert."
        ),
    ]


class CallBody(Struct, frozen=True, kw_only=True):
    """One request that acted or was refused. `caller` is `nobody` where no token or session was good."""

    at: datetime
    caller: str
    source: str
    request: str
    result: str


class CallPage(Struct, frozen=True, kw_only=True):
    """The newest calls, oldest first; `next` leads to those before them."""

    items: list[CallBody]
    next: str | None


RecallGain: TypeAlias = tuple[float, float]


BrierGain: TypeAlias = tuple[float, float]


class ComparisonBody(Struct, frozen=True, kw_only=True):
    """Champion first, then the challenger, on the same disks and days. Below 30 failures `enough` is false."""

    bundles: list[BundlePerformanceBody]
    failures: int
    healthy_windows: int
    rows: int
    observed: int
    enough: bool
    recall_gain: RecallGain | None
    brier_gain: BrierGain | None
    only_first: Annotated[
        int, Meta(description="Failures that the champion alone foretold.")
    ]
    only_second: Annotated[
        int, Meta(description="Failures that the challenger alone foretold.")
    ]
    days: int
    evidence: Annotated[
        float,
        Meta(
            description="The factor by which these counts are likelier if the challenger foretells more than by chance; 20 is wanted."
        ),
    ]
    days_left: (
        Annotated[
            float,
            Meta(
                description="Days until the evidence is enough, at the rate of failures so far; 0: it is enough; null: nothing speaks for\nthe challenger."
            ),
        ]
        | None
    )
    better: bool
    sentence: str


class ConcernBody(Struct, frozen=True, kw_only=True):
    """An alert about the forecast itself, one a cause."""

    cause: str
    since: datetime
    families: list[str]
    sentence: str
    cure: str


class DemoRowBody(Struct, frozen=True, kw_only=True):
    """One line of the demo's last table."""

    what: str
    with_: str | float | None = field(name="with")
    without: str | float | None


class DemoTableBody(Struct, frozen=True, kw_only=True):
    """The demo's results with and without predrain, from the same seed."""

    rows: list[DemoRowBody]


class DeviceHostRequest(Struct, frozen=True, kw_only=True):
    """The host that has the disk."""

    host: Annotated[str, Meta(max_length=256, min_length=1)]


class DriveModelBody(Struct, frozen=True, kw_only=True):
    """
    The drives of one model. `model`: null for disks that report none. `disks`: those that neither failed nor are
    retired; `failed`: those that failed here. `age_days_p50`: the median of their power-on times.

    `failures_per_year`: failures for each of the `drive_years` that such drives were watched here, with the ends of its
    95 % interval.
    """

    model: str | None
    disks: int
    failed: int
    warning: int
    bad: int
    capacity_bytes: int | None
    age_days_p50: float | None
    drive_years: float
    failures_per_year: float | None
    failures_per_year_low: float | None
    failures_per_year_high: float | None


class DriveModelPage(Struct, frozen=True, kw_only=True):
    """A page of models in order of their names; disks that report no model come last."""

    items: list[DriveModelBody]
    next: str | None


class EnrolmentBody(Struct, frozen=True, kw_only=True):
    """
    The host's own token: scope `ingest`, for its own readings and latencies alone. It is shown once, as is
    `request_key`, with which requests to the host are signed (empty if the service has no signing key that it can use).
    """

    token: str
    host: str
    request_key: str


class EnrolmentRequest(Struct, frozen=True, kw_only=True):
    """The one-time token, and the host's name in its readings."""

    token: Annotated[str, Meta(max_length=500, min_length=1)]
    host: Annotated[str, Meta(max_length=256, min_length=1)]


class ForecastBody(Struct, frozen=True, kw_only=True):
    """The expected number of present disks that fail within 30 days; `silent`: those without a symptom."""

    bundle: str | None
    expected_30d: float | None
    expected_silent_30d: float | None


class GuardBody(Struct, frozen=True, kw_only=True):
    """One guard's answer now."""

    code: str
    ok: bool
    sentence: str
    insistable: Annotated[
        bool, Meta(description="True if a person may insist past this answer.")
    ]
    overruled: Annotated[
        bool,
        Meta(
            description="True if a person insists past this guard: it refuses, and does not hold the drain."
        ),
    ]
    transient: Annotated[
        bool,
        Meta(
            description="True if the refusal ends by itself in time: a drain that is approved meanwhile waits for that end."
        ),
    ]


Reason: TypeAlias = Annotated[str, Meta(max_length=500)]


class HaltRequest(Struct, frozen=True, kw_only=True):
    """A reason sets the halt, and null lifts it."""

    reason: Reason | None


class HealthBody(Struct, frozen=True, kw_only=True):
    """The state of the service (`status`) and of each of its parts."""

    status: str
    parts: dict[str, str]


class HoldBody(Struct, frozen=True, kw_only=True):
    """A time in which the drain was held, and the reason. `to` is null while the hold lasts."""

    from_: datetime = field(name="from")
    to: datetime | None
    reason: str


class IdentityBody(Struct, frozen=True, kw_only=True):
    """The identity that the drive reports."""

    vendor: str | None
    model: str | None
    family: str | None
    serial: str | None
    wwn: str | None
    firmware: str | None
    capacity_bytes: int | None
    rotation_rpm: int | None


Guard: TypeAlias = Annotated[str, Meta(max_length=256, min_length=1)]


class InsistRequest(Struct, frozen=True, kw_only=True):
    """Guards that refuse now and are to be overruled for this drain and its step alone."""

    guards: Annotated[
        list[Guard],
        Meta(
            description="Codes of guards, as `guards` of the drain has them.",
            max_length=20,
            min_length=1,
        ),
    ]
    reason: Annotated[
        str,
        Meta(
            description="Kept in the journal and in the audit.",
            max_length=2000,
            min_length=1,
        ),
    ]
    confirm: Annotated[
        str,
        Meta(
            description="The drain's OSD, typed: `osd.12`.",
            max_length=256,
            min_length=1,
        ),
    ]
    minutes: (
        Annotated[
            float,
            Meta(
                description="The most minutes that the insistence holds.",
                gt=0.0,
                le=60.0,
            ),
        ]
        | UnsetType
    ) = 60.0


class InsistenceBody(Struct, frozen=True, kw_only=True):
    """Guards that a person overruled for this drain, until its step ends, and at most until the time `until`."""

    guards: list[str]
    by: str
    reason: str
    until: datetime


class JournalLineBody(Struct, frozen=True, kw_only=True):
    """
    One line of a drain's journal. `event`: the value that a program may decide by; null where the line is for people
    only.
    """

    at: datetime
    observed: str
    decision: str
    result: str
    epoch: int | None
    caller: str
    event: str | None
    cluster: (
        Annotated[
            str,
            Meta(
                description="The fsid of the drain's cluster; null before a cluster answered."
            ),
        ]
        | None
    )


class LifeBody(Struct, frozen=True, kw_only=True):
    """Days until 10, 50 and 90 of 100 such disks have failed; null: beyond ten years."""

    p10: float | None
    p50: float | None
    p90: float | None


class LineBody(Struct, frozen=True, kw_only=True):
    """One PG's `up` as it is and as it will be, and the bytes that travel for it."""

    pg: str
    before: list[int]
    after: list[int]
    bytes: int
    text: str


class LocateRequest(Struct, frozen=True, kw_only=True):
    """The wanted state of the light."""

    on: bool


class MessageReceiverTestBody(Struct, frozen=True, kw_only=True):
    """The result of a test message. `problem`: the reason if the receiver did not take it."""

    name: str
    delivered: bool
    problem: str | None


class ModelCountsBody(Struct, frozen=True, kw_only=True):
    """The disks of one drive model. `turned_bad`: those that turned bad within the window of mass suspicion."""

    model: str
    disks: int
    warning: int
    bad: int
    turned_bad: int


class MoveBody(Struct, frozen=True, kw_only=True):
    """The way of one PG's copy or shard."""

    pg: str
    source: int
    target: int
    bytes: int


class OsdDrainBody(Struct, frozen=True, kw_only=True):
    """The drain that concerns an OSD now."""

    id: str
    state: Annotated[
        str,
        Meta(
            description="The states of a drain (design 6.2). FAILED needs a person, and the drain gives the reason."
        ),
    ]
    state_text: str
    state_names_intent: Annotated[
        bool,
        Meta(
            description='True if `state_text` shows the intent by itself, as "filling" does.'
        ),
    ]
    intent: Annotated[
        str,
        Meta(
            description="REPLACE keeps the slot (and its CRUSH weight) for a new disk; REMOVE ends at CRUSH weight 0.\n\nQUARANTINE moves no data: the OSD is the primary of no PG until it is no longer slow. FILL is the way back: a new,\nempty disk in the slot gets its share."
        ),
    ]
    moved_bytes: int
    planned_bytes: int
    held_by: list[str]


class OutcomeBody(Struct, frozen=True, kw_only=True):
    """A statement about the device's end."""

    at: datetime
    fate: Annotated[
        str, Meta(description="SUSPECTED stands until a person or a rule confirms it.")
    ]
    source: str
    note: str


class OutcomeRequest(Struct, frozen=True, kw_only=True):
    """A person's statement about the device's end."""

    fate: Annotated[
        str, Meta(description="SUSPECTED stands until a person or a rule confirms it.")
    ]
    note: Annotated[str, Meta(max_length=2000)] | UnsetType = ""


class OverviewBody(Struct, frozen=True, kw_only=True):
    """A cluster in numbers. `fresh`: disks that were read within two intervals. `drains`: drains under way."""

    cluster: str
    fsid: str | None
    at: datetime
    health: str | None
    osds: int
    hosts: int
    disks: int
    fresh: int
    warning: int
    bad: int
    expected_30d: float | None
    drains: int
    halted: bool
    models: list[ModelCountsBody]


class PointBody(Struct, frozen=True, kw_only=True):
    """Probability to be alive after `day` days."""

    day: int
    p: float


class PreviewRowBody(Struct, frozen=True, kw_only=True):
    """
    One base cost of a failure and the results that it would have had. `current`: true for the cost that is set.
    `cost_bytes`: moved bytes, plus rebuilt bytes times the cost that is set.
    """

    failure_cost: float
    current: bool
    drains: int
    in_time: int
    needless: int
    undecided: int
    moved_bytes: int
    needless_bytes: int
    rebuilt_bytes: int
    moving_hours: float
    cost_bytes: float


class ProgressBody(Struct, frozen=True, kw_only=True):
    """The progress of a drain's data."""

    planned_pgs: int
    moved_pgs: int
    planned_bytes: int
    moved_bytes: int
    in_flight: int
    budget: int
    lost_pgs: Annotated[
        int,
        Meta(
            description="PGs whose copy on the old disk is gone without having been moved."
        ),
    ]


class RarityBody(Struct, frozen=True, kw_only=True):
    """
    The position of a value among `compared` other drives in service: of the same model, or of all that report it.

    `better`: drives with a better value; `equal`: with the same; the others are worse.
    """

    compared: int
    better: int
    equal: int
    same_model: bool


class ReadingsBody(Struct, frozen=True, kw_only=True):
    """Disks that were read within two intervals, and all present disks."""

    fresh: int
    total: int


class ReasonBody(Struct, frozen=True, kw_only=True):
    """One fact behind an outlook."""

    code: str
    sentence: str
    counter: str | None


class ReceiverBody(Struct, frozen=True, kw_only=True):
    """The data that one OSD takes, and how full the OSD is before and after; null where its sizes are not known."""

    osd: int
    pgs: int
    bytes: int
    before: float | None
    after: float | None


class RefusedBody(Struct, frozen=True, kw_only=True):
    """A reading that was not accepted, by its place in the request, with the reason and the cure."""

    index: int
    reason: str
    retry_after: (
        Annotated[
            float,
            Meta(
                description="Seconds after which the same bytes may be accepted, if the fault is a clock's or the token's. Null: never."
            ),
        ]
        | None
    )


class RequesterBody(Struct, frozen=True, kw_only=True):
    """The surface through which a request came, and the person who sent it; `person` is empty where nobody is named."""

    surface: Annotated[
        str,
        Meta(
            description="The surface of a request. TOKEN: over REST, by a program or a command with the token of that name."
        ),
    ]
    person: str


class SelfTestRequest(Struct, frozen=True, kw_only=True):
    """The kind of self-test."""

    kind: str


Point1: TypeAlias = tuple[int, float | None]


class SeriesBody(Struct, frozen=True, kw_only=True):
    """A counter or probability over time: (milliseconds since 1970, value)."""

    name: str
    unit: str | None
    points: list[Point1]


class ServiceStateBody(Struct, frozen=True, kw_only=True):
    """
    The role of the service that answers: `alone` (its store is a file), `active` or `standby`. The active one sends
    messages, applies retention and records lives; it, too, acts on drains if it controls a cluster. `active`: null if
    none is known, and alone. `sentence` is for people.
    """

    role: Annotated[
        str,
        Meta(
            description="The role of a service beside the others that share its store."
        ),
    ]
    active: ActiveServiceBody | None
    sentence: str


class SessionBody(Struct, frozen=True, kw_only=True):
    """
    The person who is signed in; `name` is null for nobody. `csrf_token` goes into X-Predrain-CSRF-Token with each
    request that changes something.

    `can_read`: true if this browser may read. `sign_in_url`: the address at which people sign in at a provider, if
    there is one.
    """

    name: str | None
    scopes: list[str]
    csrf_token: str | None
    ends_at: datetime | None
    can_read: bool
    sign_in_url: str | None


class SharedModelBody(Struct, frozen=True, kw_only=True):
    """A drive model, added up over the clusters that have such disks."""

    model: str
    disks: int
    warning: int
    bad: int
    turned_bad: int
    clusters: list[str]


class ShiftBody(Struct, frozen=True, kw_only=True):
    """
    One feature, or the score: stability index, distance of distributions, change of the share that is not
    reported, and the medians in training and now.
    """

    name: str
    psi: float
    ks: float
    missing_increase: float
    reference: float | None
    current: float | None


class SignInRequest(Struct, frozen=True, kw_only=True):
    """A token of predrain."""

    token: Annotated[str, Meta(max_length=500, min_length=1)]


class SignedRequestBody(Struct, frozen=True, kw_only=True):
    """A request as JSON text, and HMAC-SHA256 over that text in hex."""

    request: str
    signature: str


class SilenceBody(Struct, frozen=True, kw_only=True):
    """A silence: its causes send no message before `until`. Patterns are the shell's; an empty one covers all."""

    id: str
    until: datetime
    by: str
    reason: str
    cause: str
    host: str
    model: str
    name: str
    rack: str
    severity: str | None


class SilencePage(Struct, frozen=True, kw_only=True):
    """A page of the silences that stand, in order of their ends."""

    items: list[SilenceBody]
    next: str | None


class SilenceRequest(Struct, frozen=True, kw_only=True):
    """At least one of `cause`, `host`, `model`, `name` and `rack`."""

    hours: Annotated[
        float,
        Meta(
            description="How many hours the silence stands, 30 days at most.",
            gt=0.0,
            le=720.0,
        ),
    ]
    reason: Annotated[str, Meta(max_length=500, min_length=1)]
    cause: (
        Annotated[
            str,
            Meta(description="Pattern of causes' keys: `silent:*`.", max_length=256),
        ]
        | UnsetType
    ) = ""
    host: (
        Annotated[str, Meta(description="Pattern of host names.", max_length=256)]
        | UnsetType
    ) = ""
    model: (
        Annotated[str, Meta(description="Pattern of drive models.", max_length=256)]
        | UnsetType
    ) = ""
    name: (
        Annotated[
            str,
            Meta(description="Pattern of points: `disk:ST4000DM000*`.", max_length=256),
        ]
        | UnsetType
    ) = ""
    rack: (
        Annotated[str, Meta(description="Pattern of racks.", max_length=256)]
        | UnsetType
    ) = ""
    severity: (
        Annotated[
            str,
            Meta(
                description="Severity of the points; null: both. A notice that becomes urgent is reported."
            ),
        ]
        | None
        | UnsetType
    ) = UNSET


class SilencedPointBody(Struct, frozen=True, kw_only=True):
    """A point that a silence would cover now, with the key and the title of its cause."""

    cause: str
    title: str
    name: str
    sentence: str
    severity: Annotated[
        str,
        Meta(
            description="The urgency of a cause: a notice can wait for working hours."
        ),
    ]


class StepBody(Struct, frozen=True, kw_only=True):
    """A step as JSON text, and HMAC-SHA256 over that text in hex."""

    step: str
    signature: str


class StepPage(Struct, frozen=True, kw_only=True):
    """Steps that wait, oldest first."""

    items: list[StepBody]


class StepReceiptBody(Struct, frozen=True, kw_only=True):
    """The answer has reached the controller that waits for it."""

    id: str


Epoch: TypeAlias = Annotated[int, Meta(ge=0)]


class StepResultRequest(Struct, frozen=True, kw_only=True):
    """The result of a step. `refused`: by the mgr executor's own guards, before anything was sent."""

    ok: bool
    text: Annotated[str, Meta(max_length=2000)]
    epoch: Epoch | None | UnsetType = UNSET
    refused: bool | UnsetType = False


class TargetBody(Struct, frozen=True, kw_only=True):
    """The data that the OSDs of one rack take."""

    rack: str | None
    bytes: int
    hosts: int
    osds: int


class TaskBody(Struct, frozen=True, kw_only=True):
    """One thing to do, and the command that does it, where there is one."""

    description: str
    command: str


class TemperatureBody(Struct, frozen=True, kw_only=True):
    """
    The drive's temperature in °C beside the fleet's. `limit_c`: the drive's own limit, where it states one.

    `median_c` and `hottest_c`: of the `compared` other drives in service; `hotter`: how many of them are hotter.
    """

    now_c: int
    limit_c: int | None
    compared: int
    hotter: int
    median_c: float | None
    hottest_c: int | None


class ThresholdBody(Struct, frozen=True, kw_only=True):
    """
    The threshold of a status on this fleet: the lowest probability of failure within 30 days at which the forecast
    gives a disk this status, and the share of healthy disks that reach it in a month.
    """

    status: str
    p_fail_30d: float
    false_alarm_rate: float
    disk_months: Annotated[
        float,
        Meta(
            description="Months of this fleet's own disks from which the threshold is computed; 0: from the bundle's training data."
        ),
    ]


class TimelineBody(Struct, frozen=True, kw_only=True):
    """Curves on one axis of milliseconds since 1970."""

    t: list[int]
    bytes_left: list[int]
    in_flight: list[int]
    latency_ratio: list[float | None]
    holds: list[HoldBody]


class WayOutBody(Struct, frozen=True, kw_only=True):
    """A way out of a drain that cannot end, with its effect. `make_room` is done by hand; all others have a route."""

    way: Annotated[
        str, Meta(description="The choices of a person for a drain that cannot end.")
    ]
    sentence: str


class WorkBody(Struct, frozen=True, kw_only=True):
    """The requests for the host. `stop`: disks on which a test that the collector started is to be ended."""

    requests: list[SignedRequestBody]
    stop: list[str]


class ProblemBody(Struct, frozen=True, kw_only=True):
    """A problem and its cure. Further members may follow (`errors`, `drain`, `waits_for`, `active`)."""

    type: str
    title: str
    status: int
    detail: str


class ActingBody(Struct, frozen=True, kw_only=True):
    """
    The controller that acts on drains. `place`: this process, another one, none, or not known. `owner`, `host`,
    `pid` and `until` are those of the lease, where there is one; `sentence` is for people.
    """

    place: Annotated[
        str,
        Meta(
            description="The place of the controller that acts on drains, as seen by the process that answers."
        ),
    ]
    owner: str | None
    host: str | None
    pid: int | None
    until: datetime | None
    reason: str
    sentence: str


class AlertBody(Struct, frozen=True, kw_only=True):
    """
    One announcement: the finding, the reason, its certainty, and what predrain does about it. `status`: the severity
    that was announced; `severity` and `state`: those of the disk now.
    """

    at: datetime
    device: str
    osd: int | None
    status: Annotated[
        str,
        Meta(
            description="The severity of a forecast, in Ceph's words. Only BAD proposes a drain by itself."
        ),
    ]
    severity: str | None
    state: str | None
    reason: str
    confidence: str
    action: str


class AlertPage(Struct, frozen=True, kw_only=True):
    """Alerts, newest first."""

    items: list[AlertBody]
    next: str | None


class AttributeBody(Struct, frozen=True, kw_only=True):
    """
    One value that the drive reports. `id`, `value` (normalised), `worst` and `threshold`: of an ATA attribute.

    `worse`: the side on which a drive is worse than its peers. `shows_fault`: a rare value is a sign of a fault.
    `below_threshold`: the normalised value has reached the maker's threshold; `was_below`: it once had.
    `points`: (milliseconds since 1970, the highest raw value until the next point). `rarity`: null if no other drive
    reports the value in a form that can be compared.
    """

    name: str
    id: int | None
    title: str
    meaning: str
    meaning_source: str
    unit: str
    raw: int
    value: int | None
    worst: int | None
    threshold: int | None
    below_threshold: bool
    was_below: bool
    worse: Annotated[
        str,
        Meta(
            description="The side of a value on which a drive is worse than its peers."
        ),
    ]
    shows_fault: bool
    rarity: RarityBody | None
    points: list[Point]


class AttributesBody(Struct, frozen=True, kw_only=True):
    """
    The values of the drive's newest readable report, and how each value went over the last `days`.

    `taken_at`: of that report; null, and `values` empty, if there is none.
    """

    device: str
    taken_at: datetime | None
    days: int
    model: str | None
    temperature: TemperatureBody | None
    values: list[AttributeBody]


class BoundBody(Struct, frozen=True, kw_only=True):
    """A lower bound of the plan's duration; the longest bound is the plan's bottleneck."""

    name: str
    hours: float
    kind: Annotated[
        str, Meta(description="The causes that limit how soon a plan can end.")
    ]


class CausePointBody(Struct, frozen=True, kw_only=True):
    """One disk, host, drain or part of a cause. `silence`: the id of the silence that covers it, if any."""

    name: str
    sentence: str
    severity: Annotated[
        str,
        Meta(
            description="The urgency of a cause: a notice can wait for working hours."
        ),
    ]
    silence: str | None


class DemoBody(Struct, frozen=True, kw_only=True):
    """The progress of the demo."""

    day: int
    days: int
    seed: int
    seconds_per_day: float
    note: str
    table: DemoTableBody | None


class DeviceBody(Struct, frozen=True, kw_only=True):
    """
    A disk in a list. `host`, `taken_at`: of its newest reading; unknown for a disk that was never read.

    `severity`: null for a disk that failed or is retired. `status`: the same, with `unknown` in place of null.
    `slot`: as in the row of its OSD; null without an OSD. `device_name`: the kernel's name, such as `sdb`, when its OSD
    started. `p_fail_30d` and the life: null without a forecast. `source`, `rule_score`, `reasons`, `prescription` and
    `advice`: of its outlook, without the sentences that are about its model and not about the disk itself.
    """

    device: str
    host: str | None
    slot: int | None
    device_name: str | None
    osds: list[int]
    model: str | None
    serial: str | None
    protocol: str | None
    capacity_bytes: int | None
    state: Annotated[
        str,
        Meta(
            description="The states in the life of a disk. FAILED and RETIRED are ends; the others are living states."
        ),
    ]
    severity: str | None
    status: Annotated[
        str,
        Meta(
            description="The severity of a forecast, in Ceph's words. Only BAD proposes a drain by itself."
        ),
    ]
    p_fail_30d: float | None
    life_p10_days: float | None
    life_p90_days: float | None
    source: str | None
    rule_score: float | None
    reasons: list[str]
    prescription: str | None
    advice: str | None
    power_on_hours: int | None
    temperature_c: int | None
    temperature_limit_c: (
        Annotated[int, Meta(description="The drive's own limit of operation.")] | None
    )
    temperature_critical_c: (
        Annotated[
            int,
            Meta(description="The drive's own last limit, above which it may stop."),
        ]
        | None
    )
    taken_at: datetime | None


class DeviceDrainBody(Struct, frozen=True, kw_only=True):
    """A drain that this device had."""

    id: str
    state: Annotated[
        str,
        Meta(
            description="The states of a drain (design 6.2). FAILED needs a person, and the drain gives the reason."
        ),
    ]
    created_at: datetime


class DevicePage(Struct, frozen=True, kw_only=True):
    """
    A page of devices in order of their ids, as of the change `at`; `full` is false if only changed devices are
    listed. Devices may change while the pages are requested: after the last page, request what changed since the first.
    """

    items: list[DeviceBody]
    next: str | None
    at: str
    full: bool
    removed: Annotated[
        list[str], Meta(description="Devices that have gone since `since`.")
    ]


class DiskRequestBody(Struct, frozen=True, kw_only=True):
    """
    A request about a disk. `sent_at`: its host fetched it. `outcome`: null while it has not ended. `slot`: as the
    enclosure names it.
    """

    id: str
    verb: Annotated[str, Meta(description="The requests that a collector knows.")]
    by: str
    issued_at: datetime
    expires_at: datetime
    sent_at: datetime | None
    outcome: str | None
    ended_at: datetime | None
    sentence: str
    slot: str | None


class DrainRequest(Struct, frozen=True, kw_only=True):
    """A drain that a person requests."""

    target: Annotated[
        str, Meta(description="`osd.N` or a device id.", max_length=256, min_length=1)
    ]
    intent: (
        Annotated[
            str,
            Meta(
                description="REPLACE keeps the slot (and its CRUSH weight) for a new disk; REMOVE ends at CRUSH weight 0.\n\nQUARANTINE moves no data: the OSD is the primary of no PG until it is no longer slow. FILL is the way back: a new,\nempty disk in the slot gets its share."
            ),
        ]
        | UnsetType
    ) = "replace"
    reason: Annotated[str, Meta(max_length=2000)] | UnsetType = ""
    spare_reads: (
        Annotated[
            bool,
            Meta(
                description="Reading the disk hurts clients: other OSDs become the primaries of its PGs first."
            ),
        ]
        | UnsetType
    ) = False


class DriftBody(Struct, frozen=True, kw_only=True):
    """A family against its training. `judged` is false below 100 drives, or where the bundle has no reference."""

    family: str
    drives: int
    judged: bool
    drifted: list[str]
    score_drifted: bool
    score: ShiftBody | None
    top_features: list[ShiftBody]


class ForecastHealthBody(Struct, frozen=True, kw_only=True):
    """`checked_at`: the time of the last check of drift, calibration and comparison; null before the first check."""

    bundle: BundleBody | None
    since: datetime | None
    previous_bundle: str | None
    quiet_until: datetime | None
    challenger: BundleBody | None
    thresholds: list[ThresholdBody]
    checked_at: datetime | None
    drift: list[DriftBody]
    calibration: list[CalibrationBody]
    comparison: ComparisonBody | None
    concerns: list[ConcernBody]
    errors: dict[str, str]


class HaltBody(Struct, frozen=True, kw_only=True):
    """
    `halted`: the reason why everything is halted; null when it is not. `by` and `since`: null for a halt that was
    set past this service. `unreached`: a sentence with the places that the last halt of this service, or its lifting,
    did not reach; null for none. `stored_in`: the places where the halt is kept; a halt that only the service's memory
    has ends with the process.
    """

    halted: str | None
    by: str | None
    since: datetime | None
    unreached: str | None
    stored_in: list[str]


class HistoryBody(Struct, frozen=True, kw_only=True):
    """
    The series that the device ever reported, those that changed first; null is a reading without that value.

    If one OSD alone is on the device, there are also series of the OSD, as its host counted: `read_ms`, `write_ms` and
    `commit_ms` (medians), `latency_ratio` (to the median of the host's other OSDs of its class; the median over time),
    `slow_minutes` (minutes at `slow_ratio` or more) and `slow_ops` (the most at once). Each has 480 points at most, and
    goes back as far as `retention.latency_days`.
    """

    device: str
    from_: datetime = field(name="from")
    to: datetime
    series: list[SeriesBody]
    slow_ratio: Annotated[
        float,
        Meta(
            description="The ratio from which a minute of the OSD counts as slow. It takes hours of such minutes to call the OSD slow."
        ),
    ]


class HistoryEventBody(Struct, frozen=True, kw_only=True):
    """
    One event. `href`: the view of the page with details. A field that the event does not concern, or whose value is
    not known, is null.
    """

    at: datetime
    kind: Annotated[str, Meta(description="The kinds of events.")]
    group: Annotated[str, Meta(description="The subject of an event.")]
    host: str | None
    device: str | None
    osd: int | None
    drain: str | None
    sentence: str
    href: str


class HistoryPageBody(Struct, frozen=True, kw_only=True):
    """
    Events, newest first. `next` leads to older events. A page with few events, or none, may have a `next` if many
    events had to be left out.
    """

    items: list[HistoryEventBody]
    next: str | None


class IngestedBody(Struct, frozen=True, kw_only=True):
    """The number of accepted items, and each of the others with a reason."""

    accepted: int
    refused: list[RefusedBody]


class JournalBody(Struct, frozen=True, kw_only=True):
    """Lines of a drain's journal, oldest first; `next` leads to those before them."""

    items: list[JournalLineBody]
    next: str | None


class LifeChangeBody(Struct, frozen=True, kw_only=True):
    """
    A change in the life of a disk. `retired_reason`: of a retired disk. `subject`: what the evidence is about (a
    drain's id, a host, a person, another disk, an OSD). `successor`: the disk that stands in its slot now.
    """

    device: str
    at: datetime
    state: Annotated[
        str,
        Meta(
            description="The states in the life of a disk. FAILED and RETIRED are ends; the others are living states."
        ),
    ]
    retired_reason: str | None
    source: Annotated[
        str, Meta(description="The source from which a change became known.")
    ]
    evidence: Annotated[
        str,
        Meta(
            description="The kind of evidence for a change; `LifeChange.subject` names the thing itself."
        ),
    ]
    subject: str
    sentence: str
    host: str | None
    osds: list[int]
    successor: str | None


class MessageReceiverBody(Struct, frozen=True, kw_only=True):
    """A channel, its route, and its deliveries since the start of this process. No address and no key is in it."""

    name: str
    min_severity: Annotated[
        str,
        Meta(
            description="The urgency of a cause: a notice can wait for working hours."
        ),
    ]
    only_hosts: list[str]
    only_racks: list[str]
    sent: int
    failed: int
    last_sent_at: datetime | None
    problem: str | None


class MessageReceiverList(Struct, frozen=True, kw_only=True):
    """A page of the channels that the settings name, by name."""

    items: list[MessageReceiverBody]
    next: str | None


class OsdDeviceBody(Struct, frozen=True, kw_only=True):
    """An OSD that lies on the disk, and what it keeps there."""

    osd: int
    role: Annotated[str, Meta(description="The part of an OSD that is on a device.")]
    cluster: (
        Annotated[
            str,
            Meta(
                description="The fsid of the OSD's cluster; null where the disk's host does not report it."
            ),
        ]
        | None
    )


class OtherClusterBody(Struct, frozen=True, kw_only=True):
    """Another cluster, as its service answered last. `refused`: the reason why the last request got no answer."""

    url: str
    overview: OverviewBody | None
    answered_at: datetime | None
    refused: str | None


class OutlookBody(Struct, frozen=True, kw_only=True):
    """
    A device's newest forecast. A forecast by a rule has no probability, but a `rule_score`: evidence in [0, 1].

    `advice` is the prescription for programs. `endurance`: days until a flash drive's rated life is used up, by the
    slope of its own wear counter; this end is not a failure.
    """

    device: str
    as_of: datetime
    status: Annotated[
        str,
        Meta(
            description="The severity of a forecast, in Ceph's words. Only BAD proposes a drain by itself."
        ),
    ]
    source: str
    p_fail_7d: float | None
    p_fail_14d: float | None
    p_fail_30d: float | None
    life: LifeBody | None
    reasons: list[ReasonBody]
    prescription: str
    advice: str | None
    clear_condition: str
    rule_score: float | None
    endurance: LifeBody | None
    survival: list[PointBody] | None


class OutlookPage(Struct, frozen=True, kw_only=True):
    """A page of outlooks in order of device id."""

    items: list[OutlookBody]
    next: str | None


class PlanBody(Struct, frozen=True, kw_only=True):
    """A drain's plan: its mechanic, the racks that take the data, and the refusals that stand against it."""

    mechanic: Annotated[
        str, Meta(description="The ways in which data leaves an OSD (design 6.4).")
    ]
    reason: str
    bytes: int
    pgs: int
    fullest_osd: int | None
    fullest_after: float | None
    cluster_after: float | None
    eta_hours: float | None
    bottleneck: str
    refusals: list[str]
    targets: list[TargetBody]


class PolicyPreviewBody(Struct, frozen=True, kw_only=True):
    """
    The settings side by side, over the same days and disks. `running`: the replay is under way, and `rows` are those
    of the replay before, if any. `error`: the reason why there is no result.
    """

    days: int
    running: bool
    made_at: datetime | None
    first: str | None
    last: str | None
    disks: int | None
    failures: int | None
    rows: list[PreviewRowBody]
    error: str | None


class ReportEntryBody(Struct, frozen=True, kw_only=True):
    """
    One disk or drain of the report. A field that does not apply to the kind, or whose value is not known, is null.

    `called_days`: days for which the disk had been called warning or worse. `hours_above`, `hours_measured`: hours of
    the drain in which the latency ratio was above the limit, and in which the ratio is known.
    """

    at: datetime
    kind: Annotated[
        str,
        Meta(
            description="The kinds of an entry. A failure has exactly one of the five kinds that begin with `failed`."
        ),
    ]
    sentence: str
    device: str | None
    host: str | None
    osd: int | None
    drain: str | None
    intent: str | None
    moved_bytes: int | None
    called_days: float | None
    hours_above: float | None
    hours_measured: float | None


class RequestRefusalBody(Struct, frozen=True, kw_only=True):
    """A reason why a request would be refused now, with its cure."""

    kind: Annotated[
        str,
        Meta(description="The reasons why a request is not taken, or not handed out."),
    ]
    sentence: str


class RequestedDrainBody(Struct, frozen=True, kw_only=True):
    """A drain as a request left it, and the controller that acts on it. Without a controller nothing happens to it."""

    id: str
    cluster: (
        Annotated[
            str,
            Meta(
                description="The fsid of the drain's cluster, in which its id is unique; null before a cluster answered."
            ),
        ]
        | None
    )
    device: str | None
    osds: list[int]
    state: Annotated[
        str,
        Meta(
            description="The states of a drain (design 6.2). FAILED needs a person, and the drain gives the reason."
        ),
    ]
    state_text: Annotated[
        str,
        Meta(
            description="The state in words for people; a fill and a quarantine have words of their own."
        ),
    ]
    state_names_intent: Annotated[
        bool,
        Meta(
            description='True if `state_text` shows the intent by itself, as "filling" does.'
        ),
    ]
    intent: Annotated[
        str,
        Meta(
            description="REPLACE keeps the slot (and its CRUSH weight) for a new disk; REMOVE ends at CRUSH weight 0.\n\nQUARANTINE moves no data: the OSD is the primary of no PG until it is no longer slow. FILL is the way back: a new,\nempty disk in the slot gets its share."
        ),
    ]
    requested_by: str
    requester: RequesterBody
    reason: str
    created_at: datetime
    updated_at: datetime
    held_by: list[str]
    ways_out: Annotated[
        list[WayOutBody],
        Meta(
            description="The ways out that are open now to a drain that cannot go on by itself, as of the last poll."
        ),
    ]
    insistence: InsistenceBody | None
    end_reason: str
    etag: str
    progress: ProgressBody
    plan: PlanBody | None
    remaining_hours: (
        Annotated[
            float,
            Meta(
                description="Hours that the drain still takes, at the pace so far, or by the plan before enough has moved. Null where no\nestimate is possible, or while the drain is not under way or is held."
            ),
        ]
        | None
    )
    duration_hours: (
        Annotated[
            float,
            Meta(
                description="Hours from the first step to the end of a drain that is over; null for one that never began."
            ),
        ]
        | None
    )
    acting: ActingBody


class ResidenceBody(Struct, frozen=True, kw_only=True):
    """
    The host of a disk. `other_hosts`: other hosts that name the disk; their readings are separate, under `DEVICE on
    HOST`. `hosts`: hosts that a person may name as the disk's; none if only one host names the disk, or if others do
    in the cluster's device list alone. `by`: the observation or person that settled the host; null while it is not
    settled. `since`: the time since which it is not settled.
    """

    device: str
    state: Annotated[
        str, Meta(description="The certainty about the host in which a disk lives.")
    ]
    host: str
    other_hosts: list[str]
    hosts: list[str]
    by: str | None
    since: datetime | None


class RunningSelfTestBody(Struct, frozen=True, kw_only=True):
    """The self-test that runs. `kind` and `done_percent`: null where the drive does not report them."""

    kind: str | None
    done_percent: int | None


class SelfTestBody(Struct, frozen=True, kw_only=True):
    """
    A self-test of the drive's own log. `power_on_hours`: the drive's age at its end. `first_error_lba`: the first
    block that could not be read.
    """

    kind: Annotated[
        str,
        Meta(
            description="The kinds of self-test that predrain starts, and one word for all others."
        ),
    ]
    result: Annotated[
        str, Meta(description="The end of a self-test, or that it still runs.")
    ]
    failed: bool
    sentence: str
    power_on_hours: int | None
    first_error_lba: int | None


class SelfTestsBody(Struct, frozen=True, kw_only=True):
    """The self-tests that the drive reports, newest first. `short_minutes`, `long_minutes`: its own estimates."""

    read_at: datetime
    running: RunningSelfTestBody | None
    log: list[SelfTestBody]
    short_minutes: int | None
    long_minutes: int | None


class SilencePreviewBody(Struct, frozen=True, kw_only=True):
    """
    The points of present causes that a silence would cover now, and the disks about which no message would be sent.

    `points` and `disks` hold the first 1000; the totals count all.
    """

    points: list[SilencedPointBody]
    total_points: int
    disks: list[str]
    total_disks: int


class SlotDiskBody(Struct, frozen=True, kw_only=True):
    """
    One disk that stands or stood in a slot. `until`: null while it stands there. `since`: null where the record does
    not reach back so far. `changes`: those of its life in that slot, newest first. `state` and `severity`: now.
    """

    device: str
    since: datetime | None
    until: datetime | None
    state: Annotated[
        str,
        Meta(
            description="The states in the life of a disk. FAILED and RETIRED are ends; the others are living states."
        ),
    ]
    severity: str | None
    changes: list[LifeChangeBody]


class StatusBody(Struct, frozen=True, kw_only=True):
    """
    `controller` is `running` or `holding: WHY`; unknown figures are null. `halt_passes`: true if no person halted,
    the cluster does not answer, and the halt ends when it answers.
    """

    cluster: str
    now: datetime
    as_of: datetime | None
    epoch: int | None
    health: str | None
    mode: Annotated[
        str,
        Meta(
            description="OBSERVE: forecasts only. PROPOSE: drains are proposed, and a person approves. ACT: bad disks are\ndrained."
        ),
    ]
    halted: str | None
    halt_passes: bool
    osds: int
    hosts: int
    forecast: ForecastBody
    readings: ReadingsBody
    view_age_seconds: float | None
    controller: str
    acting: ActingBody
    service: ServiceStateBody
    other_clusters: Annotated[
        int,
        Meta(description="Other clusters whose services are asked (`GET clusters`)."),
    ]
    demo: DemoBody | None


class UnreadableBody(Struct, frozen=True, kw_only=True):
    """The time since which a disk cannot be read, and why. A program decides by `cause`; `reason` is for people."""

    since: datetime
    cause: Annotated[
        str,
        Meta(
            description="The cause of a failed probe. The part that saw the failure decides it: the collector, or the smartctl decoder."
        ),
    ]
    blames_host: Annotated[
        bool,
        Meta(
            description="True if the host is at fault, so that the failed probe says nothing against the disk."
        ),
    ]
    reason: str


class WholeDeviceBody(Struct, frozen=True, kw_only=True):
    """
    One disk with everything known of it. `osd_devices`: as its host reported with the newest reading. `life`: its
    state now; `life_changes`: those on record, newest first. `outlook`: null for a disk that failed or is retired.
    """

    device: str
    host: str | None
    slot: int | None
    device_name: str | None
    osds: list[int]
    model: str | None
    serial: str | None
    protocol: str | None
    capacity_bytes: int | None
    state: Annotated[
        str,
        Meta(
            description="The states in the life of a disk. FAILED and RETIRED are ends; the others are living states."
        ),
    ]
    severity: str | None
    status: Annotated[
        str,
        Meta(
            description="The severity of a forecast, in Ceph's words. Only BAD proposes a drain by itself."
        ),
    ]
    p_fail_30d: float | None
    life_p10_days: float | None
    life_p90_days: float | None
    source: str | None
    rule_score: float | None
    reasons: list[str]
    prescription: str | None
    advice: str | None
    power_on_hours: int | None
    temperature_c: int | None
    temperature_limit_c: (
        Annotated[int, Meta(description="The drive's own limit of operation.")] | None
    )
    temperature_critical_c: (
        Annotated[
            int,
            Meta(description="The drive's own last limit, above which it may stop."),
        ]
        | None
    )
    taken_at: datetime | None
    osd_devices: list[OsdDeviceBody]
    identity: IdentityBody | None
    passed: bool | None
    unreadable: UnreadableBody | None
    life: LifeChangeBody
    life_changes: list[LifeChangeBody]
    outlook: OutlookBody | None
    drains: list[DeviceDrainBody]
    outcomes: list[OutcomeBody]
    family_survival: list[PointBody] | None


class WholeDrainBody(Struct, frozen=True, kw_only=True):
    """A drain with every guard and its curve."""

    id: str
    cluster: (
        Annotated[
            str,
            Meta(
                description="The fsid of the drain's cluster, in which its id is unique; null before a cluster answered."
            ),
        ]
        | None
    )
    device: str | None
    osds: list[int]
    state: Annotated[
        str,
        Meta(
            description="The states of a drain (design 6.2). FAILED needs a person, and the drain gives the reason."
        ),
    ]
    state_text: Annotated[
        str,
        Meta(
            description="The state in words for people; a fill and a quarantine have words of their own."
        ),
    ]
    state_names_intent: Annotated[
        bool,
        Meta(
            description='True if `state_text` shows the intent by itself, as "filling" does.'
        ),
    ]
    intent: Annotated[
        str,
        Meta(
            description="REPLACE keeps the slot (and its CRUSH weight) for a new disk; REMOVE ends at CRUSH weight 0.\n\nQUARANTINE moves no data: the OSD is the primary of no PG until it is no longer slow. FILL is the way back: a new,\nempty disk in the slot gets its share."
        ),
    ]
    requested_by: str
    requester: RequesterBody
    reason: str
    created_at: datetime
    updated_at: datetime
    held_by: list[str]
    ways_out: Annotated[
        list[WayOutBody],
        Meta(
            description="The ways out that are open now to a drain that cannot go on by itself, as of the last poll."
        ),
    ]
    insistence: InsistenceBody | None
    end_reason: str
    etag: str
    progress: ProgressBody
    plan: PlanBody | None
    remaining_hours: (
        Annotated[
            float,
            Meta(
                description="Hours that the drain still takes, at the pace so far, or by the plan before enough has moved. Null where no\nestimate is possible, or while the drain is not under way or is held."
            ),
        ]
        | None
    )
    duration_hours: (
        Annotated[
            float,
            Meta(
                description="Hours from the first step to the end of a drain that is over; null for one that never began."
            ),
        ]
        | None
    )
    acting: ActingBody
    cancel_hours: (
        Annotated[
            float,
            Meta(
                description="Hours that a cancel would take now; null where no data has moved, or no estimate is possible."
            ),
        ]
        | None
    )
    read_errors: Annotated[
        list[str],
        Meta(
            description="Sentences: failed reads of the disk that Ceph's health and the kernel of the disk's host report."
        ),
    ]
    guards: list[GuardBody]
    timeline: TimelineBody


class WholePlanBody(Struct, frozen=True, kw_only=True):
    """The plan with every move in order of risk, the OSDs that take data, the bounds, and the map's changes by line."""

    mechanic: Annotated[
        str, Meta(description="The ways in which data leaves an OSD (design 6.4).")
    ]
    reason: str
    bytes: int
    pgs: int
    fullest_osd: int | None
    fullest_after: float | None
    cluster_after: float | None
    eta_hours: float | None
    bottleneck: str
    refusals: list[str]
    targets: list[TargetBody]
    epoch: int
    moves: list[MoveBody]
    receivers: list[ReceiverBody]
    bounds: list[BoundBody]
    rejected: list[str]
    survival_probability: float | None
    diff: list[LineBody]


class CauseBody(Struct, frozen=True, kw_only=True):
    """A cause that stands now: the finding, the reason, its certainty, predrain's action and a person's action."""

    key: str
    severity: Annotated[
        str,
        Meta(
            description="The urgency of a cause: a notice can wait for working hours."
        ),
    ]
    title: str
    points: list[CausePointBody]
    action: str
    path: str
    host: str | None
    model: str | None
    kind: str | None


class CausePage(Struct, frozen=True, kw_only=True):
    """A page of the causes that stand, urgent ones first."""

    items: list[CauseBody]
    next: str | None


class ClustersBody(Struct, frozen=True, kw_only=True):
    """
    The own cluster, the others in the order of the settings, and the models with most newly bad disks first.

    The models are added up over the clusters whose service answered within the last day.
    """

    own: OverviewBody
    others: list[OtherClusterBody]
    models: list[SharedModelBody]


class DrainBody(Struct, frozen=True, kw_only=True):
    """One drain. `etag` is what an approval sends as If-Match."""

    id: str
    cluster: (
        Annotated[
            str,
            Meta(
                description="The fsid of the drain's cluster, in which its id is unique; null before a cluster answered."
            ),
        ]
        | None
    )
    device: str | None
    osds: list[int]
    state: Annotated[
        str,
        Meta(
            description="The states of a drain (design 6.2). FAILED needs a person, and the drain gives the reason."
        ),
    ]
    state_text: Annotated[
        str,
        Meta(
            description="The state in words for people; a fill and a quarantine have words of their own."
        ),
    ]
    state_names_intent: Annotated[
        bool,
        Meta(
            description='True if `state_text` shows the intent by itself, as "filling" does.'
        ),
    ]
    intent: Annotated[
        str,
        Meta(
            description="REPLACE keeps the slot (and its CRUSH weight) for a new disk; REMOVE ends at CRUSH weight 0.\n\nQUARANTINE moves no data: the OSD is the primary of no PG until it is no longer slow. FILL is the way back: a new,\nempty disk in the slot gets its share."
        ),
    ]
    requested_by: str
    requester: RequesterBody
    reason: str
    created_at: datetime
    updated_at: datetime
    held_by: list[str]
    ways_out: Annotated[
        list[WayOutBody],
        Meta(
            description="The ways out that are open now to a drain that cannot go on by itself, as of the last poll."
        ),
    ]
    insistence: InsistenceBody | None
    end_reason: str
    etag: str
    progress: ProgressBody
    plan: PlanBody | None
    remaining_hours: (
        Annotated[
            float,
            Meta(
                description="Hours that the drain still takes, at the pace so far, or by the plan before enough has moved. Null where no\nestimate is possible, or while the drain is not under way or is held."
            ),
        ]
        | None
    )
    duration_hours: (
        Annotated[
            float,
            Meta(
                description="Hours from the first step to the end of a drain that is over; null for one that never began."
            ),
        ]
        | None
    )


class DrainPage(Struct, frozen=True, kw_only=True):
    """All drains, newest first."""

    items: list[DrainBody]
    next: str | None
    acting: ActingBody


class HandedOverBody(Struct, frozen=True, kw_only=True):
    """A drain that was handed over, and what a person or the orchestrator does next."""

    id: str
    cluster: (
        Annotated[
            str,
            Meta(
                description="The fsid of the drain's cluster, in which its id is unique; null before a cluster answered."
            ),
        ]
        | None
    )
    device: str | None
    osds: list[int]
    state: Annotated[
        str,
        Meta(
            description="The states of a drain (design 6.2). FAILED needs a person, and the drain gives the reason."
        ),
    ]
    state_text: Annotated[
        str,
        Meta(
            description="The state in words for people; a fill and a quarantine have words of their own."
        ),
    ]
    state_names_intent: Annotated[
        bool,
        Meta(
            description='True if `state_text` shows the intent by itself, as "filling" does.'
        ),
    ]
    intent: Annotated[
        str,
        Meta(
            description="REPLACE keeps the slot (and its CRUSH weight) for a new disk; REMOVE ends at CRUSH weight 0.\n\nQUARANTINE moves no data: the OSD is the primary of no PG until it is no longer slow. FILL is the way back: a new,\nempty disk in the slot gets its share."
        ),
    ]
    requested_by: str
    requester: RequesterBody
    reason: str
    created_at: datetime
    updated_at: datetime
    held_by: list[str]
    ways_out: Annotated[
        list[WayOutBody],
        Meta(
            description="The ways out that are open now to a drain that cannot go on by itself, as of the last poll."
        ),
    ]
    insistence: InsistenceBody | None
    end_reason: str
    etag: str
    progress: ProgressBody
    plan: PlanBody | None
    remaining_hours: (
        Annotated[
            float,
            Meta(
                description="Hours that the drain still takes, at the pace so far, or by the plan before enough has moved. Null where no\nestimate is possible, or while the drain is not under way or is held."
            ),
        ]
        | None
    )
    duration_hours: (
        Annotated[
            float,
            Meta(
                description="Hours from the first step to the end of a drain that is over; null for one that never began."
            ),
        ]
        | None
    )
    orchestrator: str
    tasks: list[TaskBody]


class OsdBody(Struct, frozen=True, kw_only=True):
    """
    One OSD, the disk that stands in it, and its forecast. `slot` counts a host's OSDs from 0 in order of their ids.

    `state`: of the disk; null where no disk is known. `status`: the disk's `severity`, and `unknown` for a disk that
    failed or is retired, of which nothing is forecast. `used_bytes` is listed in thousandths of `size_bytes`, rounded
    down, and `latency_ratio` in twentieths.
    """

    osd: int
    cluster: (
        Annotated[
            str,
            Meta(
                description="The fsid of the OSD's cluster; null where the cluster reports none."
            ),
        ]
        | None
    )
    host: str
    rack: str | None
    slot: int
    device: str | None
    model: str | None
    up: bool
    in_: bool = field(name="in")
    reweight: float
    size_bytes: int | None
    used_bytes: int | None
    state: str | None
    severity: str | None
    status: Annotated[
        str,
        Meta(
            description="The severity of a forecast, in Ceph's words. Only BAD proposes a drain by itself."
        ),
    ]
    source: str | None
    p_fail_30d: float | None
    p_fail_30d_week_ago: float | None
    life_p10_days: float | None
    life_p50_days: float | None
    life_p90_days: float | None
    reasons: list[str]
    prescription: str | None
    advice: str | None
    rule_score: (
        Annotated[
            float,
            Meta(
                description="The evidence of a rule, 0 to 1, which is not a probability."
            ),
        ]
        | None
    )
    as_of: datetime | None
    age_days: float | None
    latency_ratio: float | None
    slow: Annotated[
        bool, Meta(description="True if a rule for slow disks made the outlook.")
    ]
    unreadable: UnreadableBody | None
    drain: OsdDrainBody | None
    blocking_drain: (
        Annotated[
            str,
            Meta(
                description="The id of the drain that stands in the way of a new one to replace the disk; null: such a proposal is accepted.\nA drain that failed stands in the way until it is resumed or cancelled, and a quarantine does not."
            ),
        ]
        | None
    )


class OsdPage(Struct, frozen=True, kw_only=True):
    """
    A page of OSDs in order of their ids, as of the change `at`; `full` is false if only changed OSDs are listed.

    OSDs may change while the pages are requested. After the last page, request what changed since `at` of the first.
    """

    items: list[OsdBody]
    next: str | None
    at: str
    full: bool
    removed: Annotated[
        list[int], Meta(description="OSDs that have gone since `since`.")
    ]


class ReportBody(Struct, frozen=True, kw_only=True):
    """
    The numbers of one month, in UTC, and the entries from which they are counted, oldest first.

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


class RequestOptionBody(Struct, frozen=True, kw_only=True):
    """A request that a person may make; `refusals` is empty if it would be taken now."""

    verb: Annotated[str, Meta(description="The requests that a collector knows.")]
    refusals: list[RequestRefusalBody]


class SlotBody(Struct, frozen=True, kw_only=True):
    """
    The slot of an OSD. `device`: the disk that stands there; null: none does, or none is known. `disks`: that disk
    first, then the disks before it, newest first.
    """

    osd: int
    cluster: (
        Annotated[
            str,
            Meta(
                description="The fsid of the OSD's cluster; null before a cluster answered."
            ),
        ]
        | None
    )
    host: str | None
    device: str | None
    disks: list[SlotDiskBody]


class DiskRequestsBody(Struct, frozen=True, kw_only=True):
    """
    Self-tests and lights of one disk. `host`: null where no host reads it. `light`: as it was switched last through
    predrain; null if never. `open`: requests that have not ended; `ended`: the newest others.
    """

    device: str
    host: str | None
    slot: str | None
    light: str | None
    self_tests: SelfTestsBody | None
    options: list[RequestOptionBody]
    open: list[DiskRequestBody]
    ended: list[DiskRequestBody]
