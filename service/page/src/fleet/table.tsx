/** The map's facts as a table: the equal of small cells for those who read rather than look. */
import { useState } from "preact/hooks";
import type { Osd } from "../api/contract.ts";
import { CONDITIONS, condition, fullness } from "../condition.ts";
import { age, life, percent, plural, ratio, share } from "../format.ts";
import { hostLink, osdLink } from "../links.ts";
import { WORDS } from "../forms.ts";
import { Shape } from "../shape.tsx";
import { ruleOf } from "../source.ts";

const PAGE = 100;

export function FleetTable({ osds, now }: { osds: readonly Osd[]; now: string | null }) {
  const [most, setMost] = useState(PAGE);
  const rows = osds
    .map((osd) => ({ osd, shown: condition(osd, now) }))
    .sort(
      (a, b) =>
        Number(a.shown === "good") - Number(b.shown === "good") ||
        (b.osd.p_fail_30d ?? 2) - (a.osd.p_fail_30d ?? 2) ||
        CONDITIONS.indexOf(a.shown) - CONDITIONS.indexOf(b.shown) ||
        a.osd.osd - b.osd.osd,
    );
  return (
    <div class="table-frame">
      <table class="table">
        <caption>{plural(rows.length, "disk")}, most probable to fail first</caption>
        <thead>
          <tr>
            <th scope="col">OSD</th>
            <th scope="col">Status</th>
            <th scope="col">Where</th>
            <th scope="col">Model</th>
            <th scope="col" class="number">Within 30 days</th>
            <th scope="col" class="number">A week ago</th>
            <th scope="col" class="number">Likely life</th>
            <th scope="col" class="number">Latency</th>
            <th scope="col" class="number">Full</th>
            <th scope="col" class="number">Age</th>
            <th scope="col">Why</th>
          </tr>
        </thead>
        <tbody>
          {rows.slice(0, most).map(({ osd, shown }) => (
            <tr key={osd.osd}>
              <th scope="row"><a href={osdLink(osd)}>osd.{osd.osd}</a></th>
              <td class="nowrap"><Shape of={shown} /> {WORDS[shown]}</td>
              <td class="nowrap"><a href={hostLink(osd.host)}>{osd.host}</a>, slot {osd.slot}</td>
              <td class="nowrap">{osd.model ?? "not reported"}</td>
              <td class="number">{osd.p_fail_30d === null && ruleOf(osd.source) !== null ? "rule" : percent(osd.p_fail_30d)}</td>
              <td class="number">{percent(osd.p_fail_30d_week_ago)}</td>
              <td class="number nowrap">{osd.p_fail_30d === null ? "not reported" : life(osd.life_p10_days, osd.life_p90_days)}</td>
              <td class="number">{ratio(osd.latency_ratio)}</td>
              <td class="number">{share(fullness(osd))}</td>
              <td class="number nowrap">{age(osd.age_days)}</td>
              <td class="muted said">{osd.reasons[0] ?? ""}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {rows.length > most && (
        <button type="button" class="button plain" onClick={() => setMost(most + 4 * PAGE)}>
          Show {Math.min(4 * PAGE, rows.length - most)} more of {rows.length - most}
        </button>
      )}
    </div>
  );
}
