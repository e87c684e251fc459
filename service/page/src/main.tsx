/** Starts the page: the token of the address exchanged for a session, the frame drawn, the stream open for who may read. */
import { render } from "preact";
import { effect } from "@preact/signals";
import { enter, lookWhoIsIn } from "./act.ts";
import { tokenInAddress } from "./api/session.ts";
import { Frame } from "./frame/frame.tsx";
import { followKeys } from "./keys.ts";
import { follow } from "./live.ts";
import { followLinks } from "./route.ts";
import { notice, session } from "./state.ts";
import "./style/tokens.css";
import "./style/base.css";
import "./style/frame.css";
import "./style/fleet.css";
import "./style/tables.css";
import "./style/charts.css";
import "./style/rooms.css";

followLinks();
followKeys();

/** The frame stands by then, whoever has not answered. */
const FRAME_MS = 250;
const mount = document.getElementById("page");
void Promise.race([begin(), new Promise((late) => setTimeout(late, FRAME_MS))]).then(() => {
  // Behind the timer that asks for the lists: drawn before it, the frame would keep them waiting.
  setTimeout(() => mount && render(<Frame />, mount));
});

async function begin(): Promise<void> {
  const token = tokenInAddress();
  const refused = token === null ? null : await enter(token);
  if (refused !== null) notice.value = { kind: "refused", text: refused };
  if (session.value === null) await lookWhoIsIn();
  // Where nobody answers the stream goes on trying; where reading needs a name, it waits for one.
  let following = false;
  effect(() => {
    if (following || session.value?.can_read === false) return;
    following = true;
    follow();
  });
}
