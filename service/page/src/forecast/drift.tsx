/** Whether the drives in service still look like those that the bundle was trained on, family by family. */
import type { Drift as FamilyDrift, ForecastHealth, Shift } from "../api/contract.ts";
import { count } from "../format.ts";
import { Shape } from "../shape.tsx";

export function Drift({ health }: { health: ForecastHealth }) {
  const judged = health.drift.filter((one) => one.judged);
  const rest = health.drift.filter((one) => !one.judged);
  return (
    <section class="card" aria-labelledby="drift-head">
      <h2 id="drift-head">Drift by family of drives</h2>
      {health.checked_at === null ? (
        <p class="muted">Unknown: the forecast has not been checked yet. The first check comes soon after the first readings, then one every six hours.</p>
      ) : health.drift.length === 0 ? (
        <p class="muted">Unknown: no drive has been read for 30 days, or the bundle remembers nothing of its training.</p>
      ) : (
        <>
          {judged.length > 0 && <Judged rows={judged} />}
          {rest.length > 0 && (
            <p class="muted">
              Not judged, because fewer than 100 drives were read for 30 days or the bundle was trained on none of them:{" "}
              {rest.map((one) => `${one.family} (${count(one.drives)})`).join(", ")}.
            </p>
          )}
        </>
      )}
    </section>
  );
}

function Judged({ rows }: { rows: readonly FamilyDrift[] }) {
  return (
    <div class="table-frame" tabIndex={0}>
      <table class="table">
        <thead>
          <tr>
            <th scope="col">Family</th>
            <th scope="col" class="number">Drives</th>
            <th scope="col">Verdict</th>
            <th scope="col" class="number">Median chance within 30 days, in training and now</th>
            <th scope="col">Moved most since training</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((one) => (
            <tr key={one.family}>
              <th scope="row">{one.family}</th>
              <td class="number">{count(one.drives)}</td>
              <td>
                {one.drifted.length > 0 || one.score_drifted ? (
                  <>
                    <Shape of="warning" /> {verdict(one)}
                  </>
                ) : (
                  "as in training"
                )}
              </td>
              <td class="number">{medianChances(one.score)}</td>
              <td class="muted">{one.top_features.map(moved).join("; ")}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** A change of the median counts as drift from half or twice on (models/drift.py). */
function medianChances(score: Shift | null): string {
  if (score === null || score.reference === null || score.current === null) return "not reported";
  return `${(score.reference * 100).toPrecision(2)} %, ${(score.current * 100).toPrecision(2)} %`;
}

function verdict(one: FamilyDrift): string {
  const features = one.drifted.length > 3 ? `${one.drifted.slice(0, 3).join(", ")} and ${one.drifted.length - 3} more` : one.drifted.join(", ");
  return [features && `changed: ${features}`, one.score_drifted && "what is forecast of them changed"].filter(Boolean).join("; ");
}

function moved(shift: Shift): string {
  const medians = shift.reference === null || shift.current === null ? "" : `, median ${number(shift.reference)} to ${number(shift.current)}`;
  return `${shift.name} (${shift.psi.toFixed(2)}${medians})`;
}

const number = (value: number): string => (Math.abs(value) >= 100 ? count(value) : String(Number(value.toPrecision(2))));
