/** What the page knows now, as signals; views read them, `live.ts` writes them. */
import { computed, signal } from "@preact/signals";
import type { Alert, ClusterStatus, Disk, Drain, Osd, Session } from "./api/contract.ts";

export const status = signal<ClusterStatus | null>(null);
export const osds = signal<Osd[] | null>(null);
/** Every disk on record; null until a view has asked for them. */
export const disks = signal<Disk[] | null>(null);
export const drains = signal<Drain[] | null>(null);
export const alerts = signal<Alert[] | null>(null);

export type Stream =
  | { kind: "opening" }
  | { kind: "live" }
  /** `retryAt` is in milliseconds of the reader's clock. */
  | { kind: "lost"; retryAt: number };

export const stream = signal<Stream>({ kind: "opening" });

/** Whether the service answered when it was last asked; it may, while its stream is down. */
export const answers = signal(true);

/** When the service was last heard, in milliseconds of the reader's clock. */
export const heardAt = signal<number | null>(null);

/** The reader's clock, once a second: for "2 s ago" only. */
export const clock = signal(Date.now());

/** Grows whenever the service said that something changed; views that hold more than the lists refetch then. */
export const round = signal(0);

/** Parts of the service that did not answer, each with its sentence; the rest of the page still holds. */
export const partsDown = signal<Record<string, string>>({});

/** Who this browser is signed in as; null while that is not known. */
export const session = signal<Session | null>(null);

/** Answers to what a person did; they stay until closed. */
export interface Notice {
  kind: "done" | "refused";
  text: string;
}
export const notice = signal<Notice | null>(null);

export const drainById = computed(() => new Map((drains.value ?? []).map((drain) => [drain.id, drain])));
export const osdByNumber = computed(() => new Map((osds.value ?? []).map((osd) => [osd.osd, osd])));

export const mayAct = computed(() => session.value?.scopes.some((scope) => scope === "act" || scope === "admin") ?? false);

/** Why a button that only an admin may press is off now, or null. */
export const adminOff = computed<string | null>(() => actingOff.value ?? (session.value?.scopes.includes("admin") ? null : `${session.value?.name ?? "who is signed in"} has no scope admin`));

/** Why a button that acts is off now, or null when it may be pressed. */
export const actingOff = computed<string | null>(() => {
  if (!answers.value) return "not live: nothing can be asked of the service now";
  if (!mayAct.value) return session.value?.name ? `${session.value.name} may not act` : "sign in to act";
  return null;
});

/** The service's own now; in a demo it runs faster than the reader's. */
export const now = computed(() => status.value?.now ?? null);
