/** The header: where one is, what Ceph says of itself, whether the page is live, and who may act. On a phone, tabs below. */
import { isOpen } from "../condition.ts";
import { clockOf, span } from "../format.ts";
import { findOpen, helpOpen } from "../keys.ts";
import { route } from "../route.ts";
import { alerts, clock, drains, heardAt, now, osds, status, stream } from "../state.ts";
import { HaltButton } from "./halt.tsx";
import { SignedIn } from "./signin.tsx";

interface Room {
  href: string;
  word: string;
  views: readonly string[];
  many?: number | undefined;
}

function rooms(): Room[] {
  const open = drains.value?.filter((drain) => isOpen(drain.state)).length;
  const alerted = standing();
  return [
    { href: "/fleet", word: "Fleet", views: ["fleet", "device", "osd"] },
    { href: "/drains", word: "Drains", views: ["drains", "drain"], many: open },
    { href: "/events", word: "Events", views: ["events", "report"] },
    { href: "/alerts", word: "Alerts", views: ["alerts"], many: alerted },
    { href: "/forecast", word: "Forecast", views: ["forecast"] },
    ...(status.value?.other_clusters ? [{ href: "/clusters", word: "Clusters", views: ["clusters"] }] : []),
  ];
}

/** Disks that were told of as bad and still are. */
function standing(): number {
  const bad = new Set((osds.value ?? []).filter((osd) => osd.status === "bad").map((osd) => osd.device));
  return new Set((alerts.value ?? []).filter((alert) => alert.status === "bad" && bad.has(alert.device)).map((alert) => alert.device)).size;
}

function Rooms() {
  const here = route.value.view.name;
  return rooms().map((room) => (
    <a key={room.href} href={room.href} aria-current={room.views.includes(here) ? "page" : undefined}>
      {room.word}
      {room.many ? <span class="pill">{room.many > 99 ? "99+" : room.many}</span> : null}
    </a>
  ));
}

export function Header() {
  const health = status.value?.health ?? null;
  return (
    <header class="header">
      <a class="name" href="/fleet">
        predrain
      </a>
      <span class="cluster">{status.value?.cluster ?? ""}</span>
      <nav aria-label="Views" class="rooms">
        <Rooms />
      </nav>
      <span class={`health ${health === "HEALTH_OK" || health === null ? "" : "warn"}`}>{health ?? ""}</span>
      <Live />
      <HaltButton />
      <button type="button" class="button link find" onClick={() => (findOpen.value = true)}>
        Find <kbd>/</kbd>
      </button>
      <SignedIn />
      <button type="button" class="button link help" aria-label="Keys" onClick={() => (helpOpen.value = true)}>
        <kbd>?</kbd>
      </button>
    </header>
  );
}

export function Tabs() {
  return (
    <nav class="tabs" aria-label="Views">
      <Rooms />
    </nav>
  );
}

/** The stream's state in words: the dot is full when live, a ring when not. */
function Live() {
  const current = stream.value;
  const heard = heardAt.value;
  const since = heard === null ? null : Math.max(0, (clock.value - heard) / 1_000);
  if (current.kind === "lost") {
    const wait = Math.max(0, Math.ceil((current.retryAt - clock.value) / 1_000));
    return (
      <span class="live lost" role="status">
        <span class="dot" />
        Not live{since !== null && since >= 60 ? ` for ${span(since)}` : ""}
        {now.value ? `, data of ${clockOf(now.value)} UTC` : ""}
        {wait > 0 ? `, trying in ${wait} s` : ", trying"}
      </span>
    );
  }
  return (
    <span class={`live ${current.kind}`}>
      <span class="dot" />
      {current.kind === "opening" ? "Connecting" : `Live${since === null ? "" : `, ${span(since)} ago`}`}
    </span>
  );
}
