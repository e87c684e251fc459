/** The panel is the confirmation: what happens if one approves beside what happens if one does nothing. */
import { useRef, useState } from "preact/hooks";
import { drainVerb } from "../act.ts";
import type { DrainWhole, Osd, Plan } from "../api/contract.ts";
import { about, evenOdds, life, moment, percent, plural, sentence, share, statement, tib } from "../format.ts";
import { empties } from "../condition.ts";
import { Acting, WhyOff } from "../pieces.tsx";
import { Shape } from "../shape.tsx";
import { actingOff, now, osdByNumber, status } from "../state.ts";
import { CALLED, targetOf } from "./naming.ts";
import { Flow } from "./flow.tsx";
import { Guards } from "./guards.tsx";
import { Insist, Insisting } from "./insist.tsx";

interface Fact {
  name: string;
  approve: string;
  nothing: string;
}

export function Approve({ drain, Title }: { drain: DrainWhole; Title: "h1" | "h2" }) {
  const [moved, setMoved] = useState<{ sentence: string; changes: Change[] } | null>(null);
  const opened = useRef<Plan | null>(null);
  opened.current ??= drain.plan;
  const target = targetOf(drain);
  const osd = osdByNumber.value.get(drain.osds[0] ?? -1) ?? null;
  const { plan } = drain;
  const refusing = drain.guards.filter((guard) => !guard.ok && !guard.overruled);
  // What ends by itself in time, an approved drain waits for.
  const standing = refusing.filter((guard) => guard.transient !== true).map((guard) => guard.sentence);
  const refusals = [...new Set([...(plan?.refusals ?? []), ...standing])];
  const waits = refusing.filter((guard) => guard.transient === true).map((guard) => guard.sentence);
  const anew = opened.current ? difference(opened.current, plan) : [];
  const off = !plan ? "there is no plan yet" : (refusals[0] ?? (status.value?.halted ? "all drains are halted" : null));

  const approve = async (): Promise<void> => {
    const answer = await drainVerb(drain.id, "approve", `Approved: the ${CALLED[drain.intent].noun} of ${target} goes on as its guards allow.`, drain.etag);
    const now = answer.moved;
    setMoved(now && { sentence: now.sentence, changes: plan && now.drain ? difference(plan, now.drain.plan) : [] });
  };

  return (
    <article class="card approve" aria-label={`Drain of ${target}, waiting for approval`}>
      <div class="approve-facts">
        <header class="panel-head">
          <Title>
            <Shape of={osd?.status ?? "unknown"} size={16} /> {asks(drain, target)}
          </Title>
          <p class="muted">
            {drain.id}, proposed {moment(drain.created_at, now.value)} UTC by {drain.requested_by}. {plan ? sentence(`${capital(plan.mechanic)}: ${plan.reason}`) : ""}
          </p>
        </header>
        <Compared facts={factsOf(drain, osd)} />
      </div>
      <div class="approve-side">
        {empties(drain) && (
          <>
            <h3>Where the data goes</h3>
            {plan ? <Flow from={target} plan={plan} /> : <p class="muted">No plan is computed yet.</p>}
          </>
        )}
        <Guards guards={drain.guards} />
        <Insisting drain={drain} />
        <Insist drain={drain} />
      </div>
      <footer class="acting-bar">
        {refusals.length > 0 && (
          <ul class="refusals">
            {refusals.map((refusal) => (
              <li key={refusal}>{statement(refusal)}</li>
            ))}
          </ul>
        )}
        {waits.length > 0 && <p class="waits">Once approved it waits: {waits.map(statement).join(" ")}</p>}
        {moved ? <Moved {...moved} /> : anew.length > 0 && <Moved sentence="The plan has changed since you opened this page." changes={anew} />}
        <div class="buttons left">
          <Acting kind="primary" off={actingOff.value ?? off} onPress={() => void approve()}>
            {does(drain, target)}
          </Acting>
          <Acting onPress={() => void drainVerb(drain.id, "reject", `Rejected: the ${CALLED[drain.intent].noun} of ${target} will not start.`)}>Reject</Acting>
          <span class="muted">Nothing moves before. {empties(drain) && "It stays up and in until its copies are verified elsewhere; hand-over asks again."}</span>
          <WhyOff />
        </div>
      </footer>
    </article>
  );
}

