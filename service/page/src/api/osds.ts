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

  /** All OSDs by number, as they are now; the same array as before where nothing changed. Throws as `get` does.
   *
   *  The fleet may change while its pages are fetched. What a page lacks changed after the first page was made, so the
   *  next answer, since that page, brings it.
   */
  async now(ask: (path: string) => Promise<unknown> = getAnew): Promise<Osd[]> {
    const since = this.#at === null ? "" : `since=${encodeURIComponent(this.#at)}`;
    const first = (await ask(since ? `osds?${since}` : "osds")) as OsdPage;
    const items = [...first.items];
    const kept = first.full ? "" : `&${since}`;
    for (let next = first.next; next !== null; ) {
      const page = (await ask(`osds?cursor=${encodeURIComponent(next)}${kept}`)) as OsdPage;
      items.push(...page.items);
      next = page.next;
    }
    this.#items = first.full || this.#items === null ? items : merged(this.#items, items, first.removed);
    this.#at = first.at;
    return this.#items;
  }
}

/** The place of the OSD with this number in a list by number; null where it is not in the list. */
export function placeOf(osds: readonly Osd[], number: number): number | null {
  let low = 0;
  let high = osds.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((osds[middle]?.osd ?? 0) < number) low = middle + 1;
    else high = middle;
  }
  return osds[low]?.osd === number ? low : null;
}

/** `before` with what changed put in its place, in order of numbers. */
export function merged(before: Osd[], changed: readonly Osd[], gone: readonly number[]): Osd[] {
  if (changed.length === 0 && gone.length === 0) return before;
  const after = [...before];
  const come: Osd[] = [];
  for (const osd of changed) {
    const place = placeOf(before, osd.osd);
    if (place === null) come.push(osd);
    else after[place] = osd;
  }
  if (come.length === 0 && gone.length === 0) return after;
  const left = new Set(gone);
  return [...after.filter((osd) => !left.has(osd.osd)), ...come].sort((a, b) => a.osd - b.osd);
}
