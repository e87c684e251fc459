/** What stands now, at once or when there is time, and what was told of disks, on change only: what, why, how sure, what predrain does about it. */
import { cut, plural, sentence, statement } from "../format.ts";
import { At, DiskLink, Loading } from "../pieces.tsx";
import { hasEnded } from "../condition.ts";
import { Shape } from "../shape.tsx";
import { alerts } from "../state.ts";
import { Causes } from "./causes.tsx";
import { Receivers } from "./receivers.tsx";

const MOST = 200;

export function Alerts() {
  const all = alerts.value;
  return (
    <section class="view alerts" aria-labelledby="alerts-head">
      <div class="headline">
        <h1 id="alerts-head">Alerts</h1>
        <p class="lead">predrain sends one message for each cause, by each receiver that is set, such as mail or Slack. It sends another one when the cause grows or gets worse, and one when the cause is over.</p>
      </div>
      <h2>Present causes</h2>
      <Causes />
      <Receivers />
      <div class="headline">
        <h2>{all?.length ? `${cut(all.length, MOST)}${plural(all.length, "announcement")} of disks, newest first` : "Announcements of disks"}</h2>
        <p class="lead">Sent on change only: a severity that rose, a probability that doubled above 5 %, and a severity that three readings in a row confirm as lower. Times are UTC.</p>
      </div>
      {all === null ? (
        <Loading lines={5} />
      ) : all.length === 0 ? (
        <div class="card empty">
          <p>No alert was ever sent. One comes when a disk's outlook gets worse.</p>
        </div>
      ) : (
        <ul class="alert-list">
          {all.slice(0, MOST).map((alert) => (
            <li class="card" key={`${alert.at}${alert.device}${alert.osd}`}>
              <Shape of={alert.status} size={16} />
              <div>
                <p>
                  <b>
                    <DiskLink osd={alert.osd} device={alert.device} />
                  </b>{" "}
                  is <b class={`text-${alert.status}`}>{alert.status}</b> <At time={alert.at} />
                </p>
                <p>{sentence(alert.reason)}</p>
                <p class="muted">
                  {hasEnded(alert.state) ? "" : alert.confidence ? sentence(alert.confidence) : "How sure is not reported."} {alert.action ? statement(alert.action) : ""}
                </p>
              </div>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}
