/** For how long a silence stands and why: the fields that every form of a silence has. */
const SPANS: readonly { hours: number; said: string }[] = [
  { hours: 8, said: "8 hours" },
  { hours: 24, said: "a day" },
  { hours: 24 * 7, said: "a week" },
];

export interface Silencing {
  hours: number;
  why: string;
}

export const NO_SILENCING: Silencing = { hours: SPANS[0]!.hours, why: "" };

/** `label`: of the reason. */
export function SilenceFields({ told, tell, label }: { told: Silencing; tell: (told: Silencing) => void; label: string }) {
  return (
    <>
      <label class="typed">
        For how long
        <select value={told.hours} onChange={(event) => tell({ ...told, hours: Number(event.currentTarget.value) })}>
          {SPANS.map((span) => (
            <option value={span.hours} key={span.hours}>
              {span.said}
            </option>
          ))}
        </select>
      </label>
      <label class="typed">
        {label}
        <input value={told.why} maxLength={500} onInput={(event) => tell({ ...told, why: event.currentTarget.value })} autocomplete="off" />
      </label>
    </>
  );
}
