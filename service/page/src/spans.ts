/** For how long a silence stands. */
export const SPANS: readonly { hours: number; said: string }[] = [
  { hours: 8, said: "8 hours" },
  { hours: 24, said: "a day" },
  { hours: 24 * 7, said: "a week" },
];
