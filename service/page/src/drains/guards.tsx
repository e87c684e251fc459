/** Every guard with its number: those that refuse first. */
import type { DrainWhole } from "../api/contract.ts";
import { sentence } from "../format.ts";
import { Shape } from "../shape.tsx";

export function Guards({ guards }: { guards: DrainWhole["guards"] }) {
  const passing = guards.filter((guard) => guard.ok).length;
  const sorted = [...guards].sort((a, b) => Number(a.ok) - Number(b.ok));
  if (guards.length === 0) return <p class="muted">Guards have not been asked yet.</p>;
  return (
    <>
      <h3>
        {passing} of {guards.length} guards pass
      </h3>
      <ul class="guards">
        {sorted.map((guard) => (
          <li key={guard.code} class={guard.ok ? "" : "refuses"}>
            <Shape of={guard.ok ? "drained" : "bad"} size={12} /> <b>{guard.code}</b>{" "}
            {guard.overruled && <span>overruled, </span>}
            <span class="muted">{guard.ok ? guard.sentence : sentence(guard.sentence)}</span>
          </li>
        ))}
      </ul>
    </>
  );
}
