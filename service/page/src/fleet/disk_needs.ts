/** What needs a person where no cluster is known: disks that are bad, and disks that fell silent. Pure. */
import type { ClusterStatus, Disk } from "../api/contract.ts";
import { count, moment, plural, seconds, sentence, span } from "../format.ts";
import { deviceLink } from "../links.ts";
import { howSure, type InHand, type Need, type Needs } from "./needs.ts";
import type { DiskRow } from "./rows.ts";

/** `rows`: of disks that are there. `now`: of the service. */
export function needsOfDisks(rows: readonly DiskRow[], now: string | null): Needs {
  const needs: Need[] = [];
  const inHand: InHand[] = [];
  for (const { shown, disk, name } of rows) {
    if (disk === null || shown === "good") continue;
    if (shown === "bad" || shown === "old") needs.push(needOf(disk, name, shown, now));
    else inHand.push({ key: disk.device, shape: shown, href: deviceLink(disk.device), name, text: inHandText(disk), waits: shown === "warning", rank: disk.p_fail_30d ?? 0 });
  }
  needs.sort((a, b) => b.rank - a.rank || (a.key < b.key ? -1 : 1));
  inHand.sort((a, b) => b.rank - a.rank || (a.key < b.key ? -1 : 1));
  return { needs, inHand };
}

function needOf(disk: Disk, name: string, shown: "bad" | "old", now: string | null): Need {
  const why = disk.reasons.slice(0, 2).map(sentence).join(" ");
  const own = {
    key: disk.device,
    shape: shown,
    href: deviceLink(disk.device),
    name,
    where: disk.host ?? "",
    device: disk.model ?? disk.device,
    why: why || "No reason is reported.",
    ...howSure({ ...disk, p_fail_30d_week_ago: null, life_p50_days: null }),
    next: todo(disk),
    button: "Look at it",
    buttonHref: deviceLink(disk.device),
    primary: false,
    rank: disk.p_fail_30d ?? 0.6,
  };
  if (shown === "bad") return own;
  const heard = disk.taken_at === null ? "No reading has come." : `No reading since ${moment(disk.taken_at, now)}, ${span(seconds(disk.taken_at, now))}.`;
  return {
    ...own,
    why: why ? `${heard} Before: ${why}` : heard,
    sure: disk.taken_at === null ? "Unknown" : `Old, as of ${moment(disk.taken_at, now)}`,
    before: "",
    likely: "silence is no sign of health",
    next: "Check whether it is there, and its host's collector.",
    button: "What to check",
    rank: 0.4,
  };
}

/** What the prescription says, but that nothing can be drained here. */
function todo(disk: Disk): string {
  if (disk.advice === "drain-now") return "Copy what is on it, and replace the disk.";
  return disk.prescription ? sentence(disk.prescription) : "Replace the disk.";
}

function inHandText(disk: Disk): string {
  if (disk.status === "unknown") return disk.state === "new" ? "new" : "not judged";
  return disk.prescription ? disk.prescription.replace(/[.]$/, "") : "watched";
}

/** "5,984 disks on 300 hosts, read without a cluster." */
export function diskLead(rows: readonly DiskRow[], status: ClusterStatus | null): string {
  const hosts = new Set(rows.map((row) => row.host).filter((host) => host !== null)).size;
  const bad = rows.filter((row) => row.shown === "bad").length;
  const warned = rows.filter((row) => row.shown === "warning").length;
  const found = [bad > 0 && `${count(bad)} bad`, warned > 0 && `${count(warned)} with a warning`].filter(Boolean).join(", ");
  const where = `${plural(rows.length, "disk")} on ${plural(hosts, "host")}${found ? `: ${found}` : ""}.`;
  return status?.halt_passes ? where : `${where} No cluster is set, so nothing can be drained.`;
}
