/** One way to ask the service. Answers are kept with their ETag, so that what did not change costs a 304 and no paint. */

import type { Drain } from "./contract.ts";

export const BASE = "/api/v1/";

/** What the service refuses, in its own sentence (problem+json), with the status that says of what kind. */
export class Problem extends Error {
  readonly status: number;
  /** The drain as it is now, where an approval came too late (412). */
  readonly drain: Drain | null;

  constructor(status: number, detail: string, drain: Drain | null = null) {
    super(detail);
    this.status = status;
    this.drain = drain;
  }
}

interface Kept {
  etag: string;
  body: unknown;
}

const kept = new Map<string, Kept>();
let word: string | null = null;

/** Drop every kept answer: after an hour without a stream all data is fetched anew. */
export function forgetAnswers(): void {
  kept.clear();
}

/** What goes with whatever asks for a change, so that no other site's page can ask with our cookie. */
export function say(sessionWord: string | null): void {
  word = sessionWord;
}

function signed(headers: Headers): Headers {
  if (word) headers.set("X-Predrain-CSRF-Token", word);
  return headers;
}

export async function refusal(response: Response): Promise<Problem> {
  const text = await response.text();
  try {
    const problem = JSON.parse(text) as { title?: string; detail?: string; drain?: Drain };
    return new Problem(response.status, problem.detail ?? problem.title ?? response.statusText, problem.drain ?? null);
  } catch {
    return new Problem(response.status, text.slice(0, 200) || response.statusText || `status ${response.status}`);
  }
}

async function asked(path: string, etag?: string): Promise<Response> {
  const headers = new Headers({ Accept: "application/json" });
  if (etag) headers.set("If-None-Match", etag);
  const response = await fetch(BASE + path, { headers, cache: "no-store", signal: AbortSignal.timeout(20_000) });
  if (!response.ok && response.status !== 304) throw await refusal(response);
  return response;
}

/** GET below /api/v1. An unchanged answer is the same object as before. Throws Problem, or TypeError when nobody answers. */
export async function get<T>(path: string): Promise<T> {
  const before = kept.get(path);
  const response = await asked(path, before?.etag);
  if (response.status === 304 && before) return before.body as T;
  const body = (await response.json()) as T;
  const etag = response.headers.get("ETag");
  if (etag) kept.set(path, { etag, body });
  return body;
}

/** One page of a list: its content is still on its way when the query of the next page is known. */
export interface ListPage {
  body: Promise<unknown>;
  /** The query of the next page, with its question mark; null for the last page. */
  next: string | null;
}

const NEXT = /<(\?[^>]*)>;\s*rel="next"/;

/** GET of one page of a list, keeping nothing. Throws as `get` does. */
export async function getPage(path: string): Promise<ListPage> {
  const response = await asked(path);
  return { body: response.json(), next: NEXT.exec(response.headers.get("Link") ?? "")?.[1] ?? null };
}

/** POST below /api/v1 as who is signed in. `etag` makes it conditional: 412 when what was shown has moved since. */
export async function post(path: string, body: unknown, etag?: string): Promise<void> {
  await posted(path, body, etag);
}

/** The same, with the answer. */
export async function postFor<T>(path: string, body: unknown): Promise<T> {
  return (await (await posted(path, body)).json()) as T;
}

async function posted(path: string, body: unknown, etag?: string): Promise<Response> {
  const headers = signed(new Headers({ "Content-Type": "application/json" }));
  if (etag) headers.set("If-Match", etag);
  const response = await fetch(BASE + path, {
    method: "POST",
    headers,
    body: JSON.stringify(body ?? {}),
    signal: AbortSignal.timeout(30_000),
  });
  if (!response.ok) throw await refusal(response);
  return response;
}

/** DELETE below /api/v1 as who is signed in. */
export async function remove(path: string): Promise<void> {
  const response = await fetch(BASE + path, { method: "DELETE", headers: signed(new Headers()), signal: AbortSignal.timeout(30_000) });
  if (!response.ok) throw await refusal(response);
}

/** All pages of a list, in order. */
export async function getAll<T>(path: string): Promise<T[]> {
  const first = await get<{ items: T[]; next: string | null }>(path);
  if (!first.next) return first.items;
  const items = [...first.items];
  let next: string | null = first.next;
  while (next) {
    const mark: string = path.includes("?") ? "&" : "?";
    const page: { items: T[]; next: string | null } = await get(`${path}${mark}cursor=${encodeURIComponent(next)}`);
    items.push(...page.items);
    next = page.next;
  }
  return items;
}
