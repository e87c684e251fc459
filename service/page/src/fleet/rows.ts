/** One row a disk: what its drive reports and, with a cluster, what its OSD says. Pure: lists in, rows out. */
import type { Disk, Osd } from "../api/contract.ts";
import { CONDITIONS, condition, hasEnded, type Condition } from "../condition.ts";
import { deviceLink, osdLink } from "../links.ts";

export interface DiskRow {
  key: string;
  shown: Condition;
  href: string;
  /** "osd.217" with a cluster, else the serial number: what stands on the drive's label. */
  name: string;
  host: string | null;
  osd: Osd | null;
  disk: Disk | null;
}

/** Rows of OSDs, each with its disk. An OSD whose disk the cluster does not name has what its own row says. */
export function rowsOfOsds(osds: readonly Osd[], disks: readonly Disk[], now: string | null): DiskRow[] {
  const known = new Map(disks.map((disk) => [disk.device, disk]));
  return osds
    .map((osd): DiskRow => {
      const disk = (osd.device !== null && known.get(osd.device)) || null;
      return { key: `osd.${osd.osd}`, shown: condition(osd, now), href: osdLink(osd), name: `osd.${osd.osd}`, host: osd.host, osd, disk };
    })
    .sort(byUrgency);
}

/** Rows of disks that no cluster places: those that are there, in no slot of an OSD. */
export function rowsOfDisks(disks: readonly Disk[]): DiskRow[] {
  return disks
    .filter((disk) => !hasEnded(disk.state))
    .map((disk): DiskRow => {
      const shown: Condition = disk.state === "silent" ? "old" : disk.status;
      return { key: disk.device, shown, href: deviceLink(disk.device), name: disk.serial ?? disk.device, host: disk.host, osd: null, disk };
    })
    .sort(byUrgency);
}

/** What needs somebody at once, in this order; a rule calls a disk bad without a probability. */
const AT_ONCE: readonly Condition[] = ["bad", "down"];

/** What needs somebody at once, then what is not good, and of equal ones the most probable to fail. */
function byUrgency(a: DiskRow, b: DiskRow): number {
  const [rankA, rankB] = [rankOf(a.shown), rankOf(b.shown)];
  const unknown = rankA < AT_ONCE.length ? 2 : 0;
  return (
    rankA - rankB ||
    (chance(b) ?? unknown) - (chance(a) ?? unknown) ||
    CONDITIONS.indexOf(a.shown) - CONDITIONS.indexOf(b.shown) ||
    (a.osd && b.osd ? a.osd.osd - b.osd.osd : a.key < b.key ? -1 : 1)
  );
}

function rankOf(shown: Condition): number {
  const place = AT_ONCE.indexOf(shown);
  return place >= 0 ? place : AT_ONCE.length + Number(shown === "good");
}

export const chance = (row: DiskRow): number | null => (row.osd ?? row.disk)?.p_fail_30d ?? null;
export const sourceOf = (row: DiskRow): string | null => (row.osd ?? row.disk)?.source ?? null;
export const reasonsOf = (row: DiskRow): readonly string[] => (row.osd ?? row.disk)?.reasons ?? [];
export const modelOf = (row: DiskRow): string | null => row.disk?.model ?? row.osd?.model ?? null;
export const bytesOf = (row: DiskRow): number | null => row.disk?.capacity_bytes ?? row.osd?.size_bytes ?? null;

/** Days for which the drive has been powered on. */
export function ageDays(row: DiskRow): number | null {
  const hours = row.disk?.power_on_hours ?? null;
  return hours === null ? (row.osd?.age_days ?? null) : hours / 24;
}

/** Whether a row answers to the text of the filter: its host, rack, model, serial number or device. */
export function rowAnswersTo(row: DiskRow, text: string): boolean {
  const wanted = text.trim().toLowerCase();
  if (!wanted) return true;
  const { osd, disk } = row;
  return [row.host, osd?.rack, modelOf(row), osd?.device, disk?.device, disk?.serial, row.name].some((name) => name?.toLowerCase().includes(wanted));
}
