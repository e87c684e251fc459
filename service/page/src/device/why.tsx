/** Why, numbered as on the charts; and how sure, as a survival curve. */
import type { Device, Outlook } from "../api/contract.ts";
import { Survival } from "../charts/survival.tsx";
import { byRule, percent, sentence, wearing } from "../format.ts";
import { At } from "../pieces.tsx";
import { bundleOf, ruleOf } from "../source.ts";

export function Why({ facts, outlook }: { facts: Device; outlook: Outlook | null }) {
  return (
    <section class="card why-card">
      <h2>Why</h2>
      {facts.unreadable && (
        <p>
          <b>
            No reading since <At time={facts.unreadable.since} />.
          </b>{" "}
          {sentence(facts.unreadable.reason)}{" "}
          {facts.unreadable.blames_host ? "The host is at fault: this says nothing against the disk." : "A failed probe is evidence, not a gap."}
        </p>
      )}
      {outlook === null || outlook.reasons.length === 0 ? (
        !facts.unreadable && <p class="muted">No reason is reported: this disk has not been judged.</p>
      ) : (
        <ol class="reasons">
          {outlook.reasons.map((reason, index) => {
            const [fact, rest] = splitSentence(reason.sentence);
            return (
              <li key={`${reason.code}${index}`}>
                <span class="numeral">{index + 1}</span>
                <span>
                  <b>{fact}</b> {rest}
                </span>
              </li>
            );
          })}
        </ol>
      )}
      {outlook?.clear_condition && <p class="clears">{sentence(outlook.clear_condition)}</p>}
      {outlook && (
        <p class="muted from">
          {ruleOf(outlook.source) !== null ? `Judged by rule ${ruleOf(outlook.source)}` : `Judged by bundle ${bundleOf(outlook.source)}`},{" "}
          <At time={outlook.as_of} />.
        </p>
      )}
    </section>
  );
}

/** The fact stands out, what such disks did stands beside it. */
function splitSentence(text: string): [string, string] {
  const end = /[.:] (?=[A-Z0-9])/.exec(text);
  return end ? [text.slice(0, end.index + 1), text.slice(end.index + 2)] : [sentence(text), ""];
}

export function HowSure({ facts, outlook }: { facts: Device; outlook: Outlook | null }) {
  const p = outlook?.p_fail_30d ?? null;
  const curve = outlook?.survival ?? null;
  return (
    <section class="card how-sure">
      <h2>How sure</h2>
      {outlook === null ? (
        <p class="muted">Unknown: there is no outlook.</p>
      ) : p === null ? (
        <p>{ruleOf(outlook.source) !== null ? byRule(outlook.rule_score) : "No probability is reported."}</p>
      ) : (
        <p class="muted">
          Of 100 disks that looked like this, {percent(p).replace(" %", "")} fail within 30 days (
          {percent(outlook.p_fail_7d)} within 7, {percent(outlook.p_fail_14d)} within 14).
          {p < 0.01 && " About 4 in 10 failures give no sign first."}
        </p>
      )}
      {outlook?.endurance && <p>{wearing(outlook.endurance)}</p>}
      {curve && curve.length > 1 && <Survival curve={curve} family={facts.family_survival} life={outlook?.life ?? null} tone={outlook?.status ?? "unknown"} />}
    </section>
  );
}
