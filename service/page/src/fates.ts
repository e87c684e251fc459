/** What a person may say that became of a disk. */
export const FATES = [
  { fate: "confirmed", word: "It is failing", says: "The forecast was right and the disk still runs." },
  { fate: "failed", word: "It failed", says: "The disk is dead." },
  { fate: "replaced", word: "It was replaced", says: "Another disk sits in its place." },
  { fate: "cleared", word: "It is fine", says: "A person looked and found nothing wrong." },
];

export type Fate = (typeof FATES)[number];
