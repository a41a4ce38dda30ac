/** Creates, edits and reads a document over HTTP without joining the room. It creates the document once, however often it runs. */

import { setTimeout as sleep } from "node:timers/promises";

import * as Y from "yjs";

// The room has plain text. For rich text, as in the room of an editor like TipTap, see "From your backend" in docs/guide/first-day.md.
const url = process.env.SERVER_HTTP_URL ?? "http://127.0.0.1:8080";
const tokens = process.env.TOKEN_URL ?? "http://127.0.0.1:3000/token";
const given = await fetch(`${tokens}?user=backend`);
if (!given.ok) throw new Error(`cannot get a token: HTTP ${given.status}`);
const authorization = `Bearer ${await given.text()}`;

/** Retries after the server's Retry-After, while the server is busy or has not read the newest edits yet. */
async function ask(path, { headers = {}, ...request } = {}) {
  for (;;) {
    const response = await fetch(`${url}/v1/rooms/notes-plain/${path}`, { ...request, headers: { authorization, ...headers } });
    if (response.status !== 503 && response.status !== 429) return response;
    await sleep(1_000 * Number(response.headers.get("retry-after") ?? 1));
  }
}

// Only the first request creates the document. A repeated request gets the same answer; another content gets 409.
const made = await ask("document?type=text", { method: "PUT", headers: { "content-type": "text/plain" }, body: "Agenda\n" });
if (!made.ok && made.status !== 409) throw new Error(`${made.status} ${await made.text()}`);
console.log(made.status === 409 ? "there is another document" : "the document is made");

// An edit is the difference between two states. `minSeq`: the answer must include the document just created.
const doc = new Y.Doc();
Y.applyUpdate(doc, new Uint8Array(await (await ask(`snapshot?minSeq=${made.headers.get("x-coroom-seq") ?? 0}`)).arrayBuffer()));
const before = Y.encodeStateVector(doc);
doc.getText("text").insert(0, "From the backend\n");
const written = await ask("edits", {
  method: "POST",
  headers: { "content-type": "application/octet-stream", "idempotency-key": crypto.randomUUID() }, // A retry after a lost answer is the same edit.
  body: Y.encodeStateAsUpdate(doc, before),
});
if (!written.ok) throw new Error(`${written.status} ${await written.text()}`);

console.log(await (await ask(`text?type=text&minSeq=${written.headers.get("x-coroom-seq")}`)).text());
