/** Was it right? The forecast held against what has happened since, and expected beside seen failures by family. */
import type { Calibration, Comparison, ForecastHealth } from "../api/contract.ts";
import { count, plural, share } from "../format.ts";
import { Shape } from "../shape.tsx";

/** Why there is nothing to show yet; null when there is. */
export function whyUnknown(health: ForecastHealth): string | null {
  if (health.checked_at === null) return "Unknown: the forecast has not been checked yet. The first check comes soon after the first readings, then one every six hours.";
  if (health.comparison === null) return "Unknown: no scorebook is kept here, so what was forecast cannot be held against what happened.";
  return null;
}

export function WasItRight({ health }: { health: ForecastHealth }) {
  const unknown = whyUnknown(health);
  const { comparison } = health;
  const champion = comparison?.bundles[0];
  return (
    <section class="card" aria-labelledby="right-head">
      <h2 id="right-head">Was it right?</h2>
      {unknown !== null ? (
        <p class="muted">{unknown}</p>
      ) : comparison === null || champion === undefined || comparison.failures === 0 ? (
        <p class="muted">Unknown: no failure is on record in the last 180 days.</p>
      ) : (
        <>
          <p>
            {comparison.enough ? null : <b>Too few to judge ({plural(comparison.failures, "failure")} of the 30 that are wanted). </b>}
            {foretold(comparison)}
          </p>
          <dl class="facts">
            <dt>Foretold</dt>
            <dd>
              {champion.detected} of {plural(comparison.failures, "failure")} in the 30 days before, {champion.detected_bad} of them as bad
            </dd>
            <dt>How far ahead</dt>
            <dd>{champion.lead_days === null ? "unknown: none was foretold" : `median ${plural(Math.round(champion.lead_days), "day")}`}</dd>
            <dt>False alarms</dt>
            <dd>
              {champion.false_alarms} of {plural(comparison.healthy_windows, "healthy window")} of 30 days
              {comparison.healthy_windows > 0 ? ` (${share(champion.false_alarms / comparison.healthy_windows, 1)})` : ""}, {champion.false_alarms_bad} as bad
            </dd>
            <dt>Brier score</dt>
            <dd>{champion.brier === null ? "unknown: no forecast is 30 days old" : `${champion.brier.toPrecision(2)} over ${plural(comparison.rows, "forecast")}`}</dd>
          </dl>
        </>
      )}
      <p class="muted">
        Held against what the cluster did with each disk, and what people say of it on its page. Drained disks count as unverified from the drain on, never
        as successes.
      </p>
    </section>
  );
}

function foretold(comparison: Comparison): string {
  const champion = comparison.bundles[0];
  const many = champion?.detected ?? 0;
  const lead = champion?.lead_days;
  const ahead = lead === null || lead === undefined ? "" : `, half of them ${plural(Math.round(lead), "day")} or more ahead`;
  return `${many} of ${plural(comparison.failures, "failure")} foretold${ahead}.`;
}

export function Calibrated({ health }: { health: ForecastHealth }) {
  const unknown = whyUnknown(health);
  return (
    <section class="card" aria-labelledby="calibration-head">
      <h2 id="calibration-head">Expected and seen, by family</h2>
      {unknown !== null ? (
        <p class="muted">{unknown}</p>
      ) : health.calibration.length === 0 ? (
        <p class="muted">Unknown: no forecast is 30 days old, so none has an outcome yet.</p>
      ) : (
        <>
          <div class="table-frame" tabIndex={0}>
            <table class="table">
              <thead>
                <tr>
                  <th scope="col">Family</th>
                  <th scope="col" class="number">Expected</th>
                  <th scope="col" class="number">Seen</th>
                  <th scope="col">Expected over seen, 95 % interval</th>
                </tr>
              </thead>
              <tbody>
                {health.calibration.map((one) => (
                  <tr key={one.family}>
                    <th scope="row">
                      {one.off && <Shape of="warning" />} {one.family}
                    </th>
                    <td class="number">{count(one.expected, 1)}</td>
                    <td class="number">{count(one.observed)}</td>
                    <td>
                      <Interval of={one} /> {inWords(one)}
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
          <p class="muted small">Right is 1. Each disk counts once in 30 days; shaded: 0.8 to 1.25. Evidently off is said only from 30 failures on.</p>
        </>
      )}
    </section>
  );
}

function inWords(one: Calibration): string {
  const high = one.high === null ? "no upper end" : one.high.toFixed(2);
  return `${one.ratio === null ? "none seen" : one.ratio.toFixed(2)} (${one.low.toFixed(2)} to ${high})`;
}

const WIDTH = 110;
const DECADES = 2;

/** From a tenth to ten times, on a logarithmic scale. */
const place = (ratio: number): number => (WIDTH * (Math.log10(Math.max(0.1, Math.min(10, ratio))) + DECADES / 2)) / DECADES;

function Interval({ of }: { of: Calibration }) {
  return (
    <svg class="interval" width={WIDTH} height={12} aria-hidden="true">
      <rect class="fair" x={place(0.8)} width={place(1.25) - place(0.8)} height={12} />
      <line class="even" x1={place(1)} x2={place(1)} y1={0} y2={12} />
      <line class="whisker" x1={place(of.low)} x2={place(of.high ?? 10)} y1={6} y2={6} />
      {of.ratio !== null && <circle class={of.off ? "off" : ""} cx={place(of.ratio)} cy={6} r={3.5} />}
    </svg>
  );
}
