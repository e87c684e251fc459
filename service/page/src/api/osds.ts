/** The list of OSDs, kept up to date by what changed of it: 6,000 of them are megabytes, a change is a few rows. */
import { getAnew } from "./client.ts";
import type { Osd, OsdPage } from "./contract.ts";

export class OsdList {
  #items: Osd[] | null = null;
  #at: string | null = null;

  /** Asks for everything the next time. */
  forget(): void {
    this.#at = null;
  }

  /** All OSDs by number, as they are now; the same array as before where nothing changed. Throws as `get` does. */
  async now(ask: (path: string) => Promise<unknown> = getAnew): Promise<Osd[]> {
    const first = (await ask(this.#at === null ? "osds" : `osds?since=${encodeURIComponent(this.#at)}`)) as OsdPage;
    const items = [...first.items];
    let torn = false;
    for (let page = first; page.next !== null; ) {
      page = (await ask(`osds?cursor=${encodeURIComponent(page.next)}`)) as OsdPage;
      items.push(...page.items);
      torn ||= page.at !== first.at;
    }
    this.#items = first.full || this.#items === null ? items : merged(this.#items, items, first.removed);
    // Pages of two changes lack what changed between them: the next round asks for everything.
    this.#at = torn ? null : first.at;
    return this.#items;
  }
}

/** `before` with what changed put in its place, in order of numbers. */
export function merged(before: Osd[], changed: readonly Osd[], gone: readonly number[]): Osd[] {
  if (changed.length === 0 && gone.length === 0) return before;
  const byNumber = new Map(before.map((osd) => [osd.osd, osd]));
  for (const osd of changed) byNumber.set(osd.osd, osd);
  for (const number of gone) byNumber.delete(number);
  return [...byNumber.values()].sort((a, b) => a.osd - b.osd);
}
