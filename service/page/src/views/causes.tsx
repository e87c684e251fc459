/** What a person has to do, at once or when there is time, one card a cause, and what nobody wants to hear of for a while. */
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { liftSilence, silence } from "../act.ts";
import type { Cause, Silence, SilencePreview } from "../api/contract.ts";
import { plural } from "../format.ts";
import { NO_MATCHERS, matchersText, previewPath } from "../matchers.ts";
import type { Matchers } from "../matchers.ts";
import { At, Acting, Loading, Modal, Refused, WhyOff } from "../pieces.tsx";
import { useResource } from "../resource.ts";
import { Shape } from "../shape.tsx";
import { NO_SILENCING, SilenceFields } from "../silence_fields.tsx";

const SHOWN = 6;
/** A preview is asked for when nobody has typed for this long. */
const SETTLE_MS = 400;

export function Causes() {
  const causes = useResource<{ items: Cause[] }>("causes");
  const silences = useResource<{ items: Silence[] }>("silences");
  if (causes.data === null) return causes.refused ? <Refused sentence={causes.refused} /> : <Loading lines={3} />;
  const standing = causes.data.items;
  return (
    <>
      {causes.refused && <Refused sentence={causes.refused} />}
      {standing.length === 0 ? (
        <div class="card empty">
          <p>Nothing stands: no disk and no part of predrain needs a person.</p>
        </div>
      ) : (
        <ul class="alert-list">
          {standing.map((cause) => (
            <One cause={cause} key={cause.key} />
          ))}
        </ul>
      )}
      <WhyOff />
      <Silences standing={silences.data?.items ?? []} />
    </>
  );
}

function One({ cause }: { cause: Cause }) {
  const [asking, setAsking] = useState(false);
  const silenced = cause.points.every((point) => point.silence !== null);
  return (
    <li class="card">
      <Shape of={cause.severity === "urgent" ? "bad" : "warning"} size={16} />
      <div>
        <p>
          <b>
            <a href={cause.path}>{cause.title}</a>
          </b>{" "}
          <span class="muted">{silenced ? "silenced" : cause.severity === "urgent" ? "look now" : "can wait"}</span>
        </p>
        <ul class="points">
          {cause.points.slice(0, SHOWN).map((point) => (
            <li key={point.name}>
              {point.sentence}
              {point.silence && !silenced ? <span class="muted"> (silenced)</span> : null}
            </li>
          ))}
        </ul>
        {cause.points.length > SHOWN && <p class="muted">and {cause.points.length - SHOWN} more</p>}
        {cause.action && <p>{cause.action}</p>}
        {!silenced && (
          <Acting kind="link" onPress={() => setAsking(true)}>
            Silence
          </Acting>
        )}
        {asking && <Ask cause={cause} onClose={() => setAsking(false)} />}
      </div>
    </li>
  );
}

function Ask({ cause, onClose }: { cause: Cause; onClose: () => void }) {
  return (
    <SilenceForm title="Silence this cause?" matchers={{ ...NO_MATCHERS, cause: cause.key }} onClose={onClose}>
      <p>{cause.title}. No message is sent about it until then; this page shows it, and drains go on.</p>
    </SilenceForm>
  );
}

const FIELDS: readonly { key: Exclude<keyof Matchers, "severity">; label: string; example: string }[] = [
  { key: "host", label: "Hosts", example: "stor-0*" },
  { key: "rack", label: "Racks", example: "a*" },
  { key: "model", label: "Models", example: "ST4000*" },
  { key: "cause", label: "Causes", example: "silent:*" },
  { key: "name", label: "Points", example: "disk:*" },
];

