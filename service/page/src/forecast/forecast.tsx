/** How good the forecast is: whose it is and since when, whether it was right, what it expects, what it cannot see. */
import { Fragment } from "preact";
import type { ForecastHealth, Osd, StatusThreshold } from "../api/contract.ts";
import { count, expected, percent, plural, statement } from "../format.ts";
import { At, Loading, Refused } from "../pieces.tsx";
import { useResource } from "../resource.ts";
import { now, osds, status } from "../state.ts";
import { Drift } from "./drift.tsx";
import { Calibrated, WasItRight } from "./right.tsx";
import { Preview } from "./preview.tsx";
import { Rivals } from "./rivals.tsx";
import { ByModel, Spread } from "./spread.tsx";
import { verdict } from "./verdict.ts";
import { ruleOf } from "../source.ts";

export function Forecast() {
  const health = useResource<ForecastHealth>("forecast");
  const known = status.value;
  const list = osds.value;
  if (!known || !list) return <Loading lines={6} />;
  const { expected_30d: all, expected_silent_30d: silent } = known.forecast;
  return (
    <section class="view forecast" aria-labelledby="forecast-head">
      <div class="headline">
        <h1 id="forecast-head">{all === null ? "What to expect is not reported" : `Expect ${expected(all)} failures in 30 days`}</h1>
        <p class="lead">{silent === null ? "" : `${expected(silent)} of them without any sign beforehand.`}</p>
      </div>
      {health.refused && <Refused sentence={health.refused} />}
      {health.data === null ? (
        !health.refused && <Loading lines={6} />
      ) : (
        <>
          <Reign health={health.data} />
          <div class="columns even">
            <WasItRight health={health.data} />
            <Calibrated health={health.data} />
          </div>
          <Drift health={health.data} />
          <Preview />
          <Rivals health={health.data} />
        </>
      )}
      <Expectations list={list} fresh={known.readings} />
    </section>
  );
}

/** Which bundle, since when, in place of which, and what is wrong with it or its upkeep. */
function Reign({ health }: { health: ForecastHealth }) {
  const { bundle, since, previous_bundle: before, quiet_until: quiet, checked_at: looked } = health;
  const troubles = Object.entries(health.errors);
  const still = quiet !== null && now.value !== null && quiet > now.value;
  return (
    <section class="card reign" aria-labelledby="reign-head">
      <h2 id="reign-head">
        {bundle === null ? (
          "No bundle is loaded: nothing is forecast"
        ) : (
          <>
            Bundle {bundle.name} <span class="muted">{bundle.fingerprint}</span>
          </>
        )}
      </h2>
      <p>
        {since === null ? "Since when it scores here is not reported." : <>It scores here since <At time={since} /> UTC{before ? ` in place of ${before}` : ""}.</>}{" "}
        {still && (
          <b>
            Nothing is proposed by itself until <At time={quiet} /> UTC: the bundle is new.{" "}
          </b>
        )}
        {looked === null ? "Nobody has looked yet whether it is still right." : <>Looked at <At time={looked} /> UTC{health.concerns.length === 0 ? verdict(health.calibration) : "."}</>}
      </p>
      <Words thresholds={health.thresholds} />
      {(health.concerns.length > 0 || troubles.length > 0) && (
        <ul class="concerns">
          {health.concerns.map((one) => (
            <li key={one.cause}>
              <b>{statement(one.sentence)}</b> {statement(one.cure)} <span class="muted">Since <At time={one.since} />.</span>
            </li>
          ))}
          {troubles.map(([part, why]) => (
            <li key={part}>
              <b>The {part} has trouble:</b> {statement(why)}
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

/** From which chance on a disk is called a warning or bad, how often a healthy disk is, and by whose disks. */
function Words({ thresholds }: { thresholds: readonly StatusThreshold[] }) {
  if (thresholds.length === 0) return null;
  const months = Math.round(thresholds[0]?.disk_months ?? 0);
  return (
    <>
      <dl class="facts words">
        {thresholds.map((one) => (
          <Fragment key={one.status}>
            <dt>Called {one.status}</dt>
            <dd>
              from {percent(one.p_fail_30d)} within 30 days on; 1 in {count(Math.round(1 / one.false_alarm_rate))} healthy disks reaches that in a
              month
            </dd>
          </Fragment>
        ))}
      </dl>
      <p class="muted">
        {months === 0
          ? "These thresholds are those of the bundle's training: this fleet has not been scored for three weeks yet."
          : `These thresholds follow ${plural(months, "month")} of this fleet's own healthy disks in the last 90 days, and the bundle's training as long as these are few.`}{" "}
        A rule may call a disk ill below them, and a disk without a symptom is called by no lower chance than in the training.
      </p>
    </>
  );
}

function Expectations({ list, fresh }: { list: readonly Osd[]; fresh: { fresh: number; total: number } }) {
  const judged = list.filter((osd) => osd.p_fail_30d !== null);
  const ruled = list.filter((osd) => osd.p_fail_30d === null && ruleOf(osd.source) !== null).length;
  return (
    <>
      <div class="columns even">
        <section class="card">
          <h2>Limits of the forecast</h2>
          <p>
            About 4 in 10 failures give no sign first: on real drives no counter moves before they die. Redundancy is for those; this page is for
            the others.
          </p>
          <dl class="facts">
            <dt>Judged by the model</dt>
            <dd>
              {count(judged.length)} of {plural(list.length, "disk")}
            </dd>
            <dt>Judged by a rule</dt>
            <dd>{count(ruled)}, with no probability</dd>
            <dt>Not judged</dt>
            <dd>{count(list.length - judged.length - ruled)}, shown as unknown</dd>
            <dt>Read in time</dt>
            <dd>
              {count(fresh.fresh)} of {count(fresh.total)}
            </dd>
          </dl>
        </section>
        <section class="card">
          <h2>How the probabilities spread</h2>
          <Spread judged={judged} />
        </section>
      </div>
      <section class="card">
        <h2>By model</h2>
        <ByModel osds={list} />
      </section>
    </>
  );
}
