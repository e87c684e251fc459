/** Disks that were read where no cluster is known: the same facts, without a map. */
import type { Outlook, Status } from "../api/contract.ts";
import { life, percent, plural } from "../format.ts";
import { deviceLink } from "../links.ts";
import { Shape } from "../shape.tsx";
import { status } from "../state.ts";
import { ruleOf } from "../source.ts";

const ORDER: readonly Status[] = ["bad", "warning", "unknown", "good"];
const MOST = 500;

export function Devices({ outlooks }: { outlooks: readonly Outlook[] }) {
  const rows = [...outlooks].sort((a, b) => ORDER.indexOf(a.status) - ORDER.indexOf(b.status) || (b.p_fail_30d ?? 0) - (a.p_fail_30d ?? 0));
  return (
    <div class="card table-frame">
      <table class="table">
        <caption>
          {plural(rows.length, "disk")} read, none of them placed in a cluster: nothing can be drained.
          {status.value?.halt_passes ? " The cluster has not answered yet." : " Set [ceph] in the settings."}
        </caption>
        <thead>
          <tr>
            <th scope="col">Device</th>
            <th scope="col">Status</th>
            <th scope="col" class="number">
              Within 30 days
            </th>
            <th scope="col" class="number">
              Likely life
            </th>
            <th scope="col">Why</th>
          </tr>
        </thead>
        <tbody>
          {rows.slice(0, MOST).map((one) => (
            <tr key={one.device}>
              <th scope="row">
                <a href={deviceLink(one.device)}>{one.device}</a>
              </th>
              <td class="nowrap">
                <Shape of={one.status} /> {one.status}
              </td>
              <td class="number">{one.p_fail_30d === null && ruleOf(one.source) !== null ? "rule" : percent(one.p_fail_30d)}</td>
              <td class="number nowrap">{one.life && one.p_fail_30d !== null ? life(one.life.p10, one.life.p90) : "not reported"}</td>
              <td class="muted">{one.reasons[0]?.sentence ?? ""}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
