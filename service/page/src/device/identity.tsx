/** The strip that says which disk this is, where it sits, and where else to look at it. */
import type { ComponentChildren } from "preact";
import { BASE } from "../api/client.ts";
import type { Device, Osd } from "../api/contract.ts";
import { fullness } from "../condition.ts";
import { age, count, share, tib } from "../format.ts";
import { hostLink, osdLink } from "../links.ts";

export function Identity({ facts, osds }: { facts: Device; osds: readonly Osd[] }) {
  const { identity } = facts;
  const host = osds[0]?.host ?? facts.host;
  const slot = osds[0]?.slot ?? null;
  const hours = facts.power_on_hours;
  const beside = keeps(facts.osd_devices);
  const capacity = facts.capacity_bytes ?? identity?.capacity_bytes ?? osds[0]?.size_bytes ?? null;
  return (
    <dl class="card identity">
      <Fact name="Device">{facts.device}</Fact>
      <Fact name="Where">
        {host ? <a href={hostLink(host)}>{host}</a> : "not reported"}
        {slot === null ? "" : `, slot ${slot}`}
      </Fact>
      <Fact name={osds.length > 1 ? "OSDs" : "OSD"}>
        {osds.length === 0
          ? named(facts.osds) || (facts.life.osds.length > 0 ? `none; it stood under ${named(facts.life.osds)}` : "none")
          : osds.slice(0, 3).map((osd) => (
              <span key={osd.osd}>
                <a href={osdLink(osd)}>osd.{osd.osd}</a>{" "}
                <span class="muted">
                  {osd.up ? "up" : "down"}, {osd.in ? "in" : "out"}, {fullness(osd) === null ? "fullness not reported" : `${share(fullness(osd))} full`}{" "}
                </span>
              </span>
            ))}
        {osds.length > 3 && <span class="muted"> and {osds.length - 3} more</span>}
      </Fact>
      {beside && <Fact name="Keeps for others">{beside}</Fact>}
      <Fact name="Kind">
        {kind(identity?.rotation_rpm ?? null, facts.protocol)}
        <span class="muted"> {capacity === null ? "size not reported" : tib(capacity)}</span>
      </Fact>
      <Fact name="Firmware">{identity?.firmware ?? "not reported"}</Fact>
      <Fact name="Powered on">{hours === null ? "not reported" : age(hours / 24)}</Fact>
      <Fact name="Drive's own verdict">{facts.passed === null ? "not reported" : facts.passed ? "passed, which says little" : "FAILED"}</Fact>
      <Fact name="Elsewhere">
        <a href={`${BASE}devices/${encodeURIComponent(facts.device)}`} target="_blank" rel="noreferrer">
          Raw facts
        </a>
      </Fact>
    </dl>
  );
}

/** "osd.3, osd.4"; "" for none. */
function named(osds: readonly number[]): string {
  return osds.map((osd) => `osd.${osd}`).join(", ");
}

const ROLES = { db: "DB", wal: "WAL", journal: "journal" } as const;
const NAMED = 6;

/** "DB of osd.3, osd.4; WAL of osd.3": whose metadata goes with it when it goes; "" where it keeps data alone. */
export function keeps(seats: Device["osd_devices"]): string {
  const kinds = Object.entries(ROLES).map(([role, word]) => {
    const of = seats.filter((seat) => seat.role === role).map((seat) => `osd.${seat.osd}`);
    const more = of.length > NAMED ? ` and ${of.length - NAMED} more` : "";
    return of.length ? `${word} of ${of.slice(0, NAMED).join(", ")}${more}` : "";
  });
  return kinds.filter(Boolean).join("; ");
}

function Fact({ name, children }: { name: string; children: ComponentChildren }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

function kind(rpm: number | null, protocol: string | null): string {
  const speaks = protocol === "ata" ? "SATA" : protocol === "scsi" ? "SAS" : protocol === "nvme" ? "NVMe" : "";
  if (rpm === null) return speaks || "not reported";
  return rpm === 0 ? (protocol === "nvme" ? "NVMe" : `${speaks} SSD`.trim()) : `${speaks} ${count(rpm)} rpm`.trim();
}
