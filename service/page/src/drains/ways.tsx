/** The ways out of a drain that cannot go on by itself: each asks once, with its consequence. */
import { useState } from "preact/hooks";
import { drainVerb, type Verb } from "../act.ts";
import type { DrainWhole, WayOut } from "../api/contract.ts";
import { Acting, Question } from "../pieces.tsx";
import { adminOff } from "../state.ts";
import { targetOf } from "./naming.ts";

interface Button {
  verb: Verb;
  word: string;
  said: (target: string) => string;
  admin?: boolean;
}

/** Room is made in the cluster, and the cancel has a button of its own. */
const BUTTONS: Partial<Record<WayOut, Button>> = {
  stay_drained: { verb: "stay_drained", word: "Stay drained", said: (target) => `The cancel of ${target} is taken back: what has moved stays, and the rest follows.` },
  choose_other_targets: { verb: "choose_other_targets", word: "Choose other targets", said: (target) => `${target} gets a new plan without the targets in trouble.` },
  give_up_cancel: {
    verb: "give_up_cancel",
    word: "Give up the cancel",
    said: (target) => `Given up: settings go back, and the upmaps and weights of ${target} stay as they are. The journal lists them.`,
    admin: true,
  },
};

export function WaysOut({ drain }: { drain: DrainWhole }) {
  const [asking, setAsking] = useState<{ button: Button; sentence: string } | null>(null);
  const ways = drain.ways_out;
  const target = targetOf(drain);
  if (ways.length === 0) return null;
  return (
    <section class="ways-out" aria-label="Ways out">
      <h3>It cannot go on by itself. Ways out:</h3>
      <ul class="ways">
        {ways.map((one) => {
          const button = BUTTONS[one.way];
          return (
            <li key={one.way}>
              <span>{one.sentence}</span>{" "}
              {button && (
                <Acting {...(button.admin ? { off: adminOff.value } : {})} onPress={() => setAsking({ button, sentence: one.sentence })}>
                  {button.word}
                </Acting>
              )}
            </li>
          );
        })}
      </ul>
      {asking && (
        <Question
          title={`${asking.button.word}?`}
          yes={asking.button.word}
          {...(asking.button.admin ? { typed: target } : {})}
          onYes={() => void drainVerb(drain.id, asking.button.verb, asking.button.said(target))}
          onClose={() => setAsking(null)}
        >
          <p>{asking.sentence}</p>
        </Question>
      )}
    </section>
  );
}
