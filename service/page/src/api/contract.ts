/** The shapes that `/api/v1` answers with. Times are RFC 3339 in UTC; null is "not reported", never 0. */

export type Status = "good" | "warning" | "bad" | "unknown";

/** Where a disk is in its life; of one that failed or is retired nothing is forecast. */
export type LifeState = "new" | "in_service" | "silent" | "draining" | "drained" | "filling" | "failed" | "retired";

/** A change in the life of a disk: what, when, by which source, and what it rests on. */
export interface LifeChange {
  device: string;
  at: string;
  state: LifeState;
  why: "replaced" | "removed" | "moved" | "lost" | null;
  source: "cluster" | "collector" | "person";
  evidence: string;
  subject: string;
  /** The state and the evidence in words. */
  sentence: string;
  host: string | null;
  osds: number[];
  /** The disk that stands in its slot now. */
  successor: string | null;
}

/** Which host a disk lives in. `rivals`: other hosts that name it; `hosts`: those of which a person may say that they
 *  have it; `by`: what settled it, null where it is not settled. */
export interface Residence {
  device: string;
  state: "settled" | "moving" | "contested" | "asked";
  home: string;
  rivals: string[];
  hosts: string[];
  by: "nobody_else" | "cluster" | "silence" | "person" | null;
  since: string | null;
}

/** What to do about a disk; `prescription` says it in words. */
export type Advice = "drain-now" | "replace-soon" | "swap-worn" | "check-cable" | "self-test" | "cool" | "look" | "watch" | "nothing";

export type DrainState =
  | "proposed"
  | "approved"
  | "preparing"
  | "draining"
  | "holding"
  | "drained"
  | "verified"
  | "handed_over"
  | "paused"
  | "cancelling"
  | "cancelled"
  | "failed";

export type HistoryGroup = "osd" | "disk" | "outlook" | "drain" | "halt" | "controller";

/** Something that happened. `kind` is finer than `group`; `href` leads to a view of ours. */
export interface HistoryEvent {
  at: string;
  kind: string;
  group: HistoryGroup;
  host: string | null;
  device: string | null;
  osd: number | null;
  drain: string | null;
  sentence: string;
  href: string;
}

/** Why everything is halted. `unreached`: what the last halt, or its lifting, did not reach; null for nothing.
 *  `kept`: where the halt is kept; what only memory has, ends with the service's process. */
export interface Halt {
  halted: string | null;
  by: string | null;
  since: string | null;
  unreached: string | null;
  kept: ("memory" | "store" | "cluster")[];
}

/** Who is signed in; nobody where `name` is null. `reads`: whether this browser may look at all. */
export interface Session {
  name: string | null;
  scopes: string[];
  word: string | null;
  ends_at: string | null;
  reads: boolean;
  /** Where people sign in elsewhere, if they can. */
  sign_in: string | null;
}

export interface DemoTable {
  rows: { what: string; with: string | number | null; without: string | number | null }[];
}

export interface Demo {
  day: number;
  days: number;
  seed: number;
  seconds_per_day: number;
  note: string;
  table: DemoTable | null;
}

export interface ClusterStatus {
  cluster: string;
  now: string;
  as_of: string | null;
  epoch: number | null;
  health: string | null;
  mode: "observe" | "propose" | "act";
  halted: string | null;
  /** Nobody halted: the cluster does not answer, and what halts ends when it does. */
  halt_passes: boolean;
  osds: number;
  hosts: number;
  forecast: { bundle: string | null; expected_30d: number | null; expected_silent_30d: number | null };
  readings: { fresh: number; total: number };
  view_age_seconds: number | null;
  controller: string | null;
  /** Which process acts on drains; absent in services of an older release. */
  acting?: Acting;
  demo: Demo | null;
}

/** Why a drain is there: a `quarantine` moves no data (a slow disk stops leading PGs), a `fill` brings data to a new disk. */
export type Intent = "replace" | "remove" | "quarantine" | "fill";

export interface OsdDrain {
  id: string;
  state: DrainState;
  /** The state as it is told of a drain, a fill or a quarantine. */
  state_text?: string;
  intent: Intent;
  moved_bytes: number;
  planned_bytes: number;
  held_by: string[];
}

export interface Osd {
  osd: number;
  host: string;
  rack: string | null;
  slot: number | null;
  device: string | null;
  model: string | null;
  up: boolean;
  in: boolean;
  reweight: number | null;
  size_bytes: number | null;
  used_bytes: number | null;
  /** Of the disk that stands in it; null where no disk is known. Absent in services of an older release. */
  state?: LifeState | null;
  status: Status;
  source: string | null;
  p_fail_30d: number | null;
  p_fail_30d_week_ago: number | null;
  life_p10_days: number | null;
  life_p50_days: number | null;
  life_p90_days: number | null;
  why: string[];
  prescription: string | null;
  advice: Advice | null;
  /** A rule's evidence, 0 to 1: no probability. */
  rule_score: number | null;
  as_of: string | null;
  age_days: number | null;
  latency_ratio: number | null;
  unreadable: { since: string; cause: string; blames_host: boolean; why: string } | null;
  drain: OsdDrain | null;
}

