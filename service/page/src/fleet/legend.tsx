/** Colour-by, and the counts that are legend and filter at once. */
import type { ComponentChildren } from "preact";
import { COLOURINGS, go, withQuery, type Colouring } from "../route.ts";
import { SearchBox } from "../searchbox.tsx";
import { Shape } from "../shape.tsx";
import { count } from "../format.ts";
import type { Bucket } from "./colouring.ts";

const NAMES: Record<Colouring, string> = {
  outlook: "Outlook",
  latency: "Latency",
  age: "Age",
  model: "Model",
  fullness: "Fullness",
};

interface Props {
  /** Null where there is nothing to colour. */
  by: Colouring | null;
  buckets: readonly Bucket[];
  chosen: string | null;
  /** The other ways to look at the same disks. */
  forms: ComponentChildren;
}

export function Legend({ by, buckets, chosen, forms }: Props) {
  return (
    <div class="legend">
      {by && <div class="segments" role="group" aria-label="Colour by">
        {COLOURINGS.map((one) => (
          <a
            key={one}
            href={withQuery({ by: one === "outlook" ? null : one, status: null })}
            aria-current={one === by ? "true" : undefined}
          >
            {NAMES[one]}
          </a>
        ))}
      </div>}
      <div class="counts" role="group" aria-label="Show only">
        {buckets
          .filter((bucket) => bucket.many > 0 || bucket.key === chosen)
          .map((bucket) => (
            <button
              key={bucket.key}
              type="button"
              class="count"
              aria-pressed={bucket.key === chosen}
              onClick={() => go(withQuery({ status: bucket.key === chosen ? null : bucket.key }), true)}
            >
              <Mark bucket={bucket} /> <b>{count(bucket.many)}</b> {bucket.word}
            </button>
          ))}
      </div>
      <div class="filter">
        {forms}
        <SearchBox label="Host, model or rack" placeholder="host, model, rack" />
      </div>
    </div>
  );
}

function Mark({ bucket }: { bucket: Bucket }) {
  const { mark } = bucket;
  if ("condition" in mark) return <Shape of={mark.condition} />;
  if ("letter" in mark) return <span class="letter">{mark.letter}</span>;
  if ("hollow" in mark) return <span class="swatch hollow" />;
  return <span class={`swatch step-${mark.step}`} />;
}
