/** What a person asks of the service. Every answer, good or bad, stays on the page until it is closed. */
import { Problem, get, post, postFor, remove } from "./api/client.ts";
import { signIn, whoAmI } from "./api/session.ts";
import type { Drain, Halt, MessageReceiverTest } from "./api/contract.ts";
import type { Matchers } from "./matchers.ts";
import { want } from "./live.ts";
import { notice, session } from "./state.ts";

export type Verb = "approve" | "reject" | "pause" | "resume" | "cancel" | "stay_drained" | "choose_other_targets" | "give_up_cancel";

/** `moved` is set on 412: what was shown is no longer what would happen. */
export interface Answer {
  done: boolean;
  moved: { sentence: string; drain: Drain | null } | null;
}

/** `said` is what the page answers when it was done; null where the page shows it anyway. */
async function ask(path: string, body: unknown, said: string | null, etag?: string): Promise<Answer> {
  return answered(post(path, body, etag), said);
}

async function answered(asked: Promise<void>, said: string | null): Promise<Answer> {
  try {
    await asked;
    notice.value = said === null ? null : { kind: "done", text: said };
    return { done: true, moved: null };
  } catch (error) {
    if (error instanceof Problem && error.status === 412) {
      return { done: false, moved: { sentence: error.message, drain: error.drain } };
    }
    if (error instanceof Problem && (error.status === 401 || error.status === 403)) void lookWhoIsIn();
    const text = error instanceof Problem ? error.message : "The service did not answer; nothing is known to have started.";
    notice.value = { kind: "refused", text };
    return { done: false, moved: null };
  } finally {
    want();
  }
}

/** Ask who is signed in; where nobody answers, what was known stays. */
export async function lookWhoIsIn(): Promise<void> {
  try {
    session.value = await whoAmI();
  } catch {
    // The stream tells that the service is away, and asks again when it is back.
  }
}

/** Sign in with a token; returns the sentence that refuses it, or null. */
export async function enter(token: string): Promise<string | null> {
  try {
    session.value = await signIn(token);
    want();
    return null;
  } catch (error) {
    return error instanceof Problem ? error.message : "The service did not answer; nobody is signed in.";
  }
}

/** Sign out: the cookie opens nothing from now on, wherever it was copied to. */
export async function leave(): Promise<void> {
  await answered(remove("session"), "Signed out.");
  await lookWhoIsIn();
}

export const drainVerb = (id: string, verb: Verb, said: string, etag?: string): Promise<Answer> =>
  ask(`drains/${encodeURIComponent(id)}/${verb}`, {}, said, etag);

export const insist = (id: string, guards: readonly string[], reason: string, minutes: number, confirm: string): Promise<Answer> =>
  ask(`drains/${encodeURIComponent(id)}/insist`, { guards, reason, minutes, confirm }, `Noted: ${guards.join(", ")} ${guards.length === 1 ? "holds" : "hold"} this drain no more, for ${minutes} minutes and this step at most.`);

export const proposeDrain = (osd: number, reason: string): Promise<Answer> =>
  ask("drains", { target: `osd.${osd}`, intent: "replace", reason }, `A drain of osd.${osd} is proposed. Nothing moves until it is approved.`);

export const tellOutcome = (device: string, fate: string, note: string): Promise<Answer> =>
  ask(`devices/${encodeURIComponent(device)}/outcome`, { fate, note }, `Noted: ${device} ${fate}.`);

export const askSelfTest = (device: string, kind: "short" | "long"): Promise<Answer> =>
  ask(`devices/${encodeURIComponent(device)}/self-tests`, { kind }, `A ${kind} self-test is asked for. Its host fetches the request within a minute.`);

export const switchLight = (device: string, on: boolean): Promise<Answer> =>
  ask(`devices/${encodeURIComponent(device)}/locate`, { on }, `The light is to be switched ${on ? "on" : "off"}. Its host fetches the request within a minute.`);

export const nameHome = (device: string, host: string): Promise<Answer> =>
  ask(`devices/${encodeURIComponent(device)}/host`, { host }, `Noted: ${device} is in ${host}. Its history is taken over within seconds.`);

export const silence = (matchers: Matchers, hours: number, reason: string): Promise<Answer> =>
  ask("silences", { ...matchers, severity: matchers.severity || null, hours, reason }, "Silenced: no message about it is sent until then. Drains go on.");

/** Send a test message by one receiver; the result is an answer like any other. */
export async function testReceiver(name: string): Promise<void> {
  let result: MessageReceiverTest | null = null;
  const sending = postFor<MessageReceiverTest>(`receivers/${encodeURIComponent(name)}/test`, {}).then((found) => void (result = found));
  const answer = await answered(sending, null);
  if (!answer.done || result === null) return;
  const { delivered, problem } = result as MessageReceiverTest;
  notice.value = delivered ? { kind: "done", text: `${name} took the test message.` } : { kind: "refused", text: `${name} did not take it: ${problem}` };
}

export const liftSilence = (id: string): Promise<Answer> =>
  answered(remove(`silences/${encodeURIComponent(id)}`), "The silence has ended. predrain reports what still stands.");

/** A halt, or its lifting, that did not come everywhere must not look as if it had. */
async function setHalt(reason: string | null, said: string | null): Promise<Answer> {
  const answer = await ask("halt", { reason }, said);
  const unreached = answer.done ? await get<Halt>("halt").then((halt) => halt.unreached, () => null) : null;
  if (unreached !== null) notice.value = { kind: "refused", text: `Only here: ${unreached}` };
  return answer;
}

export const haltAll = (): Promise<Answer> => setHalt("halted by a person on the page", null);

export const liftHalt = (): Promise<Answer> => setHalt(null, "The halt is lifted; drains go on when their guards pass.");
