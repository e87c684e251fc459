/** What other costs of a failure would have given here, as a curve from little moved to little rebuilt. */
import { useEffect, useRef, useState } from "preact/hooks";
import { Problem, get } from "../api/client.ts";
import type { PolicyPreview, PreviewRow } from "../api/contract.ts";
import { linear } from "../charts/scale.ts";
import { count, plural, statement } from "../format.ts";
import { At, Refused } from "../pieces.tsx";
import { useWidth } from "../width.ts";
import { compareCosts, costWord } from "./preview_words.ts";

const DAYS = 90;
const ASK_AGAIN_MS = 2_000;
const TB = 1e12;

export function Preview() {
  const [wanted, setWanted] = useState(false);
  const [held, setHeld] = useState<PolicyPreview | null>(null);
  const [refused, setRefused] = useState<string | null>(null);
  const running = wanted && refused === null && (held === null || held.running);

  useEffect(() => {
    if (!running) return undefined;
    let left = false;
    const ask = () =>
      get<PolicyPreview>(`forecast/preview?days=${DAYS}`).then(
        (found) => void (left || setHeld(found)),
        (error: unknown) => void (left || setRefused(error instanceof Problem ? error.message : "The service does not answer; try again.")),
      );
    const timer = setInterval(() => void ask(), ASK_AGAIN_MS);
    void ask();
    return () => {
      left = true;
      clearInterval(timer);
    };
  }, [running]);

  const again = () => {
    setRefused(null);
    setHeld(null);
    setWanted(true);
  };
  return (
    <section class="card preview" aria-labelledby="preview-head">
      <h2 id="preview-head">Results at other costs of a failure</h2>
      <p class="muted">
        The drain engine is replayed on what was forecast here, at the cost that is set and at others. Nothing is changed. The cost is what a byte
        that is rebuilt after a death costs against a byte that is moved gently (<code>failure_cost</code>).
      </p>
      {refused !== null && <Refused sentence={statement(refused)} />}
      {held?.error != null && !held.running && <p class="muted">Unknown: {statement(held.error)}</p>}
      {running ? (
        <p role="status">Replaying the last {DAYS} days. This takes seconds, and on thousands of disks minutes.</p>
      ) : held !== null && held.rows.length > 0 ? (
        <Settings held={held} />
      ) : (
        <div class="buttons left">
          <button type="button" class="button" onClick={again}>
            Replay the last {DAYS} days
          </button>
        </div>
      )}
    </section>
  );
}

