/** What a person asks of the service. Every answer, good or bad, stays on the page until it is closed. */
import { Problem, keepToken, post } from "./api/client.ts";
import type { Drain } from "./api/contract.ts";
import { want } from "./live.ts";
import { notice, token } from "./state.ts";

export type Verb = "approve" | "pause" | "resume" | "cancel";

/** `moved` is set on 412: what was shown is no longer what would happen. */
export interface Answer {
  done: boolean;
  moved: { sentence: string; drain: Drain | null } | null;
}

/** `said` is what the page answers when it was done; null where the page shows it anyway. */
async function ask(path: string, body: unknown, said: string | null, etag?: string): Promise<Answer> {
  try {
    await post(path, body, etag);
    notice.value = said === null ? null : { kind: "done", text: said };
    return { done: true, moved: null };
  } catch (error) {
    if (error instanceof Problem && error.status === 412) {
      return { done: false, moved: { sentence: error.message, drain: error.drain } };
    }
    if (error instanceof Problem && error.status === 401) setToken(null);
    const text = error instanceof Problem ? error.message : "The service did not answer; nothing is known to have started.";
    notice.value = { kind: "refused", text };
    return { done: false, moved: null };
  } finally {
    want();
  }
}

export function setToken(value: string | null): void {
  keepToken(value);
  token.value = value;
}

export const drainVerb = (id: string, verb: Verb, said: string, etag?: string): Promise<Answer> =>
  ask(`drains/${encodeURIComponent(id)}/${verb}`, {}, said, etag);

export const proposeDrain = (osd: number, reason: string): Promise<Answer> =>
  ask("drains", { target: `osd.${osd}`, intent: "replace", reason }, `A drain of osd.${osd} is proposed. Nothing moves until it is approved.`);

export const tellOutcome = (device: string, fate: string, note: string): Promise<Answer> =>
  ask(`devices/${encodeURIComponent(device)}/outcome`, { fate, note }, `Noted: ${device} ${fate}.`);

export const holdAll = (): Promise<Answer> =>
  ask("halt", { why: "held by a person on the page" }, null);

export const liftHold = (): Promise<Answer> => ask("halt", { why: null }, "The hold is lifted; drains go on when their guards pass.");
