/** One disk: what is forecast and what to do, in a sentence; then its history, why, how sure, and what was done. */
import type { Attributes, Device as DeviceFacts, History, LifeChange, Osd, Outlook } from "../api/contract.ts";
import { condition, endWord, hasEnded, whenDown, type Condition } from "../condition.ts";
import { evenOdds, life, percent, seconds, sentence, span, within30 } from "../format.ts";
import { Acting, At, Loading, Refused, WhyOff } from "../pieces.tsx";
import { useResource } from "../resource.ts";
import { deviceLink, drainLink, hostLink } from "../links.ts";
import { route } from "../route.ts";
import { proposeDrain } from "../act.ts";
import { Shape } from "../shape.tsx";
import { drainById, now, osds } from "../state.ts";
import { AttributeTable } from "./attributes.tsx";
import { HistoryCard } from "./history.tsx";
import { Home } from "./home.tsx";
import { Identity } from "./identity.tsx";
import { HowSure, Why } from "./why.tsx";
import { Done, Next } from "./done.tsx";
import { SelfTestCard } from "./selftestcard.tsx";
import { ruleOf } from "../source.ts";

export function Device({ id }: { id: string }) {
  const days = Number(route.value.query.get("days") ?? "60") || 60;
  const path = `devices/${encodeURIComponent(id)}`;
  const { data, refused, missing } = useResource<DeviceFacts>(path);
  const history = useResource<History>(data ? `${path}/history?days=${days}` : null);
  const attributes = useResource<Attributes>(data ? `${path}/attributes?days=${days}` : null, data?.taken_at ?? "");
  const under = (osds.value ?? []).filter((osd) => osd.device === id);
  const osd = under[0] ?? null;

  if (missing) {
    return (
      <section class="view">
        <h1>No disk {id} is known</h1>
        <p>
          {refused} All disks are on the <a href="/fleet">fleet</a>.
        </p>
      </section>
    );
  }
  const outlook = data?.outlook ?? null;
  const ended = data !== null && hasEnded(data.state) ? data.life : null;
  const shown: Condition = osd ? condition(osd, now.value) : (data?.status ?? "unknown");
  return (
    <section class="view device">
      <p class="crumbs">
        <a href="/fleet">Fleet</a> / {osd && <a href={hostLink(osd.host)}>{osd.host}</a>} {osd && "/"} {osd ? `osd.${osd.osd}` : id}
      </p>
      <div class="device-head">
        <div>
          <h1>
            <Shape of={shown} size={24} /> <Verdict name={osd ? `osd.${osd.osd}` : id} outlook={outlook} osd={osd} loaded={data !== null} shown={shown} ended={ended} />
          </h1>
          <p class="lead">
            <Lead outlook={outlook} facts={data} ended={ended} down={shown === "down" ? osd : null} />
          </p>
        </div>
        {!ended && <Buttons osd={osd} status={data?.status ?? null} />}
      </div>
      {refused && !missing && <Refused sentence={refused} />}
      {data === null ? (
        <Loading lines={6} />
      ) : (
        <>
          <Identity facts={data} osds={under} />
          <Home id={id} />
          <div class="columns">
            <div class="stack">
              <HistoryCard history={history.data} refused={history.refused} facts={data} osd={under.length === 1 ? osd : null} days={days} now={now.value} />
              {!ended && <SelfTestCard device={data.device} />}
              <Done facts={data} />
            </div>
            <div class="stack first">
              {!ended && <Why facts={data} outlook={outlook} />}
              {!ended && <HowSure facts={data} outlook={outlook} />}
              <Next facts={data} outlook={outlook} osd={osd} drain={osd?.drain ? (drainById.value.get(osd.drain.id) ?? null) : null} />
            </div>
          </div>
          <AttributeTable found={attributes} />
        </>
      )}
    </section>
  );
}

const SOURCES = { cluster: "the cluster", collector: "the collector", person: "a person" } as const;

interface VerdictProps {
  name: string;
  outlook: Outlook | null;
  osd: Osd | null;
  loaded: boolean;
  shown: Condition;
  ended: LifeChange | null;
}

function Verdict({ name, outlook, osd, loaded, shown, ended }: VerdictProps) {
  if (ended) return <>{name}: {endWord(ended)}</>;
  const tone = outlook ? `text-${outlook.status}` : "";
  if (osd && !osd.up && shown === "down") return <>{name} is down</>;
  if (!loaded) return <>{name}</>;
  if (!outlook) return <>{name}: no outlook yet</>;
  if (outlook.p_fail_30d === null) {
    return (
      <>
        {name}: <span class={tone}>{outlook.status}</span>, {ruleOf(outlook.source) !== null ? `by rule ${ruleOf(outlook.source)}` : "no probability"}
      </>
    );
  }
  const before = osd?.p_fail_30d_week_ago ?? null;
  return (
    <>
      {name}: <span class={tone}>{within30(outlook.p_fail_30d)}</span>
      {before === null ? "" : `, was ${percent(before)} a week ago`}
    </>
  );
}

function Lead({ outlook, facts, ended, down }: { outlook: Outlook | null; facts: DeviceFacts | null; ended: LifeChange | null; down: Osd | null }) {
  if (ended) {
    return (
      <>
        <b>{ended.sentence}</b> Known since <At time={ended.at} /> UTC, from {SOURCES[ended.source]}.{" "}
        {ended.successor && (
          <>
            <a href={deviceLink(ended.successor)}>{ended.successor}</a> is in its slot now.
          </>
        )}
      </>
    );
  }
  const parts: string[] = [];
  const todo = down ? whenDown(down) : (outlook?.prescription ?? "");
  if (!down && outlook?.p_fail_30d != null && outlook.life) {
    const odds = evenOdds(outlook.life.p50);
    parts.push(`Likely ${life(outlook.life.p10, outlook.life.p90)}${odds ? `, ${odds}` : ""}.`);
  }
  const old = seconds(facts?.taken_at ?? null, now.value);
  return (
    <>
      {parts.join(" ")} {todo && <b>{sentence(todo)}</b>}{" "}
      {facts?.unreadable ? (
        <>
          No reading since <At time={facts.unreadable.since} /> UTC: {sentence(facts.unreadable.reason)}
        </>
      ) : facts?.taken_at ? (
        <>
          Reading of <At time={facts.taken_at} /> UTC, {span(old)} old.
        </>
      ) : null}
    </>
  );
}

function Buttons({ osd, status }: { osd: Osd | null; status: string | null }) {
  const blocking = osd?.blocking_drain ?? null;
  if (blocking !== null) {
    return (
      <div class="buttons">
        <a class="button primary" href={drainLink(blocking)}>
          {osd?.drain?.id === blocking && osd.drain.state === "proposed" ? "Review drain" : "See the drain"}
        </a>
      </div>
    );
  }
  if (!osd || status === null) return null;
  return (
    <div class="buttons">
      <WhyOff />
      <Acting off={osd.up || osd.in ? null : "it is down and out: nothing is left to drain"} onPress={() => void proposeDrain(osd.osd, "asked for on the page")}>
        Propose a drain
      </Acting>
    </div>
  );
}
