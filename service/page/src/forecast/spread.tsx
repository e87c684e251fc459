/** What is expected now, and of whom: the spread of the probabilities, and the fleet by drive model. */
import type { Osd } from "../api/contract.ts";
import { count, percent, share } from "../format.ts";

interface ModelRow {
  model: string;
  disks: number;
  judged: number;
  expected: number;
  warning: number;
  bad: number;
  unknown: number;
}

const STEPS: readonly { word: string; from: number; to: number }[] = [
  { word: "under 0.1 %", from: -1, to: 0.001 },
  { word: "0.1 to 1 %", from: 0.001, to: 0.01 },
  { word: "1 to 5 %", from: 0.01, to: 0.05 },
  { word: "5 to 25 %", from: 0.05, to: 0.25 },
  { word: "25 to 50 %", from: 0.25, to: 0.5 },
  { word: "over 50 %", from: 0.5, to: 2 },
];

export function Spread({ judged }: { judged: readonly Osd[] }) {
  if (judged.length === 0) return <p class="muted">No disk has a probability yet.</p>;
  const bars = STEPS.map((step) => {
    const within = judged.filter((osd) => (osd.p_fail_30d ?? 0) >= step.from && (osd.p_fail_30d ?? 0) < step.to);
    return { ...step, many: within.length, sum: within.reduce((sum, osd) => sum + (osd.p_fail_30d ?? 0), 0) };
  });
  const whole = bars.reduce((sum, bar) => sum + bar.sum, 0);
  return (
    <table class="table spread">
      <thead>
        <tr>
          <th scope="col">Within 30 days</th>
          <th scope="col" class="number">Disks</th>
          <th scope="col" class="number">Expected</th>
          <th scope="col">Share of what is expected</th>
        </tr>
      </thead>
      <tbody>
        {bars.map((bar) => (
          <tr key={bar.word}>
            <th scope="row">{bar.word}</th>
            <td class="number">{count(bar.many)}</td>
            <td class="number">{count(bar.sum, 2)}</td>
            <td>
              <svg class="share-bar" width={90} height={8} aria-hidden="true">
                <rect class="whole" width={90} height={8} rx={2} />
                <rect class="part" width={whole ? (90 * bar.sum) / whole : 0} height={8} rx={2} />
              </svg>{" "}
              {share(whole ? bar.sum / whole : 0)}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

export function ByModel({ osds }: { osds: readonly Osd[] }) {
  return (
    <div class="table-frame" tabIndex={0}>
      <table class="table">
        <thead>
          <tr>
            <th scope="col">Model</th>
            <th scope="col" class="number">Disks</th>
            <th scope="col" class="number">Expected in 30 days</th>
            <th scope="col" class="number">Mean within 30 days</th>
            <th scope="col" class="number">Warning</th>
            <th scope="col" class="number">Bad</th>
            <th scope="col" class="number">Unknown</th>
          </tr>
        </thead>
        <tbody>
          {rowsOf(osds).map((row) => (
            <tr key={row.model}>
              <th scope="row">{row.model}</th>
              <td class="number">{count(row.disks)}</td>
              <td class="number">{row.judged ? count(row.expected, 2) : "not reported"}</td>
              <td class="number">{row.judged ? percent(row.expected / row.judged) : "not reported"}</td>
              <td class="number">{count(row.warning)}</td>
              <td class="number">{count(row.bad)}</td>
              <td class="number">{count(row.unknown)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function rowsOf(osds: readonly Osd[]): ModelRow[] {
  const rows = new Map<string, ModelRow>();
  for (const osd of osds) {
    const model = osd.model ?? "not reported";
    const row = rows.get(model) ?? { model, disks: 0, judged: 0, expected: 0, warning: 0, bad: 0, unknown: 0 };
    rows.set(model, row);
    row.disks += 1;
    if (osd.p_fail_30d !== null) {
      row.judged += 1;
      row.expected += osd.p_fail_30d;
    }
    if (osd.status !== "good") row[osd.status] += 1;
  }
  return [...rows.values()].sort((a, b) => b.disks - a.disks || a.model.localeCompare(b.model));
}
