/** What is asked of many disks at once: for each of them one request by the route that a single disk has. */
import { Problem } from "../api/client.ts";
import { NO_MATCHERS } from "../matchers.ts";
import type { DiskRow } from "./rows.ts";

/** So many a person can still look through, and the service takes them in seconds. */
export const MOST_AT_ONCE = 200;

export interface Asked {
  name: string;
  path: string;
  body: object;
}

export interface Refusal {
  name: string;
  sentence: string;
}

export interface Result {
  done: number;
  refused: Refusal[];
  /** Of disks that were not asked for, because the service did not answer or nobody may act: why. */
  stopped: string | null;
}

/** A silence of every message about one disk, whatever its cause: a pattern of the shell that only its id meets. */
export function silencesOf(rows: readonly DiskRow[], hours: number, reason: string): Asked[] {
  return rows.flatMap((row) => {
    const device = deviceOf(row);
    const body = { ...NO_MATCHERS, severity: null, name: `*:${literally(device ?? "")}`, hours, reason };
    return device === null ? [] : [{ name: row.name, path: "silences", body }];
  });
}

export function outcomesOf(rows: readonly DiskRow[], fate: string, note: string): Asked[] {
  return rows.flatMap((row) => {
    const device = deviceOf(row);
    return device === null ? [] : [{ name: row.name, path: `devices/${encodeURIComponent(device)}/outcome`, body: { fate, note } }];
  });
}

/** A proposal for each disk: it has a plan and guards of its own, and a person approves it on its own page. */
export function proposalsOf(rows: readonly DiskRow[], reason: string): Asked[] {
  return rows.flatMap((row) => (drainable(row) ? [{ name: row.name, path: "drains", body: { target: `osd.${row.osd?.osd}`, intent: "replace", reason } }] : []));
}

/** Whether a drain can be asked for: an OSD stands on the disk, has not left the cluster, and the service would accept it. */
export function drainable({ osd }: DiskRow): boolean {
  return osd !== null && (osd.up || osd.in) && osd.blocking_drain === null;
}

/** Why none of these can be drained: the drains that stand in the way, of which a failed one waits for a person. */
export function noneDrainable(rows: readonly DiskRow[]): string {
  const waits = rows.flatMap(({ osd }) => (osd?.blocking_drain ? [`${osd.blocking_drain}${osd.drain?.state === "failed" ? ", which failed: resume or cancel it" : ""}`] : []));
  const [first] = waits;
  if (first === undefined) return "none of them is an OSD that can be drained now";
  return waits.length === 1 ? `a drain stands in the way: ${first}` : `${waits.length} drains stand in the way, such as ${first}`;
}

export const deviceOf = ({ disk, osd }: DiskRow): string | null => disk?.device ?? osd?.device ?? null;

/** One after another. A refusal concerns one disk; without an answer, or without the right, no further one is asked. */
export async function askEach(asked: readonly Asked[], send: (path: string, body: object) => Promise<void>, told: (done: number) => void): Promise<Result> {
  const refused: Refusal[] = [];
  let done = 0;
  for (const one of asked) {
    try {
      await send(one.path, one.body);
      done += 1;
    } catch (error) {
      if (!(error instanceof Problem)) return { done, refused, stopped: `The service did not answer at ${one.name}; nothing further was asked.` };
      if (error.status === 401 || error.status === 403 || error.status === 429) return { done, refused, stopped: error.message };
      refused.push({ name: one.name, sentence: error.message });
    }
    told(done + refused.length);
  }
  return { done, refused, stopped: null };
}

/** The text as a pattern of the shell that nothing else meets. */
function literally(text: string): string {
  return text.replaceAll(/[[*?]/g, (sign) => `[${sign}]`);
}
