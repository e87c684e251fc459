/** Who this browser is signed in as. The cookie is out of any script's reach; what is kept here is the word beside it. */
import { BASE, refusal, say } from "./client.ts";
import type { Session } from "./contract.ts";

/** Who one is now. Throws Problem, or TypeError when nobody answers. */
export async function whoAmI(): Promise<Session> {
  const response = await fetch(`${BASE}session`, { cache: "no-store", signal: AbortSignal.timeout(20_000) });
  if (!response.ok) throw await refusal(response);
  const session = (await response.json()) as Session;
  say(session.csrf_token);
  return session;
}

/** Takes `#token=...` out of the address, where it would be copied with every link. */
export function tokenInAddress(): string | null {
  const inFragment = /^#token=([\w.~+/=-]+)/.exec(location.hash)?.[1] ?? null;
  if (inFragment) history.replaceState(null, "", location.pathname + location.search);
  return inFragment;
}

/** Exchange a token for the cookie. Throws Problem, or TypeError when nobody answers. */
export async function signIn(token: string): Promise<Session> {
  const response = await fetch(`${BASE}session`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ token }),
    signal: AbortSignal.timeout(20_000),
  });
  if (!response.ok) throw await refusal(response);
  return whoAmI();
}
