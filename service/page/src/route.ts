/** The address is the state: what is shown, coloured and filtered can be sent to somebody else as a link. */
import { signal } from "@preact/signals";

export type Colouring = "outlook" | "latency" | "age" | "model" | "fullness";
export const COLOURINGS: readonly Colouring[] = ["outlook", "latency", "age", "model", "fullness"];

export type View =
  | { name: "fleet" }
  | { name: "device"; id: string }
  | { name: "osd"; osd: number }
  | { name: "drains" }
  | { name: "drain"; id: string }
  | { name: "events" }
  | { name: "alerts" }
  | { name: "forecast" }
  | { name: "clusters" }
  | { name: "report" }
  | { name: "nowhere"; path: string };

export interface Route {
  view: View;
  query: URLSearchParams;
}

/** A link that was cut in the middle of a sign leads to a view that says so, not to an empty page. */
function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export function parse(path: string, search: string): Route {
  const [, room = "", id] = path.split("/").map(decoded);
  const query = new URLSearchParams(search);
  const rooms: Record<string, View> = {
    "": { name: "fleet" },
    fleet: { name: "fleet" },
    drains: id ? { name: "drain", id } : { name: "drains" },
    events: { name: "events" },
    alerts: { name: "alerts" },
    forecast: { name: "forecast" },
    clusters: { name: "clusters" },
    report: { name: "report" },
  };
  if (room === "devices" && id) return { view: { name: "device", id }, query };
  if (room === "osds" && id && /^\d+$/.test(id)) return { view: { name: "osd", osd: Number(id) }, query };
  return { view: (Object.hasOwn(rooms, room) && rooms[room]) || { name: "nowhere", path }, query };
}

export const route = signal<Route>(parse(location.pathname, location.search));

/** Go to an address of ours; `replace` where going back should not stop here (a filter, a redirect). */
export function go(href: string, replace = false): void {
  const leaves = new URL(href, location.href).pathname !== location.pathname;
  history[replace ? "replaceState" : "pushState"](null, "", href);
  route.value = parse(location.pathname, location.search);
  if (leaves) window.scrollTo(0, 0);
}

/** Change some of the query and leave the rest; null or empty takes a key out. */
export function withQuery(changes: Record<string, string | null>): string {
  const query = new URLSearchParams(route.value.query);
  for (const [key, value] of Object.entries(changes)) {
    if (value) query.set(key, value);
    else query.delete(key);
  }
  const text = query.toString();
  return location.pathname + (text ? `?${text}` : "");
}

/** Links stay plain links; those of ours are followed without loading the page anew. */
export function followLinks(): void {
  addEventListener("popstate", () => {
    route.value = parse(location.pathname, location.search);
  });
  document.addEventListener("click", (event) => {
    if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey) return;
    const link = event.target instanceof Element ? event.target.closest("a") : null;
    if (!link || link.target || link.origin !== location.origin || link.hasAttribute("download")) return;
    if (link.pathname.startsWith("/api/") || link.hash) return;
    event.preventDefault();
    go(link.pathname + link.search);
  });
}