export interface Reason {
  code: string;
  sentence: string;
  counter: string | null;
}

export interface SurvivalPoint {
  day: number;
  p: number;
}

export interface Outlook {
  device: string;
  as_of: string;
  status: Status;
  source: string;
  p_fail_7d: number | null;
  p_fail_14d: number | null;
  p_fail_30d: number | null;
  life: { p10: number | null; p50: number | null; p90: number | null } | null;
  reasons: Reason[];
  prescription: string;
  advice: Advice | null;
  clears: string;
  /** A rule's evidence, 0 to 1: no probability. */
  rule_score: number | null;
  /** Days until a flash drive's rated life is used up, by its own wear counter; no failure. */
  endurance: { p10: number | null; p50: number | null; p90: number | null } | null;
  survival?: SurvivalPoint[] | null;
}

export interface Device {
  device: string;
  host: string | null;
  osds: number[];
  /** OSDs that keep something on it, by the host's own word. */
  seats: { osd: number; role: "data" | "db" | "wal" | "journal" }[];
  model: string | null;
  serial: string | null;
  protocol: "ata" | "scsi" | "nvme" | null;
  capacity_bytes: number | null;
  status: Status;
  taken_at: string | null;
  identity: {
    vendor: string | null;
    model: string | null;
    family: string | null;
    serial: string | null;
    wwn: string | null;
    firmware: string | null;
    capacity_bytes: number | null;
    rotation_rpm: number | null;
  } | null;
  power_on_hours: number | null;
  passed: boolean | null;
  unreadable: { since: string; cause: string; blames_host: boolean; why: string } | null;
  outlook: Outlook | null;
  state: LifeState;
  life: LifeChange;
  /** Newest first. */
  life_changes: LifeChange[];
  drains: { id: string; state: DrainState; created_at: string }[];
  outcomes: { at: string; fate: string; source: string; note: string }[];
  family_survival: SurvivalPoint[] | null;
}

export interface Series {
  name: string;
  unit: string | null;
  /** Epoch milliseconds and value; null is a gap and stays one. */
  points: [number, number | null][];
}

export interface History {
  device: string;
  from: string;
  to: string;
  series: Series[];
}

export interface PlanTarget {
  rack: string | null;
  bytes: number;
  hosts: number;
  osds: number;
}

export interface Plan {
  mechanic: string;
  why: string;
  bytes: number;
  pgs: number;
  fullest_osd: number | null;
  /** Fullness in [0, 1] once all has moved. */
  fullest_after: number | null;
  cluster_after: number | null;
  eta_hours: number | null;
  bottleneck: string | null;
  refusals: string[];
  targets: PlanTarget[];
}

/** The controller that acts on drains, and the sentence that says so. */
export interface Acting {
  place: "here" | "elsewhere" | "nowhere" | "unknown";
  host: string | null;
  pid: number | null;
  until: string | null;
  sentence: string;
}

/** What a person can do about a drain that cannot go on by itself. */
export type WayOut = "make_room" | "choose_other_targets" | "stay_drained" | "give_up_cancel" | "cancel";

/** Guards that a person overruled for one drain and its step, until then at most. */
export interface Insistence {
  guards: string[];
  by: string;
  reason: string;
  until: string;
}

export interface Guard {
  code: string;
  ok: boolean;
  sentence: string;
  /** Whether a person may insist past this answer; absent in services of an older release. */
  insistable?: boolean;
  /** A person insists: it refuses, and holds nothing. */
  overruled?: boolean;
}

export interface Drain {
  id: string;
  device: string | null;
  osds: number[];
  state: DrainState;
  /** The state as it is told of a drain, a fill or a quarantine. */
  state_text?: string;
  intent: Intent;
  asked_by: string;
  reason: string;
  created_at: string;
  updated_at: string;
  held_by: string[];
  /** Open to it now; absent in services of an older release. */
  ways_out?: { way: WayOut; sentence: string }[];
  insistence?: Insistence | null;
  ended_why: string | null;
  etag: string;
  progress: {
    planned_pgs: number;
    moved_pgs: number;
    planned_bytes: number;
    moved_bytes: number;
    in_flight: number;
    budget: number | null;
    /** Whose copy on the old disk is gone without having been moved. */
    lost_pgs?: number;
  };
  plan: Plan | null;
  /** At the pace so far, and by the plan before enough has moved, while it is under way and nothing holds it; null where nobody can tell. */
  left_hours: number | null;
  /** Of one that is over; null for one that never began. */
  took_hours: number | null;
}

