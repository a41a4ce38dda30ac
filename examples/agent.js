/**
 * A participant that writes: `some-program | node examples/agent.js`. It streams its standard input, such as the answer of
 * a language model, to the end of the text, with a caret that others see. It stops when somebody edits what it has
 * written, because two writers at one place are a nuisance.
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
const BEFORE = -1;
const begin = placeAt(text.length, BEFORE);
let caret = begin;
let isDisturbed = false;

text.observe(({ delta }, { local }) => {
  if (local) return;
  const [from, to] = [indexOf(begin), indexOf(caret)];
  let index = 0;
  for (const { retain = 0, insert, delete: deleted } of delta) {
    index += retain;
    const isChange = insert !== undefined || deleted !== undefined;
    if (isChange && index > from && index < to) isDisturbed = true;
    if (typeof insert === "string") index += insert.length;
  }
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
  caret = placeAt(index + piece.length, BEFORE);
  showCaret();
}
console.log(isDisturbed ? "stopped: somebody edits this text" : "finished");
await event("saved", (saved) => saved); // Closing earlier would lose what the server's log does not have yet.
provider.destroy();
process.stdin.destroy();
