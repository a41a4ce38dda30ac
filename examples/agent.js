/**
 * A participant that writes: `some-program | node examples/agent.js`. It streams its standard input, such as the answer of
 * a language model, to the end of the text, with a caret that others see. It stops when somebody edits what it has
 * written, so that it never works against that person.
 */

import { CoroomProvider } from "@coroom/client";
import * as Y from "yjs";

const user = process.argv[2] ?? "agent";
const url = process.env.SERVER_URL ?? "ws://127.0.0.1:8080";
const tokens = process.env.TOKEN_URL ?? "http://127.0.0.1:3000/token";

const doc = new Y.Doc();
const text = doc.getText("text");
const provider = new CoroomProvider({ url, room: "notes", doc, token });
provider.on("refused", ({ message }) => console.error(`refused: ${message}`));
provider.on("status", ({ status, why }) => status === "waiting" && console.error(`waiting: ${why}`));

/** The client calls this again if it throws. A value that is no token would be rejected permanently. */
async function token() {
  const response = await fetch(`${tokens}?user=${encodeURIComponent(user)}`);
  if (!response.ok) throw new Error(`cannot get a token: HTTP ${response.status}`);
  return response.text();
}

const event = (name, is) =>
  new Promise((resolve) => (is(provider[name]) ? resolve() : provider.on(name, (value) => is(value) && resolve())));
/** Relative positions stay at their place while others type before them. */
const placeAt = (index, association) => Y.createRelativePositionFromTypeIndex(text, index, association);
const indexOf = (place) => Y.createAbsolutePositionFromRelativePosition(place, doc).index;

await event("synced", (synced) => synced); // Writing earlier would put the text at the beginning.
const [BEFORE, BEHIND] = [-1, 0];
let caret = placeAt(text.length, BEFORE);
/** What the agent has written, and the place of its first character. */
let [written, begin] = ["", caret];
let isDisturbed = false;
text.observe((_, { local }) => {
  if (!local && text.toString().slice(indexOf(begin), indexOf(caret)) !== written) isDisturbed = true;
});

function showCaret() {
  const place = Y.relativePositionToJSON(caret);
  provider.awareness.setLocalStateField("cursor", { anchor: place, head: place });
}

provider.awareness.setLocalStateField("user", { name: user, color: "#7048e8" });
showCaret();
process.stdin.setEncoding("utf8");
for await (const piece of process.stdin) {
  if (isDisturbed) break;
  const index = indexOf(caret);
  text.insert(index, piece);
  if (written === "") begin = placeAt(index, BEHIND);
  caret = placeAt(index + piece.length, BEFORE);
  written += piece;
  showCaret();
}
console.log(isDisturbed ? "stopped: somebody edits this text" : "finished");
await event("saved", (saved) => saved); // Closing earlier would lose what the server's log does not have yet.
provider.destroy();
process.stdin.destroy();
