/** What a silence covers: patterns of the shell, and a severity; an empty one covers all. */

export interface Matchers {
  cause: string;
  host: string;
  rack: string;
  model: string;
  name: string;
  severity: "" | "notice" | "urgent";
}

export const NO_MATCHERS: Matchers = { cause: "", host: "", rack: "", model: "", name: "", severity: "" };

/** The address of the preview; null where nothing is named, since a silence of everything is refused. */
export function previewPath(matchers: Matchers): string | null {
  const { severity, ...patterns } = matchers;
  const named = Object.entries(patterns).map(([key, pattern]) => [key, pattern.trim()] as const).filter(([, pattern]) => pattern !== "");
  if (named.length === 0) return null;
  const query = new URLSearchParams(named.map(([key, pattern]) => [key, pattern]));
  if (severity !== "") query.set("severity", severity);
  return `silences/preview?${query.toString()}`;
}

/** The matchers of a silence in one line: `host stor-07, notice`. */
export function matchersText(one: Partial<Record<keyof Matchers, string | null>>): string {
  const keys: readonly (keyof Matchers)[] = ["cause", "host", "rack", "model", "name"];
  const named = keys.filter((key) => one[key]).map((key) => `${key} ${one[key]}`);
  return [...named, one.severity].filter(Boolean).join(", ");
}
