/** Keys of the whole page. None of them acts on the cluster; letters can be switched off for speech and screen readers. */
import { signal } from "@preact/signals";

export interface Key {
  keys: string;
  does: string;
}

export const KEYS: readonly Key[] = [
  { keys: "/", does: "find a disk, host, OSD or drain" },
  { keys: "n  N", does: "next, previous disk in trouble" },
  { keys: "\u2190 \u2191 \u2193 \u2192", does: "move on the map; left and right, the cursor of a chart" },
  { keys: "Home  End", does: "first, last disk of the host; ends of a chart" },
  { keys: "PgUp  PgDn", does: "previous, next rack; ten readings of a chart" },
  { keys: "Enter", does: "open" },
  { keys: "r", does: "show what arrived while the list was held still" },
  { keys: "Esc", does: "close" },
  { keys: "?", does: "this list" },
];

const LETTERS_KEY = "predrain-letters";

export const lettersOn = signal(localStorage.getItem(LETTERS_KEY) !== "off");
export const helpOpen = signal(false);
export const findOpen = signal(false);

export function setLetters(on: boolean): void {
  lettersOn.value = on;
  localStorage.setItem(LETTERS_KEY, on ? "on" : "off");
}

const listeners = new Map<string, () => void>();

/** Listen to a letter while a view is shown; returns how to stop. */
export function onLetter(letter: string, act: () => void): () => void {
  listeners.set(letter, act);
  return () => {
    if (listeners.get(letter) === act) listeners.delete(letter);
  };
}

function typing(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.matches("input, textarea, select") || target.isContentEditable);
}

export function followKeys(): void {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target) || !lettersOn.value) return;
    if (document.querySelector("dialog[open]")) return;
    if (event.key === "?") helpOpen.value = true;
    else if (event.key === "/") findOpen.value = true;
    else {
      const act = listeners.get(event.key);
      if (!act) return;
      act();
    }
    event.preventDefault();
  });
}
