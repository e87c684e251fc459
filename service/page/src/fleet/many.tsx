/** The bar of chosen disks: silence them, say what became of them, or propose their drains. */
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { post } from "../api/client.ts";
import { lookWhoIsIn } from "../act.ts";
import { FATES } from "../fates.ts";
import { count, plural, sentence } from "../format.ts";
import { want } from "../live.ts";
import { Acting, Modal, WhyOff } from "../pieces.tsx";
import { NO_SILENCING, SilenceFields } from "../silence_fields.tsx";
import { actingOff } from "../state.ts";
import { MOST_AT_ONCE, askEach, deviceOf, drainable, noneDrainable, outcomesOf, proposalsOf, silencesOf, type Asked, type Result } from "./many.ts";
import type { DiskRow } from "./rows.ts";

type Act = "silence" | "outcome" | "drain";

export function ManyDisks({ rows, clear }: { rows: readonly DiskRow[]; clear: () => void }) {
  const [act, setAct] = useState<Act | null>(null);
  if (rows.length === 0) return null;
  const named = rows.filter((row) => deviceOf(row) !== null);
  const drains = rows.filter(drainable);
  const off = (many: number, none: string): string | null =>
    actingOff.value ?? (rows.length > MOST_AT_ONCE ? `choose ${MOST_AT_ONCE} disks at most` : many === 0 ? none : null);
  const close = (): void => setAct(null);
  return (
    <div class="card many" role="region" aria-label="Chosen disks">
      <b>{plural(rows.length, "disk")} chosen</b>
      <div class="buttons left">
        <Acting off={off(named.length, "none of them has a device id")} onPress={() => setAct("silence")}>
          Silence
        </Acting>
        <Acting off={off(named.length, "none of them has a device id")} onPress={() => setAct("outcome")}>
          Say what became of them
        </Acting>
        <Acting off={off(drains.length, noneDrainable(rows))} onPress={() => setAct("drain")}>
          Propose drains
        </Acting>
        <button type="button" class="button link" onClick={clear}>
          Choose none
        </button>
        <WhyOff />
      </div>
      {act === "silence" && <AskSilence rows={named} onClose={close} />}
      {act === "outcome" && <AskOutcome rows={named} onClose={close} />}
      {act === "drain" && <AskDrains rows={drains} onClose={close} />}
    </div>
  );
}

interface AskProps {
  rows: readonly DiskRow[];
  onClose: () => void;
}

function AskSilence({ rows, onClose }: AskProps) {
  const [told, tell] = useState(NO_SILENCING);
  const why = told.why.trim();
  const disks = plural(rows.length, "disk");
  return (
    <Ask title={`Silence ${disks}`} yes={`Silence ${disks}`} did="silenced" ready={why !== ""} asked={() => silencesOf(rows, told.hours, why)} onClose={onClose}>
      <p>No message about these disks is sent until then. Forecasts and drains go on. Each has a silence of its own, which can be lifted.</p>
      <Names rows={rows} />
      <SilenceFields told={told} tell={tell} label="Reason of the silences" />
    </Ask>
  );
}

function AskOutcome({ rows, onClose }: AskProps) {
  const [fate, setFate] = useState("");
  const [note, setNote] = useState("");
  const disks = plural(rows.length, "disk");
  return (
    <Ask title={`What became of ${disks}?`} yes={fate ? `Note ${disks}: ${fate}` : "Note it"} did="noted" ready={fate !== ""} asked={() => outcomesOf(rows, fate, note.trim())} onClose={onClose}>
      <Names rows={rows} />
      <fieldset class="choices">
        <legend>Of all of them</legend>
        {FATES.map((one) => (
          <label class="check" key={one.fate}>
            <input type="radio" name="fate" checked={fate === one.fate} onChange={() => setFate(one.fate)} />
            <span>
              <b>{one.fate}</b> <span class="muted">{one.says}</span>
            </span>
          </label>
        ))}
      </fieldset>
      <label class="typed">
        Note
        <input value={note} maxLength={500} onInput={(event) => setNote(event.currentTarget.value)} autocomplete="off" />
      </label>
      <p class="muted">Training and the forecast's score keeping read it. Nothing moves by this.</p>
    </Ask>
  );
}

function AskDrains({ rows, onClose }: AskProps) {
  const [why, setWhy] = useState("");
  const drains = plural(rows.length, "drain");
  return (
    <Ask title={`Propose ${drains}`} yes={`Propose ${drains}`} did="proposed" ready={why.trim() !== ""} asked={() => proposalsOf(rows, why.trim())} onClose={onClose}>
      <p>
        Each OSD gets a proposal with a plan and guards of its own. Nothing moves until a person approves it, one by one, <a href="/drains">among the drains</a>.
      </p>
      <Names rows={rows} />
      <label class="typed">
        Reason of the drains
        <input value={why} maxLength={500} onInput={(event) => setWhy(event.currentTarget.value)} autocomplete="off" />
      </label>
    </Ask>
  );
}

const NAMED = 40;

function Names({ rows }: { rows: readonly DiskRow[] }) {
  return (
    <p class="muted names">
      {rows.slice(0, NAMED).map((row) => row.name).join(", ")}
      {rows.length > NAMED && ` and ${rows.length - NAMED} more`}
    </p>
  );
}

interface FormProps {
  title: string;
  yes: string;
  /** What was done to each, as a participle. */
  did: string;
  ready: boolean;
  asked: () => Asked[];
  children: ComponentChildren;
  onClose: () => void;
}

/** The form, how far the requests are, and what became of each of them. */
function Ask({ title, yes, did, ready, asked, children, onClose }: FormProps) {
  const [under, setUnder] = useState<{ done: number; all: number } | null>(null);
  const [result, setResult] = useState<Result | null>(null);
  const begin = async (): Promise<void> => {
    const all = asked();
    setUnder({ done: 0, all: all.length });
    const found = await askEach(all, post, (done) => setUnder({ done, all: all.length }));
    if (found.stopped !== null) void lookWhoIsIn();
    setUnder(null);
    setResult(found);
    want();
  };
  return (
    <Modal title={title} onClose={() => under === null && onClose()}>
      {result ? <Results result={result} did={did} /> : children}
      {under && (
        <p role="status">
          {count(under.done)} of {count(under.all)}
        </p>
      )}
      <div class="buttons">
        {!result && (
          <button type="button" class="button primary" disabled={!ready || under !== null} onClick={() => void begin()}>
            {yes}
          </button>
        )}
        <button type="button" class="button plain" disabled={under !== null} onClick={onClose}>
          {result ? "Close" : "Leave it as it is"}
        </button>
      </div>
    </Modal>
  );
}

function Results({ result, did }: { result: Result; did: string }) {
  const { done, refused, stopped } = result;
  return (
    <div role="status">
      <p>
        <b>
          {count(done)} {did}
          {refused.length > 0 && `, ${count(refused.length)} refused`}.
        </b>{" "}
        {stopped !== null && sentence(stopped)}
      </p>
      <ul class="preview">
        {refused.map((one) => (
          <li key={one.name}>
            <b>{one.name}</b>: {sentence(one.sentence)}
          </li>
        ))}
      </ul>
    </div>
  );
}
