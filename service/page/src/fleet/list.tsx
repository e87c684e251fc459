/** The list of what needs a person: a table on a desk, cards on a phone; below it, in one line, what is in hand. */
import { useEffect, useRef, useState } from "preact/hooks";
import { count } from "../format.ts";
import { lettersOn, onLetter } from "../keys.ts";
import { withQuery } from "../route.ts";
import { Shape } from "../shape.tsx";
import type { InHand, Need } from "./needs.ts";

const ROWS = 4;
const IN_HAND = 4;
/** A new fleet is in hand as a whole: thousands of lines would stop the page for a second at every change. */
const MOST_IN_HAND = 60;

/** Rows never move under pointer or focus: while held, the order stands and arrivals are counted. */
function useSteady(needs: readonly Need[]): { rows: Need[]; arrived: number; hold: (held: boolean) => void; release: () => void } {
  const [held, setHeld] = useState(false);
  const frozen = useRef<Need[]>([]);
  const current = new Map(needs.map((need) => [need.key, need]));
  if (held && frozen.current.length > 0) {
    const rows = frozen.current.map((need) => current.get(need.key) ?? need);
    const shown = new Set(rows.map((need) => need.key));
    const arrived = needs.filter((need) => !shown.has(need.key)).length;
    return { rows, arrived, hold: setHeld, release: () => ((frozen.current = [...needs]), setHeld(false)) };
  }
  frozen.current = [...needs];
  return { rows: [...needs], arrived: 0, hold: setHeld, release: () => setHeld(false) };
}

export function NeedsList({ needs, inHand }: { needs: Need[]; inHand: InHand[] }) {
  const [all, setAll] = useState(false);
  const steady = useSteady(needs);
  const release = useRef(steady.release);
  release.current = steady.release;
  useEffect(() => onLetter("r", () => release.current()), []);
  const rows = all ? steady.rows : steady.rows.slice(0, ROWS);
  const rest = steady.rows.length - rows.length;
  return (
    <section
      class="needs"
      aria-label="What needs you"
      onPointerEnter={(event) => event.pointerType === "mouse" && steady.hold(true)}
      onPointerLeave={() => steady.hold(false)}
      onFocusIn={() => steady.hold(true)}
      onFocusOut={() => steady.hold(false)}
    >
      {rows.length > 0 && (
        <table class="needs-table">
          <thead>
            <tr>
              <th scope="col">Disk</th>
              <th scope="col">Why</th>
              <th scope="col">How sure</th>
              <th scope="col">What happens next</th>
              <th scope="col" class="number">
                <span class="unseen">Look</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {rows.map((need) => (
              <Row need={need} key={need.key} />
            ))}
          </tbody>
        </table>
      )}
      <div class="in-hand">
        {rest > 0 && (
          <button type="button" class="button link" onClick={() => setAll(true)}>
            {count(rest)} more {rest === 1 ? "needs" : "need"} you
          </button>
        )}
        {all && steady.rows.length > ROWS && (
          <button type="button" class="button link" onClick={() => setAll(false)}>
            Show the first {ROWS}
          </button>
        )}
        {rest > 0 &&
          steady.rows.slice(ROWS, ROWS + 2).map((need) => (
            <a class="mini" href={need.href} key={need.key}>
              <Shape of={need.shape} /> {need.name}
            </a>
          ))}
        {steady.arrived > 0 && (
          <button type="button" class="button link" onClick={steady.release}>
            {steady.arrived} new{lettersOn.value ? ", press r" : ", show"}
          </button>
        )}
        <InHandList items={inHand} />
      </div>
    </section>
  );
}

function Row({ need }: { need: Need }) {
  return (
    <tr>
      <td>
        <div class="disk">
          <Shape of={need.shape} />
          <span>
            <a href={need.href}>
              <b>{need.name}</b>
            </a>{" "}
            <span class="where">{need.where}</span>
            <span class="device-id">{need.device}</span>
          </span>
        </div>
      </td>
      <td class="why" title={need.why}>
        <span class="clamp">{need.why}</span>
      </td>
      <td class="sure">
        <span class="first">
          <b class={`text-${need.shape}`}>{need.sure}</b>
          {need.before}
        </span>
        <span class="likely">{need.likely}</span>
      </td>
      <td class="next" title={need.next}>
        <span class="clamp">{need.next}</span>
      </td>
      <td class="go">
        <a class={`button ${need.primary ? "primary" : "plain"}`} href={need.buttonHref}>
          {need.button}
        </a>
      </td>
    </tr>
  );
}

function InHandList({ items }: { items: InHand[] }) {
  if (items.length === 0) return <span class="muted">Nothing else is in hand.</span>;
  return (
    <>
      <Hand title="Can wait" items={items.filter((item) => item.waits)} />
      <Hand title="In hand, nothing to do" items={items.filter((item) => !item.waits)} />
    </>
  );
}

function Hand({ title, items }: { title: string; items: InHand[] }) {
  const [open, setOpen] = useState(false);
  if (items.length === 0) return null;
  const shown = items.slice(0, open ? MOST_IN_HAND : IN_HAND);
  return (
    <div class="hand">
      <b>
        <span class="wide">{title}:</span>
        <span class="narrow">
          {count(items.length)} {title.charAt(0).toLowerCase() + title.slice(1)}
        </span>
      </b>
      <ul>
        {shown.map((item) => (
          <li key={item.key}>
            <Shape of={item.shape} /> <a href={item.href}>{item.name}</a> {item.text}
          </li>
        ))}
        {items.length > IN_HAND && (
          <li>
            <button type="button" class="button link" aria-expanded={open} onClick={() => setOpen(!open)}>
              {open ? "fewer" : `${count(items.length - IN_HAND)} more`}
            </button>
          </li>
        )}
        {open && items.length > MOST_IN_HAND && (
          <li>
            <a href={withQuery({ table: "1" })}>all {count(items.length)} in the table</a>
          </li>
        )}
      </ul>
    </div>
  );
}
