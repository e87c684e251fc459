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
const TOKEN_KEY = "predrain-token";

/** Drop every kept answer: after an hour without a stream all data is fetched anew. */
export function forgetAnswers(): void {
  kept.clear();
}

/** Takes `#token=...` out of the address, where it would be copied with every link, into this tab's memory. */
export function takeTokenFromAddress(): string | null {
  const inFragment = /^#token=([\w.~+/=-]+)/.exec(location.hash)?.[1];
  if (inFragment) {
    sessionStorage.setItem(TOKEN_KEY, inFragment);
    history.replaceState(null, "", location.pathname + location.search);
  }
  return sessionStorage.getItem(TOKEN_KEY);
}

export function keepToken(token: string | null): void {
  if (token) sessionStorage.setItem(TOKEN_KEY, token);
  else sessionStorage.removeItem(TOKEN_KEY);
}

function authorised(headers: Headers): Headers {
  const token = sessionStorage.getItem(TOKEN_KEY);
  if (token) headers.set("Authorization", `Bearer ${token}`);
  return headers;
}

async function refusal(response: Response): Promise<Problem> {
  const text = await response.text();
  try {
    const problem = JSON.parse(text) as { title?: string; detail?: string; drain?: Drain };
    return new Problem(response.status, problem.detail ?? problem.title ?? response.statusText, problem.drain ?? null);
  } catch {
    return new Problem(response.status, text.slice(0, 200) || response.statusText || `status ${response.status}`);
  }
}

/** GET below /api/v1. An unchanged answer is the same object as before. Throws Problem, or TypeError when nobody answers. */
export async function get<T>(path: string): Promise<T> {
  const before = kept.get(path);
  const headers = authorised(new Headers({ Accept: "application/json" }));
  if (before) headers.set("If-None-Match", before.etag);
  const response = await fetch(BASE + path, { headers, cache: "no-store", signal: AbortSignal.timeout(20_000) });
  if (response.status === 304 && before) return before.body as T;
  if (!response.ok) throw await refusal(response);
  const body = (await response.json()) as T;
  const etag = response.headers.get("ETag");
  if (etag) kept.set(path, { etag, body });
  return body;
}

/** POST below /api/v1 with the token. `etag` makes it conditional: 412 when what was shown has moved since. */
export async function post(path: string, body: unknown, etag?: string): Promise<void> {
  const headers = authorised(new Headers({ "Content-Type": "application/json" }));
  if (etag) headers.set("If-Match", etag);
  const response = await fetch(BASE + path, {
    method: "POST",
    headers,
    body: JSON.stringify(body ?? {}),
    signal: AbortSignal.timeout(30_000),
  });
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
