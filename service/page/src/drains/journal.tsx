/** A drain's journal: what was seen, what was decided, what the cluster answered; equal holds folded, an anchor a line. */
import type { JournalLine } from "../api/contract.ts";
import { plural, seconds, span } from "../format.ts";
import { At, Loading } from "../pieces.tsx";
import { useResource } from "../resource.ts";
import { drainLink } from "../route.ts";

export interface Folded extends JournalLine {
  looks: number;
  until: string;
}

/** The cluster's answer may come as a line of its own: it belongs to the decision before it. */
function answered(lines: readonly JournalLine[]): JournalLine[] {
  const whole: JournalLine[] = [];
  for (const line of [...lines].sort((a, b) => a.at.localeCompare(b.at))) {
    const before = whole.at(-1);
    if (before && !line.seen && !line.decided && !before.answered) {
      whole[whole.length - 1] = { ...before, answered: line.answered, epoch: line.epoch ?? before.epoch };
    } else {
      whole.push(line);
    }
  }
  return whole;
}

/** Newest first; runs of the same decision and answer become one line with how long and how many looks. */
export function fold(lines: readonly JournalLine[]): Folded[] {
  const sorted = answered(lines).reverse();
  const folded: Folded[] = [];
  for (const line of sorted) {
    const over = folded.at(-1);
    if (over && over.decided === line.decided && over.answered === line.answered && /^(hold|wait)/i.test(line.decided)) {
      over.looks += 1;
      over.at = line.at;
    } else {
      folded.push({ ...line, looks: 1, until: line.at });
    }
  }
  return folded;
}

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
    line.decided.replace(/\.$/, "") + folded,
    line.answered,
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
            <li key={line.until + line.decided} id={`line-${Date.parse(line.until)}`}>
              <a class="quiet" href={`#line-${Date.parse(line.until)}`}>
                <At time={line.until} />
              </a>
              <div>
                <span>{line.seen}</span>
                <span class="muted">{told(line)}</span>
              </div>
            </li>
          ))}
        </ol>
      )}
      <p class="muted small">seen, then decided, then what the cluster answered</p>
    </section>
  );
}
