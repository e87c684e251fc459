/** Labels of spans on one row, so that no two overlap: what does not fit is shortened, then counted with its neighbour. */

/** A shaded part of the time axis, in px. `texts`: what may stand at it, the longest first. */
export interface Span {
  from: number;
  to: number;
  texts: readonly string[];
}

/** A text on the row. `of`: the places of the spans that it stands for. */
export interface Label {
  text: string;
  at: number;
  width: number;
  of: readonly number[];
}

interface Group extends Span {
  of: readonly number[];
}

/** px of a letter in the axis's bold type, at most, on average. */
const LETTER = 6.8;
const GAP = 8;

const textWidth = (text: string): number => text.length * LETTER;

/** One label for each span or group of neighbours between `start` and `end`; `countSpans` writes how many a group has. */
export function layLabels(spans: readonly Span[], start: number, end: number, countSpans: (count: number) => string): Label[] {
  const fits = (text: string): boolean => textWidth(text) <= end - start;
  let groups = spans.map((span, place): Group => ({ ...span, of: [place], texts: span.texts.filter(fits) })).sort((a, b) => a.from - b.from);
  for (;;) {
    const labels = groups.map((group) => placeLabel(group, start, end));
    const at = groups.findIndex((group, place) => clash(group, labels[place], groups[place + 1], labels[place + 1]));
    const left = groups[at];
    const right = groups[at + 1];
    if (!left || !right) return labels.filter((label) => label !== null);
    const longer = textWidth(left.texts[0] ?? "") >= textWidth(right.texts[0] ?? "") ? [left, right] : [right, left];
    const shortened = longer.find((group) => group.texts.length > 1);
    if (shortened) {
      groups = groups.map((group) => (group === shortened ? { ...group, texts: group.texts.slice(1) } : group));
    } else {
      const of = [...left.of, ...right.of];
      const both: Group = { from: left.from, to: Math.max(left.to, right.to), of, texts: [countSpans(of.length)].filter(fits) };
      groups = [...groups.slice(0, at), both, ...groups.slice(at + 2)];
    }
  }
}

/** Inside the span where it is wide enough, else right or left of it; of a group in its middle. */
function placeLabel(group: Group, start: number, end: number): Label | null {
  const text = group.texts[0];
  if (text === undefined) return null;
  const width = textWidth(text);
  const middle = (group.from + group.to - width) / 2;
  const beside = group.to + 5 + width <= end ? group.to + 5 : group.from - 5 - width;
  const inside = group.to - group.from >= width + 12;
  const alone = inside ? group.from + 6 : beside < start ? middle : beside;
  const wanted = group.of.length === 1 ? alone : middle;
  return { text, width, of: group.of, at: Math.min(Math.max(wanted, start), end - width) };
}

/** Whether the label of a group reaches into its right neighbour or that one's label, or the other way round. */
function clash(left: Group, label: Label | null | undefined, right: Group | undefined, next: Label | null | undefined): boolean {
  if (!right) return false;
  const ends = label ? label.at + label.width : left.to;
  const begins = next ? next.at : right.from;
  return (label !== null && ends > right.from) || (next !== null && begins < left.to) || (Boolean(label && next) && ends + GAP > begins);
}
