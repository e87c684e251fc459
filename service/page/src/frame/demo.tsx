/** The demo says that it is one: which day, how fast, what cannot be foreseen; and at its end what came of it. */
import { count } from "../format.ts";
import { route } from "../route.ts";
import { status } from "../state.ts";

export function DemoBanner() {
  const demo = status.value?.demo;
  if (!demo) return null;
  return (
    <section class="demo" aria-label="Demo">
      <p>
        <b>
          Demo, day {demo.day} of {demo.days}
        </b>{" "}
        <progress value={demo.day} max={demo.days} aria-hidden="true" />{" "}
        <span class="muted">
          {pace(demo.seconds_per_day)}, seed {demo.seed}. {demo.note}
        </span>
      </p>
      {demo.table && route.value.view.name !== "fleet" && <a href="/fleet">Results</a>}
      {demo.table && route.value.view.name === "fleet" && (
        <table class="table demo-table">
          <caption>Results</caption>
          <thead>
            <tr>
              <th scope="col">
                <span class="unseen">What</span>
              </th>
              <th scope="col" class="number">
                with predrain
              </th>
              <th scope="col" class="number">
                same seed, without
              </th>
            </tr>
          </thead>
          <tbody>
            {demo.table.rows.map((row) => (
              <tr key={row.what}>
                <th scope="row">{row.what}</th>
                <td class="number">{shown(row.with)}</td>
                <td class="number">{shown(row.without)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  );
}

function pace(secondsPerDay: number): string {
  if (secondsPerDay <= 0) return "as fast as it goes";
  if (secondsPerDay === 1) return "a day a second";
  return secondsPerDay < 1 ? `${count(1 / secondsPerDay)} days a second` : `a day in ${count(secondsPerDay)} s`;
}

function shown(value: string | number | null): string {
  if (typeof value === "string") return value;
  return value === null ? "-" : count(value, Number.isInteger(value) ? 0 : 1);
}
