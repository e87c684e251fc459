/** A long list, kept up to date by what changed of it: 6,000 rows are megabytes, a change is a few rows. */
import { getPage, type ListPage, Problem } from "./client.ts";
import type { Disk, DiskPage, Osd, OsdPage } from "./contract.ts";

type Key = string | number;
type Page<Row> = { items: Row[]; next: string | null; at: string; full: boolean; removed: Key[] };

export class FollowedList<Row> {
  #items: Row[] | null = null;
  #at: string | null = null;
  readonly #path: string;
  readonly #keyOf: (row: Row) => Key;

  /** `path`: of the list. `keyOf`: what tells its rows apart, and by which they are in order. */
  constructor(path: string, keyOf: (row: Row) => Key) {
    this.#path = path;
    this.#keyOf = keyOf;
  }

  /** Asks for everything the next time. */
  forget(): void {
    this.#at = null;
  }

  /** All rows in order, as they are now; the same array as before where nothing changed. Throws as `getPage` does.
   *
   *  The list may change while its pages are fetched. What a page lacks changed after the first page was made, so the
   *  next answer, since that page, brings it.
   */
  async now(ask: (path: string) => Promise<ListPage> = getPage): Promise<Row[]> {
    const pages = await this.#fetchPages(ask);
    const first = pages[0] as Page<Row>;
    const items = pages.flatMap((page) => page.items);
    this.#items = first.full || this.#items === null ? items : merged(this.#items, items, first.removed, this.#keyOf);
    this.#at = first.at;
    return this.#items;
  }

  /** Each page is asked for as soon as the page before names it, so that the service makes it while the other arrives. */
  async #fetchPages(ask: (path: string) => Promise<ListPage>): Promise<Page<Row>[]> {
    const path = this.#path.replace(/\?.*/, "");
    const since = this.#at === null ? "" : `${this.#path === path ? "?" : "&"}since=${encodeURIComponent(this.#at)}`;
    const bodies: Promise<unknown>[] = [];
    for (let address: string | null = this.#path + since; address !== null; ) {
      const page: ListPage = await ask(address);
      page.body.catch(() => undefined); // it is awaited below, perhaps after it has failed
      bodies.push(page.body);
      address = page.next === null ? null : path + page.next;
    }
    const pages = (await Promise.all(bodies)) as Page<Row>[];
    if (pages.at(-1)?.next) throw new Problem(502, "The list ends early, since a proxy has removed the Link header of an answer. Let the proxy pass that header.");
    return pages;
  }
}

export const followOsds = (): FollowedList<Osd> => new FollowedList<OsdPage["items"][number]>("osds", (osd) => osd.osd);

/** Disks are asked for by as few requests as the service allows. */
export const followDevices = (): FollowedList<Disk> => new FollowedList<DiskPage["items"][number]>("devices?limit=10000", (disk) => disk.device);

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

/** `before` with what changed put in its place, in order of keys. */
export function merged<Row>(before: Row[], changed: readonly Row[], gone: readonly Key[], keyOf: (row: Row) => Key): Row[] {
  if (changed.length === 0 && gone.length === 0) return before;
  const places = new Map(before.map((row, place) => [keyOf(row), place]));
  const after = [...before];
  const come: Row[] = [];
  for (const row of changed) {
    const place = places.get(keyOf(row));
    if (place === undefined) come.push(row);
    else after[place] = row;
  }
  if (come.length === 0 && gone.length === 0) return after;
  const left = new Set(gone);
  return [...after.filter((row) => !left.has(keyOf(row))), ...come].sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
}