function Compared({ facts }: { facts: readonly Fact[] }) {
  return (
    <table class="compared">
      <thead>
        <tr>
          <th scope="col">
            <span class="unseen">What</span>
          </th>
          <th scope="col">If you approve</th>
          <th scope="col" class="muted">
            If you do nothing
          </th>
        </tr>
      </thead>
      <tbody>
        {facts.map((fact) => (
          <tr key={fact.name}>
            <th scope="row">{fact.name}</th>
            <td data-when="If you approve">{fact.approve}</td>
            <td data-when="If you do nothing" class="muted">
              {fact.nothing}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** Only what the plan, the outlook and the policy of pacing say; what they do not is "not reported". */
function factsOf(drain: DrainWhole, osd: Osd | null): Fact[] {
  if (!empties(drain)) return besidesOf(drain);
  const { plan } = drain;
  const size = tib(plan?.bytes);
  const p = osd?.p_fail_30d ?? null;
  const odds = evenOdds(osd?.life_p50_days);
  const lives = p === null ? "when it dies" : `likely ${life(osd?.life_p10_days ?? null, osd?.life_p90_days ?? null)}${odds ? `, ${odds}` : ""}, at an hour nobody chose`;
  const fullest = plan?.fullest_osd == null ? "" : `fullest, osd.${plan.fullest_osd}: ${share(plan.fullest_after, 1)} after`;
  const whole = plan?.cluster_after == null ? "" : `cluster ${share(plan.cluster_after, 1)}`;
  return [
    { name: "Data", approve: plan ? `${size}, ${plural(plan.pgs, "PG")}` : "not reported", nothing: `${size} rebuilt at once, when it dies` },
    { name: "Time", approve: `${about(plan?.eta_hours)}${plan?.bottleneck ? `. Bottleneck: ${plan.bottleneck}` : ""}`, nothing: lives },
    { name: "Clients", approve: "where their latency is measured: holds above 1.2x of the hour before, backs off above 1.5x", nothing: "recovery at full speed beside the clients" },
    { name: "Redundancy", approve: "every copy is made before the old one goes", nothing: `${plan ? plural(plan.pgs, "PG") : "its PGs"} one copy short until rebuilt` },
    { name: "Space", approve: [fullest, whole].filter(Boolean).join("; ") || "not reported", nothing: "the same data, all at once" },
    {
      name: "Chance",
      approve: p === null ? "a rule asks for it; no probability" : `${percent(1 - p).replace(" %", "")} in 100: it lives on for 30 days all the same`,
      nothing: p === null ? "not reported" : `${percent(p).replace(" %", "")} in 100: it dies within 30 days`,
    },
    { name: "Undo", approve: "cancel at any step: weights and settings as before", nothing: "none" },
  ];
}

/** The same for what moves data to a disk, or none. */
function besidesOf({ intent, plan }: DrainWhole): Fact[] {
  const time = `${about(plan?.eta_hours)}${plan?.bottleneck ? `. Bottleneck: ${plan.bottleneck}` : ""}`;
  const clients = "where their latency is measured: holds above 1.2x of the hour before";
  if (intent === "quarantine") {
    return [
      { name: "Data", approve: "none moves", nothing: "none moves" },
      { name: "Time", approve: time, nothing: "as long as it is slow" },
      { name: "Clients", approve: "PGs that it leads are led by other copies; it still takes writes", nothing: "wait for it in every PG that it leads" },
      { name: "Undo", approve: "by itself once it answers like its peers again, or cancel: it leads as before", nothing: "none needed" },
    ];
  }
  const fullest = plan?.fullest_osd == null ? "" : `fullest, osd.${plan.fullest_osd}: ${share(plan.fullest_after, 1)} after`;
  return [
    { name: "Data", approve: plan ? `${tib(plan.bytes)}, ${plural(plan.pgs, "PG")} come to it` : "not reported", nothing: "none: it stays empty" },
    { name: "Time", approve: time, nothing: "until it is let in" },
    { name: "Clients", approve: clients, nothing: "nothing changes" },
    { name: "Space", approve: fullest || "not reported", nothing: "its room stays unused" },
    { name: "Undo", approve: "cancel at any step: what came goes back", nothing: "none needed" },
  ];
}

function asks(drain: DrainWhole, target: string): string {
  if (drain.intent === "quarantine") return `Make ${target} the primary of no PG while it is slow?`;
  return `${capital(CALLED[drain.intent].noun)} ${target}?`;
}

/** The button says its effect. */
function does({ intent, plan }: DrainWhole, target: string): string {
  if (intent === "quarantine") return `Approve: ${target} becomes the primary of no PG`;
  return `Approve: move ${plan ? tib(plan.bytes) : "its data"} ${intent === "fill" ? "onto" : "off"} ${target}`;
}

interface Change {
  name: string;
  before: string;
  after: string;
}

function difference(before: Plan, after: Plan | null): Change[] {
  if (!after) return [{ name: "Plan", before: "as shown", after: "none can be made now" }];
  const rows: Change[] = [
    { name: "Data", before: tib(before.bytes), after: tib(after.bytes) },
    { name: "PGs", before: String(before.pgs), after: String(after.pgs) },
    { name: "Time", before: about(before.eta_hours), after: about(after.eta_hours) },
    { name: "Fullest after", before: share(before.fullest_after, 1), after: share(after.fullest_after, 1) },
    { name: "Cluster after", before: share(before.cluster_after, 1), after: share(after.cluster_after, 1) },
    { name: "Mechanic", before: before.mechanic, after: after.mechanic },
    { name: "Refusals", before: before.refusals.join(" ") || "none", after: after.refusals.join(" ") || "none" },
  ];
  return rows.filter((row) => row.before !== row.after);
}

function Moved({ sentence: said, changes }: { sentence: string; changes: readonly Change[] }) {
  return (
    <div class="moved" role="status">
      <p>
        <b>{statement(said)}</b>
      </p>
      {changes.length > 0 && (
        <ul>
          {changes.map((change) => (
            <li key={change.name}>
              {change.name}: {change.before} before, <b>{change.after}</b> now
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);
