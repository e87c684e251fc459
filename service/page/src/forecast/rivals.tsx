/** Champion against challenger, on the same disks and days. */
import type { Comparison, ForecastHealth, Standing } from "../api/contract.ts";
import { count, plural } from "../format.ts";
import { whyUnknown } from "./right.tsx";

export function Rivals({ health }: { health: ForecastHealth }) {
  const { challenger, comparison } = health;
  return (
    <section class="card" aria-labelledby="rivals-head">
      <h2 id="rivals-head">Champion against challenger</h2>
      {challenger === null ? (
        <p class="muted">
          No challenger is on trial. <code>predrain models challenge BUNDLE</code> lets one score the same disks in the champion's shadow; nothing
          that it says is shown as an outlook or moves data.
        </p>
      ) : comparison === null || comparison.bundles.length < 2 ? (
        <p class="muted">
          {challenger.name} ({challenger.fingerprint}) scores in the champion's shadow. {whyUnknown(health) ?? "Unknown: both have not yet forecast the same disks."}
        </p>
      ) : (
        <Standings comparison={comparison} />
      )}
    </section>
  );
}

const ROWS: readonly { name: string; of: (one: Standing, all: Comparison) => string }[] = [
  { name: "Failures foretold", of: (one, all) => `${one.detected} of ${all.failures}` },
  { name: "of them as bad", of: (one) => count(one.detected_bad) },
  { name: "Median days ahead", of: (one) => (one.lead_days === null ? "not reported" : count(one.lead_days)) },
  { name: "False alarms", of: (one, all) => `${count(one.false_alarms)} of ${count(all.healthy_windows)}` },
  { name: "of them as bad", of: (one) => count(one.false_alarms_bad) },
  { name: "Failures expected", of: (one, all) => `${count(one.expected, 1)}, ${count(all.observed)} seen` },
  { name: "Brier score", of: (one) => (one.brier === null ? "not reported" : one.brier.toPrecision(3)) },
];

function Standings({ comparison }: { comparison: Comparison }) {
  const [first, second] = comparison.bundles;
  if (!first || !second) return null;
  return (
    <>
      <p>
        <b>{comparison.sentence}</b>
      </p>
      <div class="table-frame" tabIndex={0}>
        <table class="table">
          <caption>
            {plural(comparison.failures, "failure")} and {plural(comparison.healthy_windows, "healthy window")} that both forecast
          </caption>
          <thead>
            <tr>
              <th scope="col">
                <span class="unseen">What</span>
              </th>
              <th scope="col" class="number">Champion, {first.bundle}</th>
              <th scope="col" class="number">Challenger, {second.bundle}</th>
            </tr>
          </thead>
          <tbody>
            {ROWS.map((row, index) => (
              <tr key={index}>
                <th scope="row">{row.name}</th>
                <td class="number">{row.of(first, comparison)}</td>
                <td class="number">{row.of(second, comparison)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <p class="muted small">
        Evidence that the challenger foretells more: {evidence(comparison.evidence)}, and 20 are wanted; it may be looked at every day. 95 % intervals of the challenger's gain: share foretold {gain(comparison.recall_gain)}, Brier score {gain(comparison.brier_gain)}.
      </p>
    </>
  );
}

const evidence = (value: number): string => (value >= 100 ? "over 100" : value < 0.1 ? "under 0.1" : value.toPrecision(2));

const gain = (interval: [number, number] | null): string =>
  interval === null ? "unknown, too few failures" : `${signed(interval[0])} to ${signed(interval[1])}`;

const signed = (value: number): string => `${value > 0 ? "+" : ""}${Number(value.toPrecision(2))}`;
