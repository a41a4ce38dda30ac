/** A participant without a browser: `node examples/notes.js ada`. It appends each typed line to the text. */

import { createInterface } from "node:readline";

import { CoroomProvider } from "@coroom/client";
import * as Y from "yjs";

const user = process.argv[2] ?? "guest";
const url = process.env.SERVER_URL ?? "ws://127.0.0.1:8080";
const tokens = process.env.TOKEN_URL ?? "http://127.0.0.1:3000/token";

const doc = new Y.Doc();
const text = doc.getText("text");
const provider = new CoroomProvider({ url, room: "notes", doc, token });

/** The client calls this again if it throws. A value that is no token would be rejected permanently. */
async function token() {
  const response = await fetch(`${tokens}?user=${encodeURIComponent(user)}`);
  if (!response.ok) throw new Error(`cannot get a token: HTTP ${response.status}`);
  return response.text();
}

provider.on("status", ({ status, why }) => console.log(why === undefined ? `(${status})` : `(${status}: ${why})`));
provider.on("refused", ({ message }) => console.error(`refused: ${message}`));
provider.on("participants", (participants) => console.log(`here: ${namesOf(participants)}`));
provider.on("saved", (saved) => saved && console.log("saved"));
text.observe((_, { local }) => local || console.log(text.toString()));

const namesOf = (participants) => [...participants.values()].map(({ name }) => name).join(", ");

const lines = createInterface({ input: process.stdin });
lines.on("line", (line) => text.insert(text.length, `${line}\n`));
lines.on("close", () => {
  const leave = () => provider.destroy();
  if (provider.saved) leave();
  else provider.once("saved", leave); // Closing earlier would lose what the server's log does not have yet.
});
