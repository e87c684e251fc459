/** One drain: while it waits, the panel that approves it; from then on its progress, with the journal beside it. */
import type { DrainWhole } from "../api/contract.ts";
import { Loading, Refused } from "../pieces.tsx";
import { useResource } from "../resource.ts";
import { Approve } from "./approve.tsx";
import { targetOf } from "./naming.ts";
import { Journal } from "./journal.tsx";
import { Progress } from "./progress.tsx";

export function DrainView({ id }: { id: string }) {
  return (
    <section class="view drains">
      <p class="crumbs">
        <a href="/drains">Drains</a> / {id}
      </p>
      <DrainPanel id={id} journal={null} heading />
    </section>
  );
}

/** `journal`: how many lines beside it; null for all, below it. */
export function DrainPanel({ id, journal, heading = false }: { id: string; journal: number | null; heading?: boolean }) {
  const { data: drain, refused, missing } = useResource<DrainWhole>(`drains/${encodeURIComponent(id)}`);
  const Title = heading ? "h1" : "h2";
  if (missing) {
    return (
      <>
        <Title>No drain {id} is known</Title>
        <Refused sentence={refused ?? ""} />
      </>
    );
  }
  if (!drain) return refused ? <Refused sentence={refused} /> : <Loading lines={6} />;
  if (drain.state === "proposed") {
    return (
      <>
        <Approve key={drain.id} drain={drain} Title={Title} />
        {journal === null && <Journal id={id} most={null} boxed />}
      </>
    );
  }
  return (
    <article class="card drain-panel" aria-label={`Drain of ${targetOf(drain)}`}>
      <Progress drain={drain} Title={Title} />
      <Journal id={id} most={journal ?? 400} all={journal !== null} />
    </article>
  );
}
