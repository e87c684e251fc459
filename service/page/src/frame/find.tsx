/** Find: a disk, host or drain by any part of its name, from anywhere. */
import { useState } from "preact/hooks";
import { condition, type Condition } from "../condition.ts";
import { findOpen } from "../keys.ts";
import { Modal } from "../pieces.tsx";
import { drainLink, hostLink, osdLink } from "../links.ts";
import { go } from "../route.ts";
import { Shape } from "../shape.tsx";
import { drains, now, osds } from "../state.ts";

interface Found {
  href: string;
  word: string;
  beside: string;
  shape: Condition | null;
}

const MOST = 8;

function find(text: string): Found[] {
  const wanted = text.trim().toLowerCase();
  if (!wanted) return [];
  const found: Found[] = [];
  const hosts = new Set<string>();
  const number = /^(?:osd\.?)?(\d+)$/.exec(wanted)?.[1];
  const exact = (osds.value ?? []).filter((osd) => number !== undefined && String(osd.osd) === number);
  const rest = (osds.value ?? []).filter(
    (osd) => !exact.includes(osd) && `osd.${osd.osd} ${osd.device ?? ""}`.toLowerCase().includes(wanted),
  );
  for (const osd of osds.value ?? []) if (osd.host.toLowerCase().includes(wanted)) hosts.add(osd.host);
  for (const host of [...hosts].slice(0, 3)) found.push({ href: hostLink(host), word: host, beside: "host", shape: null });
  for (const drain of drains.value ?? []) {
    if (drain.id.toLowerCase().includes(wanted)) {
      found.push({ href: drainLink(drain.id), word: drain.id, beside: `drain, ${drain.state}`, shape: null });
    }
  }
  const disks = [...exact, ...rest].slice(0, MOST).map((osd) => ({
    href: osdLink(osd),
    word: `osd.${osd.osd}`,
    beside: `${osd.host} ${osd.device ?? ""}`,
    shape: condition(osd, now.value),
  }));
  return [...disks.slice(0, exact.length), ...found, ...disks.slice(exact.length)].slice(0, MOST);
}

export function Find() {
  return findOpen.value ? <FindDialog /> : null;
}

function FindDialog() {
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const found = find(text);
  const close = (): void => void (findOpen.value = false);
  const open = (one: Found | undefined): void => {
    if (!one) return;
    close();
    go(one.href);
  };
  return (
    <Modal title="Find" onClose={close}>
      <input
        class="find-box"
        type="text"
        role="combobox"
        aria-label="OSD, host, device or drain"
        aria-expanded={found.length > 0}
        aria-controls="found"
        aria-activedescendant={found.length ? `found-${at}` : undefined}
        placeholder="osd.217, stor-22, serial, drain"
        autofocus
        spellcheck={false}
        value={text}
        onInput={(event) => {
          setText(event.currentTarget.value);
          setAt(0);
        }}
        onKeyDown={(event) => {
          if (event.key === "ArrowDown") setAt(Math.min(found.length - 1, at + 1));
          else if (event.key === "ArrowUp") setAt(Math.max(0, at - 1));
          else if (event.key === "Enter") open(found[at]);
          else return;
          event.preventDefault();
        }}
      />
      <ul id="found" role="listbox" class="found" aria-label="Found">
        {found.map((one, index) => (
          <li
            key={one.href}
            id={`found-${index}`}
            role="option"
            aria-selected={index === at}
            onPointerMove={() => setAt(index)}
            onClick={() => open(one)}
          >
            {one.shape ? <Shape of={one.shape} /> : <span class="no-shape" />}
            <b>{one.word}</b> <span class="muted">{one.beside}</span>
          </li>
        ))}
      </ul>
      {text.trim() && found.length === 0 && <p class="muted">Nothing of that name.</p>}
    </Modal>
  );
}