export interface Timeline {
  t: number[];
  bytes_left: (number | null)[];
  in_flight: (number | null)[];
  latency_ratio: (number | null)[];
  holds: { from: number | string; to: number | string | null; why: string }[];
}

export interface DrainWhole extends Drain {
  /** That a cancel would take now; null where no data has moved, or nobody can tell. */
  back_hours: number | null;
  /** What Ceph's health and the kernel of its host say of failed reads of the disk. */
  read_errors?: string[];
  guards: Guard[];
  timeline: Timeline | null;
}

export interface JournalLine {
  at: string;
  seen: string;
  decided: string;
  answered: string;
  epoch: number | null;
  caller: string | null;
}

/** Something that needs a person now: one a cause, however many disks. */
export interface Cause {
  key: string;
  severity: "urgent" | "notice";
  title: string;
  points: { name: string; line: string; severity: "urgent" | "notice"; silenced: string | null }[];
  todo: string;
  path: string;
}

/** What is not told until then; drains go on. */
export interface Silence {
  id: string;
  until: string;
  by: string;
  why: string;
  cause: string;
  host: string;
  model: string;
  name: string;
}

export interface Alert {
  at: string;
  device: string | null;
  osd: number | null;
  /** The severity that was announced. */
  status: Status;
  /** How the disk stands now. */
  state?: LifeState | null;
  why: string;
  sure: string | null;
  doing: string | null;
}

export interface Listing<T> {
  items: T[];
  next: string | null;
}

/** A bundle that scores; `fingerprint` tells two of one name apart. */
export interface Bundle {
  name: string;
  fingerprint: string;
}

/** One feature, or the score, then and now. */
export interface Shift {
  name: string;
  psi: number;
  ks: number;
  missing_more: number;
  then: number | null;
  now: number | null;
}

/** A family of drive models against its training. Not `judged`: too few drives, or the bundle has no reference. */
export interface Drift {
  family: string;
  drives: number;
  judged: boolean;
  drifted: string[];
  score_drifted: boolean;
  score: Shift | null;
  most: Shift[];
}

/** Failures expected and seen; `ratio` is expected over observed, `low` to `high` its 95 % interval. */
export interface Calibration {
  family: string;
  expected: number;
  observed: number;
  ratio: number | null;
  low: number;
  high: number | null;
  off: boolean;
  /** Doubtful: differs by more than chance, on too few failures for an alert. */
  verdict?: "fits" | "off" | "doubtful" | "too_few";
}

/** One bundle on what has happened, by its own thresholds. */
export interface Standing {
  bundle: string;
  foretold: number;
  foretold_bad: number;
  alarmed: number;
  alarmed_bad: number;
  brier: number | null;
  expected: number;
  lead_days: number | null;
}

/** Champion first, then the challenger, on the same disks and days. */
export interface Comparison {
  standings: Standing[];
  failures: number;
  healthy_windows: number;
  rows: number;
  observed: number;
  enough: boolean;
  recall_gain: [number, number] | null;
  brier_gain: [number, number] | null;
  only_first: number;
  only_second: number;
  days: number;
  /** How many times likelier than by chance; 20 are wanted. */
  evidence: number;
  days_left: number | null;
  better: boolean;
  sentence: string;
}

/** `disk_months`: of this fleet's own disks; 0 where the threshold is that of the training. */
export interface StatusThreshold {
  status: string;
  p_fail_30d: number;
  false_alarm_rate: number;
  disk_months: number;
}

export interface ForecastHealth {
  bundle: Bundle | null;
  since: string | null;
  before: string | null;
  quiet_until: string | null;
  challenger: Bundle | null;
  /** From which chance on a disk is called a warning, and bad. */
  thresholds: StatusThreshold[];
  looked_at: string | null;
  drift: Drift[];
  calibration: Calibration[];
  comparison: Comparison | null;
  concerns: { cause: string; since: string; families: string[]; sentence: string; cure: string }[];
  /** What is wrong with the forecast's own upkeep, by part, in sentences. */
  troubles: Record<string, string>;
}

/** One base cost of a failure and what it would have given in the days that were replayed. */
export interface PreviewRow {
  failure_cost: number;
  /** Whether it is the one that is set. */
  here: boolean;
  drains: number;
  in_time: number;
  for_nothing: number;
  undecided: number;
  moved_bytes: number;
  nothing_bytes: number;
  rebuilt_bytes: number;
  moving_hours: number;
  /** Bytes moved, and each byte rebuilt times the cost that is set. */
  cost_bytes: number;
}

export interface PolicyPreview {
  days: number;
  /** It is being made: ask again. */
  running: boolean;
  made_at: string | null;
  first: string | null;
  last: string | null;
  disks: number | null;
  failures: number | null;
  rows: PreviewRow[];
  /** Why there is none. */
  trouble: string | null;
}
