/** All drains: those that wait for a person, those that run, those that ended. */
import type { Drain, DrainState } from "../api/contract.ts";
import { empties, isOpen, movedText } from "../condition.ts";
import { about, cut, sentence, span, statement, tib } from "../format.ts";
import { At, Loading } from "../pieces.tsx";
import { deviceLink, drainLink } from "../links.ts";
import { Shape } from "../shape.tsx";
import { drains, status } from "../state.ts";
import { DrainPanel } from "./drain.tsx";
import { STATE_SHAPE, targetOf, tellState } from "./naming.ts";

const WHOLE = 2;
const ENDED = 100;

const ORDER: readonly DrainState[] = [
  "failed", "proposed", "draining", "holding", "preparing", "approved", "paused", "cancelling",
  "verified", "drained", "handed_over", "cancelled",
];

export function Drains() {
  const all = drains.value;
  const open = (all ?? []).filter((drain) => isOpen(drain.state)).sort((a, b) => ORDER.indexOf(a.state) - ORDER.indexOf(b.state) || b.created_at.localeCompare(a.created_at));
  const whole = [...open.filter((drain) => drain.state === "proposed").slice(0, 1), ...open.filter((drain) => drain.state !== "proposed")].slice(0, WHOLE);
  const ended = (all ?? []).filter((drain) => !isOpen(drain.state)).sort((a, b) => b.updated_at.localeCompare(a.updated_at));
  const rest = open.filter((drain) => !whole.includes(drain));
  return (
    <section class="view drains" aria-labelledby="drains-head">
      <div class="headline">
        <h1 id="drains-head">{all === null ? "Drains" : headline(open)}</h1>
        <p class="lead">{lead()}</p>
      </div>
      {all === null && <Loading lines={5} />}
      {all?.length === 0 && (
        <div class="card empty">
          <p>No drain was ever asked for. One is proposed by itself when a disk is bad and further readings confirm it.</p>
        </div>
      )}
      {whole.map((drain) => (
        <DrainPanel id={drain.id} key={drain.id} journal={8} />
      ))}
      <Table title="Also open" drains={rest} />
      <Table title={ended.length > ENDED ? `Ended, the newest ${cut(ended.length, ENDED)}${ended.length}` : "Ended"} drains={ended.slice(0, ENDED)} over />
    </section>
  );
}

function headline(open: readonly Drain[]): string {
  const waits = open.filter((drain) => drain.state === "proposed" || drain.state === "failed").length;
  const hands = open.filter((drain) => drain.state === "verified" && empties(drain)).length;
  const runs = open.filter((drain) => drain.state !== "verified").length - waits;
  const parts = [
    waits ? `${waits} ${waits === 1 ? "drain waits" : "drains wait"} for you` : "",
    runs ? `${runs} ${runs === 1 ? "runs" : "run"}` : "",
    hands ? `${hands} ${hands === 1 ? "waits" : "wait"} for a swap` : "",
  ].filter(Boolean);
  if (parts.length === 0) return "No drain is open";
  const [first = "", ...others] = parts;
  const named = waits ? first : first.replace(/^(\d+) (\w+)/, (_, many: string, verb: string) => `${many} ${many === "1" ? "drain" : "drains"} ${verb}`);
  return [named, ...others].join(", ");
}

function lead(): string {
  const known = status.value;
  if (!known) return "";
  const modes = {
    observe: "Mode observe: nothing is proposed and nothing moves.",
    propose: "Mode propose: nothing moves until a person approves.",
    act: "Mode act: what every guard passes starts by itself.",
  };
  const acts = known.acting.place !== "here" ? ` ${known.acting.sentence}` : ` The controller is ${sentence(known.controller)}`;
  return modes[known.mode] + acts;
}

function Table({ title, drains: rows, over = false }: { title: string; drains: readonly Drain[]; over?: boolean }) {
  if (rows.length === 0) return null;
  return (
    <section class="card">
      <h2>{title}</h2>
      <div class="table-frame">
        <table class="table">
          <thead>
            <tr>
              <th scope="col">Disk</th>
              <th scope="col">State</th>
              <th scope="col" class="number">Data</th>
              <th scope="col" class="number">Moved</th>
              <th scope="col" class="number">{over ? "Took" : "Planned time"}</th>
              <th scope="col">Last change, UTC</th>
              <th scope="col">Said</th>
            </tr>
          </thead>
          <tbody>
            {rows.map((drain) => (
              <tr key={drain.id}>
                <th scope="row" class="nowrap">
                  <Shape of={STATE_SHAPE[drain.state]} /> <a href={drainLink(drain.id)}>{targetOf(drain)}</a>{" "}
                  {drain.device && (
                    <a class="muted wide" href={deviceLink(drain.device)}>
                      {drain.device}
                    </a>
                  )}
                </th>
                <td class="nowrap">{tellState(drain)}</td>
                <td class="number nowrap">{tib(drain.plan?.bytes ?? (drain.progress.planned_bytes || null))}</td>
                <td class="number">{movedText(drain.progress) || "not begun"}</td>
                <td class="number nowrap">{over ? took(drain) : about(drain.plan?.eta_hours)}</td>
                <td class="nowrap">
                  <At time={drain.updated_at} />
                </td>
                <td class="muted said">{statement(drain.end_reason || drain.held_by[0] || drain.reason)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

/** How long it went on, there and, where it was cancelled, back. */
const took = (drain: Drain): string => (drain.duration_hours === null ? "not begun" : span(drain.duration_hours * 3_600));
