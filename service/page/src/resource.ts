/** A view's own GET: the last answer stays on screen while a new one is fetched, whenever the service says that things changed. */
import { useEffect, useRef, useState } from "preact/hooks";
import { Problem, get } from "./api/client.ts";
import { round } from "./state.ts";

export interface Resource<T> {
  data: T | null;
  /** The service's sentence when it refused; null while all is well or the stream is lost (the header says that). */
  refused: string | null;
  missing: boolean;
}

const EMPTY = { data: null, refused: null, missing: false };
const SOONEST_MS = 1_000;

const lastAsked = new Map<string, number>();

/** `told`: what of the service's news makes the answer another one; any news, unless it is given. */
export function useResource<T>(path: string | null, told?: unknown): Resource<T> {
  const [held, setHeld] = useState<Resource<T> & { path: string | null }>({ ...EMPTY, path });
  const wanted = useRef(path);
  wanted.current = path;
  const changed = told === undefined ? round.value : told;

  useEffect(() => {
    if (path === null) return undefined;
    const wait = Math.max(0, (lastAsked.get(path) ?? 0) + SOONEST_MS - Date.now());
    const timer = setTimeout(() => {
      lastAsked.set(path, Date.now());
      get<T>(path).then(
        (data) => {
          if (wanted.current !== path) return;
          setHeld((old) => (old.data === data && old.path === path ? old : { ...EMPTY, data, path }));
        },
        (error: unknown) => {
          if (wanted.current !== path || !(error instanceof Problem)) return;
          const { message, status } = error;
          setHeld((old) => ({ data: old.path === path ? old.data : null, refused: message, missing: status === 404, path }));
        },
      );
    }, held.path === path && held.data === null ? 0 : wait);
    return () => clearTimeout(timer);
  }, [path, changed]);

  useEffect(() => () => void (wanted.current = null), []);
  return held.path === path ? held : EMPTY;
}
