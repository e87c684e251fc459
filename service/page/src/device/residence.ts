/** What the page says of the host that a disk lives in, where more than one host names the disk. */
import type { Residence } from "../api/contract.ts";

/** Between device id and host in the name of a history that is kept apart; no device id holds it (data/residence.py). */
const BETWEEN = " on ";

/** The disk that a history belongs to, and the host whose readings are kept apart in it; null for the home's own. */
export function ofHistory(name: string): { device: string; host: string | null } {
  const at = name.indexOf(BETWEEN);
  return at < 0 ? { device: name, host: null } : { device: name.slice(0, at), host: name.slice(at + BETWEEN.length) };
}

export const historyApart = (device: string, host: string): string => `${device}${BETWEEN}${host}`;

/** "stor-02", "stor-02 and stor-03", "stor-02, stor-03 and stor-04". */
export const listed = (hosts: readonly string[]): string =>
  hosts.length < 2 ? (hosts[0] ?? "") : `${hosts.slice(0, -1).join(", ")} and ${hosts[hosts.length - 1]}`;

export interface Doubt {
  title: string;
  sentence: string;
  /** Hosts of which a person may say that they have the disk: none where it is settled by something else. */
  choices: readonly string[];
}

/** Null where no other host names the disk. */
export function doubtOf(residence: Residence): Doubt | null {
  const { state, host: home, other_hosts: rivals, by, hosts } = residence;
  if (rivals.length === 0) return null;
  const others = listed(rivals);
  const apart = `What ${others} ${rivals.length > 1 ? "send" : "sends"} is kept apart.`;
  if (state === "settled") {
    const said = by === "person" ? "A person said so" : by === "cluster" ? "The cluster lists it there" : "The other host fell silent";
    return {
      title: `The disk is in ${home}`,
      sentence: `${said}. ${apart}`,
      choices: by === "person" ? hosts.filter((host) => host !== home) : [],
    };
  }
  if (state === "moving") {
    return {
      title: `The disk seems to move from ${home} to ${others}`,
      sentence: `It is settled by itself when ${home} stays silent. ${apart}`,
      choices: hosts,
    };
  }
  const until = "Until it is settled they are two disks, and neither is drained without a person.";
  return {
    title: `${listed([home, ...rivals])} name this disk at the same time`,
    sentence: `${apart} ${until} ${hosts.length > 0 ? "Look which host has the disk, and say so." : "The cluster itself has it under OSDs of these hosts: two drives go by one name."}`,
    choices: hosts,
  };
}
