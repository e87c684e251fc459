/** The cursor of a chart by keys: a slider over the chart, which says at each step the time and, once it stands, all values. */
import { useEffect, useState } from "preact/hooks";
import { moment } from "../format.ts";
import { afterKey } from "./cursor.ts";

interface Props {
  times: readonly number[];
  at: number | null;
  move: (at: number | null) => void;
  /** Every value at an instant, in a sentence. */
  say: (at: number) => string;
}

/** A held key moves the cursor 30 times a second: the values are said when it has stood so long. */
const STANDS_MS = 600;

export function CursorKeys({ times, at, move, say }: Props) {
  const [keyed, setKeyed] = useState<number | null>(null);
  const [said, setSaid] = useState("");
  useEffect(() => {
    if (keyed === null) return setSaid("");
    const timer = setTimeout(() => setSaid(say(keyed)), STANDS_MS);
    return () => clearTimeout(timer);
  }, [keyed]);
  if (times.length === 0) return null;
  const go = (to: number | null): void => {
    setKeyed(to);
    move(to);
  };
  const press = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
    const to = afterKey(times, at, event.key);
    if (to === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    go(to);
  };
  const here = at ?? times.at(-1) ?? 0;
  return (
    <>
      <div
        class="cursor-keys"
        role="slider"
        tabIndex={0}
        aria-label="Cursor of the chart"
        aria-valuemin={0}
        aria-valuemax={times.length - 1}
        aria-valuenow={Math.max(0, times.indexOf(here))}
        aria-valuetext={`${moment(here, null)} UTC`}
        onKeyDown={press}
        onFocus={() => at === null && go(here)}
        onBlur={() => go(null)}
      />
      <p class="key-hint muted small" aria-hidden="true">
        <kbd>{"\u2190"}</kbd> <kbd>{"\u2192"}</kbd> move the cursor, <kbd>Home</kbd> and <kbd>End</kbd> go to the ends, <kbd>Page Up</kbd> and <kbd>Page Down</kbd> go ten readings, <kbd>Esc</kbd> hides it
      </p>
      <p class="unseen" role="status" aria-live="polite">
        {said}
      </p>
    </>
  );
}
