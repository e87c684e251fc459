/** Keeps the signals true: one event stream that says what changed, and conditional GETs that fetch it. */
import { batch } from "@preact/signals";
import { BASE, Problem, forgetAnswers, get, getAll } from "./api/client.ts";
import type { AlertPage, ClusterStatus, Drain } from "./api/contract.ts";
import { whoAmI } from "./api/session.ts";
import { followDevices, followOsds } from "./api/followed.ts";
import * as state from "./state.ts";

const PAINT_MS = 250;
const ASK_ANYWAY_MS = 10_000;
const BACKOFF_MS = [1_000, 2_000, 4_000, 8_000, 15_000, 30_000];
const STALE_MS = 3_600_000;

type Part = "status" | "osds" | "disks" | "drains" | "alerts";
const PARTS: readonly Part[] = ["status", "osds", "disks", "drains", "alerts"];

const osds = followOsds();
const disks = followDevices();
/** How many views show the list of disks now; nobody else asks for it. */
let diskReaders = 0;
const wanted = new Set<Part>();
let scheduled = false;
/** The next round starts no sooner than four times what the last one took, so that a slow link is not flooded. */
let restUntil = 0;
let failures = 0;
let source: EventSource | null = null;

/** Which lists an event's kind touches. An unknown kind touches all. */
function partsOf(kind: string): readonly Part[] {
  switch (kind) {
    case "osds":
    case "outlooks":
    case "devices":
      return ["osds", "disks", "status", "alerts"];
    case "drains":
      return ["drains", "osds", "disks", "status"];
    case "status":
    case "halt":
    case "readings":
      return ["status"];
    case "alerts":
      return ["alerts"];
    default:
      return PARTS;
  }
}

async function fetchPart(part: Part): Promise<() => void> {
  switch (part) {
    case "status": {
      const body = await get<ClusterStatus>("status");
      return () => (state.status.value = body);
    }
    case "osds": {
      const items = await osds.now();
      return () => (state.osds.value = items);
    }
    case "disks": {
      const items = await disks.now();
      return () => (state.disks.value = items);
    }
    case "drains": {
      const items = await getAll<Drain>("drains");
      return () => (state.drains.value = items);
    }
    case "alerts": {
      const items = (await get<AlertPage>("alerts")).items;
      return () => (state.alerts.value = items);
    }
  }
}

/** Fetch what is wanted and show it all in one paint. */
async function refresh(): Promise<void> {
  const parts = [...wanted];
  wanted.clear();
  if (state.heardAt.value !== null && Date.now() - state.heardAt.value > STALE_MS) {
    forgetAnswers();
    osds.forget();
    disks.forget();
  }
  const started = performance.now();
  const results = await Promise.allSettled(parts.map(fetchPart));
  restUntil = performance.now() + Math.min(10_000, Math.max(PAINT_MS, 4 * (performance.now() - started)));
  const unanswered = results.filter((result) => result.status === "rejected" && !(result.reason instanceof Problem));
  batch(() => {
    const down = { ...state.partsDown.value };
    results.forEach((result, index) => {
      const part = parts[index];
      if (!part) return;
      if (result.status === "fulfilled") {
        result.value();
        delete down[part];
      } else if (result.reason instanceof Problem) {
        down[part] = result.reason.message;
      }
    });
    if (JSON.stringify(down) !== JSON.stringify(state.partsDown.value)) state.partsDown.value = down;
    if (results.length > 0) state.answers.value = unanswered.length < results.length;
    if (unanswered.length < results.length) {
      state.heardAt.value = Date.now();
      state.round.value += 1;
    }
  });
  if (unanswered.length === results.length && parts.length > 0) lose();
}

/** Ask for parts soon: at most one round every 250 ms. */
export function want(parts: readonly Part[] = PARTS): void {
  for (const part of parts) if (part !== "disks" || diskReaders > 0) wanted.add(part);
  if (scheduled) return;
  scheduled = true;
  setTimeout(() => {
    void refresh().finally(() => {
      scheduled = false;
      if (wanted.size > 0 && state.stream.value.kind === "live") want([]);
    });
  }, Math.max(0, restUntil - performance.now()));
}

/** Keep the list of disks up to date as long as a view shows it; returns how to stop. */
export function readDisks(): () => void {
  diskReaders += 1;
  want(["disks"]);
  return () => {
    diskReaders -= 1;
  };
}

function lose(): void {
  source?.close();
  source = null;
  if (state.stream.value.kind === "lost" && state.stream.value.retryAt > Date.now()) return;
  const wait = BACKOFF_MS[Math.min(failures, BACKOFF_MS.length - 1)] ?? 30_000;
  failures += 1;
  state.stream.value = { kind: "lost", retryAt: Date.now() + wait };
  setTimeout(open, wait);
  want(); // the stream may be down where the service is not
}

function open(): void {
  if (source) return;
  const stream = new EventSource(`${BASE}events`);
  source = stream;
  stream.onopen = () => {
    failures = 0;
    state.stream.value = { kind: "live" };
    state.heardAt.value = Date.now();
    void whoAmI().then((found) => (state.session.value = found), () => undefined);
    want();
  };
  stream.onerror = () => {
    if (source === stream) lose();
  };
  stream.addEventListener("changed", (event) => {
    state.heardAt.value = Date.now();
    let kinds: string[] = [];
    try {
      kinds = (JSON.parse(String(event.data)) as { kinds?: string[] }).kinds ?? [];
    } catch {
      kinds = ["everything"];
    }
    want([...new Set(kinds.flatMap((kind) => partsOf(kind)))]);
  });
}

/** Start following the service; called once. */
export function follow(): void {
  want();
  open();
  setInterval(() => (state.clock.value = Date.now()), 1_000);
  setInterval(() => {
    if (state.stream.value.kind === "live") want(["status"]);
  }, ASK_ANYWAY_MS);
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden && state.stream.value.kind === "live") want();
  });
}
