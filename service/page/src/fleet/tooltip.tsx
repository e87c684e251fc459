/** The one tooltip, beside the cell under the pointer or in focus; it never covers that cell. */
import { tellState } from "../drains/naming.ts";
import type { Osd } from "../api/contract.ts";
import { fullness, type Condition } from "../condition.ts";
import { age, percent, ratio, seconds, share, span, within30 } from "../format.ts";
import { Shape } from "../shape.tsx";
import type { Layout } from "./layout.ts";
import { ruleOf } from "../source.ts";

const WIDTH = 276;

interface Props {
  layout: Layout;
  index: number | null;
  osds: readonly Osd[];
  conditions: readonly Condition[];
  now: string | null;
}

export function Tooltip({ layout, index, osds, conditions, now }: Props) {
  const osd = index === null ? undefined : osds[index];
  const cell = index === null ? undefined : layout.cells[index];
  const shown = index === null ? undefined : conditions[index];
  if (!osd || !cell || !shown) return null;
  const right = cell.x + 16 + WIDTH <= layout.width;
  const left = right ? cell.x + 16 : Math.max(0, cell.x - 16 - WIDTH);
  const above = cell.y > layout.height - 100;
  const full = fullness(osd);
  const read = seconds(osd.as_of, now);
  const facts = [
    full === null ? null : `${share(full)} full`,
    osd.age_days === null ? null : age(osd.age_days),
    osd.latency_ratio === null ? null : `${ratio(osd.latency_ratio)} its host`,
    read === null ? "no reading" : `reading ${span(read)} old`,
  ].filter((fact) => fact !== null);
  return (
    <div
      class={`tooltip ${above ? "above" : ""}`}
      aria-hidden="true"
      style={{ left: `${left}px`, top: `${cell.y}px`, maxWidth: `${WIDTH}px` }}
    >
      <p class="tip-name">
        <Shape of={shown} /> <b>osd.{osd.osd}</b> {osd.host}
        , slot {osd.slot}
      </p>
      {osd.p_fail_30d !== null ? (
        <p>
          <b class={`text-${shown}`}>{within30(osd.p_fail_30d)}</b>
          {osd.p_fail_30d_week_ago === null ? "" : `, was ${percent(osd.p_fail_30d_week_ago)} a week ago`}
        </p>
      ) : (
        <p>{ruleOf(osd.source) !== null ? `rule ${ruleOf(osd.source)}, no probability` : "forecast not reported"}</p>
      )}
      {osd.reasons[0] && <p class="muted">{osd.reasons[0]}</p>}
      {osd.drain && <p class="muted">{tellState(osd.drain)}{osd.drain.held_by[0] ? `: ${osd.drain.held_by[0]}` : ""}</p>}
      <p class="muted">{facts.join(" \u00b7 ")}</p>
    </div>
  );
}
