/** A condition's shape in a line of text. */
import type { Condition } from "./condition.ts";
import { FORMS } from "./forms.ts";

/** A condition's mark beside its words, which say the same: hidden from screen readers. */
export function Shape({ of, size = 14 }: { of: Condition; size?: number }) {
  const form = FORMS[of];
  return (
    <svg class={`shape is-${of}`} width={size} height={size} viewBox="0 0 16 16" aria-hidden="true">
      <path d={form.path} class={form.line ? "line" : "solid"} />
    </svg>
  );
}
