/** Which host has the disk, where several hosts name it: what is known, and the buttons by which a person says it. */
import { useState } from "preact/hooks";
import { nameHome } from "../act.ts";
import type { Residence } from "../api/contract.ts";
import { deviceLink } from "../links.ts";
import { Acting, At, Question, WhyOff } from "../pieces.tsx";
import { useResource } from "../resource.ts";
import { doubtOf, historyApart, listed, ofHistory } from "./residence.ts";

/** `id`: of the disk, or of a history of it that is kept apart. */
export function Home({ id }: { id: string }) {
  const { device, host } = ofHistory(id);
  const { data } = useResource<Residence>(`devices/${encodeURIComponent(device)}/host`);
  const [named, setNamed] = useState<string | null>(null);
  const doubt = data ? doubtOf(data) : null;
  if (data === null || doubt === null) return null;
  return (
    <section class={`card home ${data.state === "settled" ? "" : "doubt"}`} aria-label="Which host has the disk">
      <h2>{doubt.title}</h2>
      <p>
        {doubt.sentence} {data.since && <>Open since <At time={data.since} /> UTC.</>}
      </p>
      <p class="muted">
        {host === null ? "This page shows" : <>This page shows what {host} sends; <a href={deviceLink(device)}>the disk's own page</a> shows</>} what {data.host} sends. Kept apart:{" "}
        {data.other_hosts.map((rival, at) => (
          <>
            {at > 0 && ", "}
            {rival === host ? rival : <a href={deviceLink(historyApart(device, rival))}>{rival}</a>}
          </>
        ))}
        .
      </p>
      {doubt.choices.length > 0 && (
        <div class="buttons left">
          {doubt.choices.map((choice) => (
            <Acting key={choice} onPress={() => setNamed(choice)}>
              It is in {choice}
            </Acting>
          ))}
          <WhyOff />
        </div>
      )}
      {named !== null && (
        <Question title={`The disk is in ${named}?`} yes={`It is in ${named}`} onYes={() => void nameHome(device, named)} onClose={() => setNamed(null)}>
          <p>
            The history of {device} belongs to {named} from then on. What {listed(data.hosts.filter((one) => one !== named))} sent while both named it is of another disk.
          </p>
        </Question>
      )}
    </section>
  );
}
