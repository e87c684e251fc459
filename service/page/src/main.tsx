/** Starts the page: the token out of the address, the stream open, the frame drawn. */
import { render } from "preact";
import { takeTokenFromAddress } from "./api/client.ts";
import { Frame } from "./frame/frame.tsx";
import { followKeys } from "./keys.ts";
import { follow } from "./live.ts";
import { followLinks } from "./route.ts";
import { token } from "./state.ts";
import "./style/tokens.css";
import "./style/base.css";
import "./style/frame.css";
import "./style/fleet.css";
import "./style/charts.css";
import "./style/rooms.css";

token.value = takeTokenFromAddress();
followLinks();
followKeys();
follow();

const mount = document.getElementById("page");
if (mount) render(<Frame />, mount);
