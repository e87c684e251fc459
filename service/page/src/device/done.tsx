/** What was done about a disk, what happens next, and where a person says what became of it. */
import { useState } from "preact/hooks";
import { tellOutcome } from "../act.ts";
import type { Device, Drain, Osd, Outlook } from "../api/contract.ts";
import { empties, hasEnded, movedText, remaining, whenDown, whenVerified } from "../condition.ts";
import { FATES, type Fate } from "../fates.ts";
import { tellState } from "../drains/naming.ts";
import { about, sentence, tib } from "../format.ts";
import { Acting, At, Question, WhyOff } from "../pieces.tsx";
import { drainLink } from "../links.ts";
import { alerts, status } from "../state.ts";

interface Line {
  at: string;
  text: string;
  href?: string;
}

export function Done({ facts }: { facts: Device }) {
  const lines: Line[] = [
    ...facts.drains.map((drain) => ({ at: drain.created_at, text: `Drain ${drain.id} asked for; now ${drain.state.replaceAll("_", " ")}`, href: drainLink(drain.id) })),
    ...facts.life_changes.map((one) => ({ at: one.at, text: one.sentence })),
    ...facts.outcomes.map((one) => ({ at: one.at, text: `Outcome: ${one.fate}, says ${one.source}${one.note ? `: ${one.note}` : ""}` })),
    ...(alerts.value ?? []).filter((one) => one.device === facts.device).map((one) => ({ at: one.at, text: `Alert, ${one.status}: ${sentence(one.reason)} ${hasEnded(facts.state) ? "" : (one.confidence ?? "")}` })),
  ].sort((a, b) => b.at.localeCompare(a.at));
  return (
    <section class="card">
      <div class="card-head">
        <h2>What was done</h2>
        {lines.length > 0 && <span class="muted small">times are UTC</span>}
      </div>
      {lines.length === 0 ? (
        <p class="muted">Nothing yet: no alert, no drain, no outcome.</p>
      ) : (
        <ul class="log">
          {lines.slice(0, 12).map((line) => (
            <li key={line.at + line.text}>
              <At time={line.at} /> <span>{line.href ? <a href={line.href}>{line.text}</a> : line.text}</span>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

export function Next({ facts, outlook, osd, drain }: { facts: Device; outlook: Outlook | null; osd: Osd | null; drain: Drain | null }) {
  const [fate, setFate] = useState<Fate | null>(null);
  return (
    <section class="card">
      <h2>What happens next</h2>
      <p>{hasEnded(facts.state) ? `Nothing. ${facts.life.sentence}` : nextSentence(outlook, osd, drain)}</p>
      {drain && (
        <p>
          <a href={drainLink(drain.id)}>{drain.intent === "replace" || drain.intent === "remove" ? "Drain" : "See"} {drain.id}</a>
        </p>
      )}
      <h2>Outcome</h2>
      <p class="muted">
        The forecast learns from the cluster which disks failed. An outcome that you record here counts more. A drained disk counts as unverified, never as a success.
      </p>
      <div class="buttons left">
        {FATES.map((one) => (
          <Acting key={one.fate} onPress={() => setFate(one)}>
            {one.word}
          </Acting>
        ))}
        <WhyOff />
      </div>
      {fate && (
        <Question title={`${fate.word}?`} yes={`Note: ${fate.fate}`} onYes={() => void tellOutcome(facts.device, fate.fate, "")} onClose={() => setFate(null)}>
          <p>
            {fate.says} {facts.device} is noted as <b>{fate.fate}</b>; training and the forecast's score keeping read it. Nothing moves by this.
          </p>
        </Question>
      )}
    </section>
  );
}

function nextSentence(outlook: Outlook | null, osd: Osd | null, drain: Drain | null): string {
  const known = osd?.drain;
  const halted = status.value?.halted ? " All drains are halted now." : "";
  if (known && !empties(known)) {
    const what = known.intent === "quarantine" ? "The OSD is slow, so other OSDs are to be the primaries of its PGs until it answers like its peers again; no data moves" : "A new disk is filled a few PGs at a time";
    return `${what}. ${sentence(`${tellState(known)}${remaining(drain)}`)}${halted}`;
  }
  switch (known?.state) {
    case "proposed":
      return `A drain waits for approval${drain?.plan ? `: ${tib(drain.plan.bytes)} in ${about(drain.plan.eta_hours)}` : ""}. Nothing moves before.${halted}`;
    case "approved":
    case "preparing":
      return `The drain is approved and begins when its guards pass.${halted}`;
    case "draining":
      return `Data is moving off, ${movedText(known)} done${remaining(drain)}.${halted}`;
    case "holding":
      return `The drain holds: ${sentence(known.held_by[0] ?? "a guard refuses")} It goes on by itself.${halted}`;
    case "paused":
      return "The drain is paused by a person and goes on when a person resumes it.";
    case "drained":
      return "No data is left on it. Its copies are being counted elsewhere.";
    case "verified":
      return `Drained and verified. ${whenVerified(known)}`;
    case "failed":
      return "The drain stopped and needs a person.";
    default:
      break;
  }
  if (osd && !osd.up) return `The OSD is down. ${whenDown(osd)}`;
  if (outlook?.status === "bad") return status.value?.mode === "observe" ? "In mode observe nothing is proposed." : "A drain is proposed once further readings confirm it.";
  if (outlook?.status === "warning") return `${outlook.prescription ? sentence(outlook.prescription) : "It is watched."} A warning proposes no drain by itself.`;
  if (outlook === null || outlook.status === "unknown") return "An unknown disk is never drained. Check that it can be read.";
  return "Nothing: it is read again at the next interval.";
}
