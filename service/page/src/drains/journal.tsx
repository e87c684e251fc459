/** A drain's journal: what was seen, what was decided, what the cluster answered; equal holds folded, an anchor a line. */
import type { JournalLine } from "../api/contract.ts";
import { plural, seconds, span } from "../format.ts";
import { At, Loading } from "../pieces.tsx";
import { useResource } from "../resource.ts";
import { drainLink } from "../links.ts";
import { fold, type Folded } from "./fold.ts";

interface Props {
  id: string;
  /** How many lines; null for all. */
  most: number | null;
  /** A link to the whole journal. */
  all?: boolean;
  boxed?: boolean;
}

/** What was decided and answered, in one line, with the epoch and who asked when it was a person. */
function told(line: Folded): string {
  const folded = line.looks > 1 ? ` (${span(seconds(line.at, line.until))}, ${plural(line.looks, "look")})` : "";
  const parts = [
    line.decision.replace(/\.$/, "") + folded,
    line.result,
    line.epoch === null ? "" : `epoch ${line.epoch}`,
    line.caller === null || line.caller === "controller" ? "" : `by ${line.caller}`,
  ];
  return parts.filter(Boolean).join(", ");
}

export function Journal({ id, most, all = false, boxed = false }: Props) {
  const { data } = useResource<{ items: JournalLine[] }>(`drains/${encodeURIComponent(id)}/journal`);
  const folded = data ? fold(data.items) : null;
  const shown = folded?.slice(0, most ?? folded.length) ?? [];
  return (
    <section class={`journal ${boxed ? "card" : ""}`} aria-label="Journal">
      <header class="card-head">
        <h2>Journal</h2>
        {all && data && <a href={drainLink(id)}>all {data.items.length}</a>}
      </header>
      {!data ? (
        <Loading lines={4} />
      ) : shown.length === 0 ? (
        <p class="muted">Nothing was decided yet.</p>
      ) : (
        <ol>
          {shown.map((line) => (
            <li key={line.until + line.decision} id={`line-${Date.parse(line.until)}`}>
              <a class="quiet" href={`#line-${Date.parse(line.until)}`}>
                <At time={line.until} />
              </a>
              <div>
                <span>{line.observed}</span>
                <span class="muted">{told(line)}</span>
              </div>
            </li>
          ))}
        </ol>
      )}
      <p class="muted small">seen, then decided, then what the cluster answered; times are UTC</p>
    </section>
  );
}
