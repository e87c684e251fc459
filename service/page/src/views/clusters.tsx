/** This cluster beside the others whose services it asks, and the drive models of them all. */
import type { ComponentChildren } from "preact";
import type { Clusters as Answer, Overview, OtherCluster, SharedModel } from "../api/contract.ts";
import { plural } from "../format.ts";
import { At, Loading, Refused } from "../pieces.tsx";
import { useResource } from "../resource.ts";
import { Shape } from "../shape.tsx";

const MOST_MODELS = 200;

export function Clusters() {
  const { data, refused } = useResource<Answer>("clusters");
  return (
    <section class="view">
      <h1>Clusters</h1>
      {refused && <Refused sentence={refused} />}
      {data === null ? !refused && <Loading lines={4} /> : <Tables answer={data} />}
    </section>
  );
}

function Tables({ answer }: { answer: Answer }) {
  if (answer.others.length === 0) {
    return (
      <div class="card empty">
        <p>
          No other cluster is configured. Name the services of other clusters under <code>services</code> of <code>[clusters]</code> in
          the settings.
        </p>
      </div>
    );
  }
  return (
    <>
      <div class="card table-frame" tabIndex={0}>
        <table class="table">
          <caption>{plural(answer.others.length + 1, "cluster")}, each with a service of its own. Drains are approved there.</caption>
          <Heads heads={["Cluster", "Health", ["OSDs"], ["Disks read"], ["Bad"], ["Warning"], ["Expected failures, 30 days"], ["Drains under way"], "Answered"]} />
          <tbody>
            <Row overview={answer.own} name={<a href="/fleet">{answer.own.cluster}</a>} answered={<span class="muted">this service</span>} />
            {answer.others.map((other) => (
              <Other other={other} key={other.url} />
            ))}
          </tbody>
        </table>
      </div>
      <h2>Drive models in these clusters</h2>
      <Models models={answer.models} />
    </>
  );
}

/** The head of a table: a name alone is of a column of text, and a name in brackets of one of numbers. */
function Heads({ heads }: { heads: readonly (string | readonly [string])[] }) {
  return (
    <thead>
      <tr>
        {heads.map((head) => (
          <th scope="col" class={typeof head === "string" ? undefined : "number"} key={String(head)}>
            {head}
          </th>
        ))}
      </tr>
    </thead>
  );
}

function Other({ other }: { other: OtherCluster }) {
  const { overview, refused } = other;
  const link = <a href={other.url}>{overview?.cluster ?? other.url}</a>;
  const answered = (
    <>
      {other.answered_at === null ? (refused ? "never" : "not asked yet") : <At time={other.answered_at} />}
      {refused && <span class="muted"> {refused}</span>}
    </>
  );
  if (overview !== null) return <Row overview={overview} name={link} answered={answered} />;
  return (
    <tr>
      <th scope="row">{link}</th>
      <td colSpan={7} class="muted">
        not reported
      </td>
      <td>{answered}</td>
    </tr>
  );
}

function Row({ overview, name, answered }: { overview: Overview; name: ComponentChildren; answered: ComponentChildren }) {
  return (
    <tr>
      <th scope="row">{name}</th>
      <td class="nowrap">
        {overview.health ?? <span class="muted">not reported</span>}
        {overview.halted && <b> halted</b>}
      </td>
      <td class="number">{overview.osds}</td>
      <td class="number nowrap">
        {overview.fresh} of {overview.disks}
      </td>
      <td class="number nowrap">
        {overview.bad > 0 && <Shape of="bad" />} {overview.bad}
      </td>
      <td class="number nowrap">
        {overview.warning > 0 && <Shape of="warning" />} {overview.warning}
      </td>
      <td class="number">{overview.expected_30d === null ? "not reported" : overview.expected_30d.toFixed(1)}</td>
      <td class="number">{overview.drains}</td>
      <td>{answered}</td>
    </tr>
  );
}

function Models({ models }: { models: readonly SharedModel[] }) {
  return (
    <div class="card table-frame" tabIndex={0}>
      <table class="table">
        <caption>
          Models with most newly bad disks first{models.length > MOST_MODELS ? `, ${MOST_MODELS} of ${models.length}` : ""}. A cluster
          whose service has not answered for a day is left out.
        </caption>
        <Heads heads={["Model", ["Disks"], ["Newly bad"], ["Bad"], ["Warning"], "In"]} />
        <tbody>
          {models.slice(0, MOST_MODELS).map((one) => (
            <tr key={one.model}>
              <th scope="row">{one.model}</th>
              <td class="number">{one.disks}</td>
              <td class="number">{one.turned_bad}</td>
              <td class="number">{one.bad}</td>
              <td class="number">{one.warning}</td>
              <td class="muted">{one.clusters.join(", ")}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