/** A silence by matchers, with a preview of what it covers now. */
function AskByMatchers({ onClose }: { onClose: () => void }) {
  const [matchers, setMatchers] = useState(NO_MATCHERS);
  return (
    <SilenceForm title="Silence by matchers" matchers={matchers} onClose={onClose}>
      <p>Patterns are those of the shell. An empty field covers all, and at least one must be filled. Drains go on.</p>
      <div class="matchers">
        {FIELDS.map(({ key, label, example }) => (
          <label class="typed" key={key}>
            {label}
            <input
              value={matchers[key]}
              maxLength={256}
              placeholder={example}
              autocomplete="off"
              spellcheck={false}
              onInput={(event) => setMatchers({ ...matchers, [key]: event.currentTarget.value })}
            />
          </label>
        ))}
        <label class="typed">
          Severity
          <select value={matchers.severity} onChange={(event) => setMatchers({ ...matchers, severity: event.currentTarget.value as Matchers["severity"] })}>
            <option value="">both</option>
            <option value="notice">can wait</option>
            <option value="urgent">look now</option>
          </select>
        </label>
      </div>
      <Preview matchers={matchers} />
    </SilenceForm>
  );
}

function Preview({ matchers }: { matchers: Matchers }) {
  const [settled, setSettled] = useState(matchers);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(matchers), SETTLE_MS);
    return () => clearTimeout(timer);
  }, [matchers]);
  const path = previewPath(settled);
  const found = useResource<SilencePreview>(path);
  if (path === null) return <p class="muted">Name a host, a rack, a model, a cause or a point to see what would be silenced.</p>;
  if (found.data === null) return found.refused ? <Refused sentence={found.refused} /> : <Loading lines={2} />;
  const { points, total_points: total, disks, total_disks: all } = found.data;
  return (
    <div class="preview" role="status">
      <p>
        Now: {plural(total, "point")} of present causes, {plural(all, "disk")} about which no message would be sent.
      </p>
      <ul class="points">
        {points.slice(0, SHOWN).map((point) => (
          <li key={`${point.cause} ${point.name}`}>{point.sentence}</li>
        ))}
      </ul>
      {total > SHOWN && <p class="muted">and {total - SHOWN} more points</p>}
      {all > 0 && (
        <p class="muted">
          {disks.slice(0, SHOWN).join(", ")}
          {all > SHOWN ? ` and ${all - SHOWN} more disks` : ""}
        </p>
      )}
    </div>
  );
}

function SilenceForm(props: { title: string; matchers: Matchers; children: ComponentChildren; onClose: () => void }) {
  const [told, tell] = useState(NO_SILENCING);
  const why = told.why.trim();
  return (
    <Modal title={props.title} onClose={props.onClose}>
      {props.children}
      <SilenceFields told={told} tell={tell} label="Reason of the silence" />
      <div class="buttons">
        <button
          type="button"
          class="button primary"
          disabled={why === "" || previewPath(props.matchers) === null}
          onClick={() => {
            props.onClose();
            void silence(props.matchers, told.hours, why);
          }}
        >
          Silence it
        </button>
        <button type="button" class="button plain" onClick={props.onClose}>
          Leave it as it is
        </button>
      </div>
    </Modal>
  );
}

function Silences({ standing }: { standing: readonly Silence[] }) {
  const [asking, setAsking] = useState(false);
  return (
    <section aria-labelledby="silences-head">
      <h2 id="silences-head">Silences</h2>
      {standing.length === 0 && <p class="muted">Nothing is silenced.</p>}
      <p>
        <Acting kind="link" onPress={() => setAsking(true)}>
          Add by matchers
        </Acting>
      </p>
      {asking && <AskByMatchers onClose={() => setAsking(false)} />}
      <ul class="alert-list">
        {standing.map((one) => (
          <li class="card" key={one.id}>
            <div>
              <p>
                <b>{matchersText(one)}</b> until <At time={one.until} /> UTC
              </p>
              <p class="muted">
                {one.reason}, said by {one.by}
              </p>
              <Acting kind="link" onPress={() => void liftSilence(one.id)}>
                Lift
              </Acting>
            </div>
          </li>
        ))}
      </ul>
    </section>
  );
}
