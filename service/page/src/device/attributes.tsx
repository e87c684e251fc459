/** Everything that the drive reports: what it means, how it went, and how rare it is among the drives in service. */
import { useMemo } from "preact/hooks";
import type { Attribute, Attributes } from "../api/contract.ts";
import { Spark } from "../charts/spark.tsx";
import { count, plural } from "../format.ts";
import { At, Loading, Refused } from "../pieces.tsx";
import type { Resource } from "../resource.ts";
import { Sheet, type SheetColumn } from "../tables/sheet.tsx";
import { betterShare, byAttention, heatWords, rarityWords, rawText } from "./attribute_words.ts";

const keyOf = (one: Attribute): string => (one.id === null ? one.name : `${one.id}`);

const COLUMNS: readonly SheetColumn<Attribute>[] = [
  {
    name: "attribute",
    head: "Value",
    unit: "",
    number: false,
    value: (one) => one.title,
    cell: (one) => (
      <>
        {one.title}
        <span class="device-id">{one.id === null ? one.name : `${one.id} ${one.name}`}</span>
      </>
    ),
  },
  { name: "id", head: "", unit: "", number: true, value: (one) => one.id },
  { name: "name", head: "", unit: "", number: false, value: (one) => one.name },
  { name: "raw", head: "Raw", unit: "", number: true, value: (one) => one.raw, cell: rawText },
  {
    name: "normalised",
    head: "Normalised",
    unit: "",
    number: true,
    largestFirst: false,
    value: (one) => one.value,
    cell: (one) => (one.below_threshold ? <b class="text-bad">{one.value}, failing</b> : (one.value ?? "not reported")),
  },
  { name: "worst", head: "Worst", unit: "", number: true, largestFirst: false, value: (one) => one.worst, cell: (one) => (one.was_below && !one.below_threshold ? <b class="text-warning">{one.worst}, failed once</b> : (one.worst ?? "not reported")) },
  { name: "threshold", head: "Threshold", unit: "", number: true, value: (one) => one.threshold },
  { name: "history", head: "History", unit: "", number: false, value: (one) => one.points.length || null, cell: (one) => <Spark points={one.points} write={(raw) => rawText({ raw, unit: one.unit })} /> },
  { name: "better_drives", head: "How rare", unit: "%", number: false, largestFirst: true, class: "said rarity", value: (one) => betterShare(one.rarity), cell: (one) => <Rare one={one} /> },
  { name: "compared", head: "", unit: "drives", number: true, value: (one) => one.rarity?.compared ?? null },
  {
    name: "meaning",
    head: "What it means",
    unit: "",
    number: false,
    class: "said",
    value: (one) => one.meaning,
    cell: (one) => (
      <>
        {one.meaning} <span class="device-id">Source: {one.meaning_source}</span>
      </>
    ),
  },
];

function Rare({ one }: { one: Attribute }) {
  const { text, among, rare } = rarityWords(one);
  return (
    <>
      {rare ? <b class="text-warning">{text}</b> : text}
      {among && <span class="device-id">{among}</span>}
    </>
  );
}

export function AttributeTable({ found }: { found: Resource<Attributes> }) {
  const { data, refused } = found;
  const rows = useMemo(() => (data ? [...data.values].sort(byAttention) : []), [data]);
  return (
    <section class="card attributes" aria-labelledby="attributes-head">
      <div class="card-head">
        <h2 id="attributes-head">What the drive reports</h2>
        {data?.taken_at && (
          <p class="muted">
            reading of <At time={data.taken_at} /> UTC, history of {plural(data.days, "day")}
          </p>
        )}
      </div>
      {data?.temperature && <p class="heat">{heatWords(data.temperature)}</p>}
      {refused && <Refused sentence={refused} />}
      {data === null ? (
        !refused && <Loading lines={6} />
      ) : rows.length === 0 ? (
        <p class="muted">No readable report of this drive is on record.</p>
      ) : (
        <Sheet
          rows={rows}
          columns={COLUMNS}
          keyOf={keyOf}
          caption={(order) => `${count(rows.length)} values, ${order ?? "what needs a look first"}. A rare value is compared with the same value of other drives in service.`}
          file={`${data.device}.csv`}
        />
      )}
    </section>
  );
}