function Settings({ held }: { held: PolicyPreview }) {
  const here = held.rows.find((row) => row.current);
  const best = held.rows.reduce((least, row) => (row.cost_bytes < least.cost_bytes ? row : least));
  return (
    <>
      <p>
        {held.first} to {held.last}: {plural(held.disks ?? 0, "disk")}, of which {count(held.failures)} failed. {here && compareCosts(here, best, held.failures ?? 0)}
      </p>
      <Curve rows={held.rows} />
      <div class="table-frame" tabIndex={0}>
        <table class="table">
          <thead>
            <tr>
              <th scope="col">Cost of a failure</th>
              <th scope="col" class="number">Drains</th>
              <th scope="col" class="number">In time</th>
              <th scope="col" class="number">Needless</th>
              <th scope="col" class="number">Undecided</th>
              <th scope="col" class="number">TB moved</th>
              <th scope="col" class="number">TB moved for nothing</th>
              <th scope="col" class="number">TB rebuilt</th>
              <th scope="col" class="number">Hours of movement</th>
              <th scope="col" class="number">Cost</th>
            </tr>
          </thead>
          <tbody>
            {held.rows.map((row) => (
              <tr key={row.failure_cost}>
                <th scope="row">
                  {costWord(row)}
                  {row.current ? ", set now" : ""}
                </th>
                <td class="number">{count(row.drains)}</td>
                <td class="number">{count(row.in_time)}</td>
                <td class="number">{count(row.needless)}</td>
                <td class="number">{count(row.undecided)}</td>
                <td class="number">{count(row.moved_bytes / TB, 1)}</td>
                <td class="number">{count(row.needless_bytes / TB, 1)}</td>
                <td class="number">{count(row.rebuilt_bytes / TB, 1)}</td>
                <td class="number">{count(row.moving_hours)}</td>
                <td class="number">{count(row.cost_bytes / TB)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <p class="muted small">
        Cost: TB moved, and each TB rebuilt times {here ? costWord(here) : "the cost that is set"}. Undecided: the disk was drained or is still
        watched, so nobody knows whether it would have failed. Costs set for a pool, class or host are scaled alike.
        {held.made_at && (
          <>
            {" "}
            Made at <At time={held.made_at} /> UTC.
          </>
        )}
      </p>
    </>
  );
}

const HEIGHT = 220;
const LEFT = 52;
const RIGHT = 16;
const TOP = 20;
const BOTTOM = 40;

/** Each setting as a point: bytes moved gently against bytes rebuilt after a death. */
function Curve({ rows }: { rows: readonly PreviewRow[] }) {
  const frame = useRef<HTMLDivElement>(null);
  const width = useWidth(frame);
  const moved = Math.max(...rows.map((row) => row.moved_bytes)) / TB || 1;
  const rebuilt = Math.max(...rows.map((row) => row.rebuilt_bytes)) / TB || 1;
  const x = linear(0, moved, LEFT, Math.max(LEFT + 40, width - RIGHT));
  const y = linear(0, rebuilt, HEIGHT - BOTTOM, TOP);
  const said = rows
    .map((row) => `${row.current ? "set now, " : ""}cost ${costWord(row)}: ${count(row.moved_bytes / TB, 1)} TB moved, ${count(row.rebuilt_bytes / TB, 1)} TB rebuilt`)
    .join("; ");
  return (
    <div class="preview-curve" ref={frame}>
      {width > 0 && (
        <svg width={width} height={HEIGHT} role="img" aria-label={`${said}.`}>
          {[0, rebuilt / 2, rebuilt].map((level) => (
            <g key={level}>
              <line class={level === 0 ? "base" : "grid"} x1={LEFT} x2={width - RIGHT} y1={y(level)} y2={y(level)} />
              <text class="axis" x={LEFT - 6} y={y(level) + 4} text-anchor="end">
                {count(level, level < 10 ? 1 : 0)}
              </text>
            </g>
          ))}
          <text class="axis" x={LEFT} y={12}>TB rebuilt after a death</text>
          <text class="axis" x={x(0)} y={HEIGHT - BOTTOM + 18} text-anchor="middle">0</text>
          <text class="axis" x={width - RIGHT} y={HEIGHT - BOTTOM + 18} text-anchor="end">{count(moved, moved < 10 ? 1 : 0)}</text>
          <text class="axis" x={width - RIGHT} y={HEIGHT - 6} text-anchor="end">TB moved gently</text>
          <path class="line" d={rows.map((row, at) => `${at ? "L" : "M"}${x(row.moved_bytes / TB).toFixed(1)} ${y(row.rebuilt_bytes / TB).toFixed(1)}`).join("")} />
          {rows.map((row) => (
            <circle key={row.failure_cost} class={row.current ? "here" : "end"} cx={x(row.moved_bytes / TB)} cy={y(row.rebuilt_bytes / TB)} r={row.current ? 5 : 3.6} />
          ))}
          {rows
            .filter((row) => row.current)
            .map((row) => {
              const flip = x(row.moved_bytes / TB) > width - 130;
              return (
                <text key="here" class="axis strong" x={x(row.moved_bytes / TB) + (flip ? -9 : 9)} y={y(row.rebuilt_bytes / TB) - 8} text-anchor={flip ? "end" : "start"}>
                  you are here ({costWord(row)})
                </text>
              );
            })}
        </svg>
      )}
    </div>
  );
}
