/** A box that filters a view by its address. While it has the focus, its text is the person's: nothing else writes it. */
import { useLayoutEffect, useRef } from "preact/hooks";
import { go, route, withQuery } from "./route.ts";

/** The address, and what is drawn from it, follow when the keys rest for so long. */
const REST_MS = 150;

/** `name`: the part of the address that the text is kept in. `also`: what of the address goes with another text. */
export function SearchBox(props: { label: string; placeholder: string; name?: string; also?: Record<string, null> }) {
  const name = props.name ?? "q";
  const box = useRef<HTMLInputElement>(null);
  const waiting = useRef<ReturnType<typeof setTimeout> | null>(null);
  const asked = (): string => route.value.query.get(name) ?? "";
  const inAddress = asked();

  const forget = (): void => {
    if (waiting.current !== null) clearTimeout(waiting.current);
    waiting.current = null;
  };
  /** The text of the box goes into the address. */
  const follow = (): void => {
    forget();
    const text = box.current?.value.trim() ?? "";
    if (text !== asked()) go(withQuery({ ...props.also, [name]: text || null }), true);
  };

  useLayoutEffect(() => {
    if (box.current && box.current !== document.activeElement) box.current.value = inAddress;
  }, [inAddress]);
  // A box that is gone must not write its text into the address of the next view.
  useLayoutEffect(() => forget, []);

  return (
    <label class="search-box">
      <span class="unseen">{props.label}</span>
      <input
        ref={box}
        type="search"
        placeholder={props.placeholder}
        spellcheck={false}
        autocomplete="off"
        onInput={() => {
          forget();
          waiting.current = setTimeout(follow, REST_MS);
        }}
        onKeyDown={(event) => {
          if (event.key === "Enter") follow();
        }}
        onBlur={(event) => {
          if (waiting.current !== null) follow();
          else event.currentTarget.value = asked();
        }}
      />
    </label>
  );
}
