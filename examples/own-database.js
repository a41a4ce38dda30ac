/**
 * Keeps documents in the application's own database, here a folder: gives a new room its stored content, and stores the
 * document after changes. Hocuspocus calls this onLoadDocument and onStoreDocument.
 */

import { createHash } from "node:crypto";
import { mkdirSync, renameSync, writeFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { join } from "node:path";
import { text } from "node:stream/consumers";

import { SignJWT } from "jose";
import { Webhook } from "standardwebhooks";

const url = process.env.SERVER_HTTP_URL ?? "http://127.0.0.1:8080";
const folder = process.env.DATABASE_DIR ?? "documents";
mkdirSync(folder, { recursive: true });
const secret = new TextEncoder().encode(process.env.COROOM_JWT_SECRET ?? "");
if (secret.length < 32) throw new Error("set COROOM_JWT_SECRET to the secret of Coroom, at least 32 characters");
const webhook = new Webhook(process.env.COROOM_WEBHOOK_SECRETS ?? ""); // whsec_…, the same as Coroom's.

/**
 * Names of rooms may be too long for a file, contain slashes, or differ only in case, which some file systems ignore. In SQL
 * the key is (tenant, room), compared exactly.
 */
const fileOf = ({ tenant, room }) => join(folder, `${createHash("sha256").update(`${tenant}/${room}`).digest("hex")}.yjs`);

/** Undefined: the database has no such document. Any other error must not look like that: the room would start empty. */
async function load(document) {
  try {
    return await readFile(fileOf(document));
  } catch (error) {
    if (error.code === "ENOENT") return undefined;
    throw error;
  }
}

const newest = new Map();
/** Two events of a room may be handled at once. In SQL: UPDATE … WHERE (epoch, seq) < ($epoch, $seq). */
function store(document, { epoch, seq, bytes }) {
  const file = fileOf(document);
  const known = newest.get(file);
  if (known !== undefined && (epoch < known.epoch || (epoch === known.epoch && seq <= known.seq))) return;
  writeFileSync(`${file}.new`, bytes);
  renameSync(`${file}.new`, file); // A crash leaves the earlier content.
  newest.set(file, { epoch, seq });
  console.log(`stored ${document.room} at ${seq}`);
}

/** The document with at least the edits up to `seq`, as one Yjs update. Undefined: the room is deleted. */
async function read({ tenant, room, seq }) {
  const token = await new SignJWT({ tenant, rooms: [room], rights: ["read"] })
    .setProtectedHeader({ alg: "HS256" })
    .setSubject("own-database")
    .setExpirationTime("1m")
    .sign(secret);
  const headers = { authorization: `Bearer ${token}` };
  const response = await fetch(`${url}/v1/rooms/${encodeURIComponent(room)}/snapshot?minSeq=${seq}`, { headers });
  if (response.status === 410) return undefined;
  if (!response.ok) throw new Error(`cannot read ${room}: ${response.status} ${await response.text()}`);
  const [epochOf, seqOf] = ["x-coroom-epoch", "x-coroom-seq"].map((name) => Number(response.headers.get(name)));
  return { epoch: epochOf, seq: seqOf, bytes: new Uint8Array(await response.arrayBuffer()) };
}

async function answer({ type, data }, response) {
  if (type === "document.requested") {
    const stored = await load(data);
    if (stored === undefined) return response.writeHead(204).end();
    return response.writeHead(200, { "content-type": "application/octet-stream" }).end(stored);
  }
  if (type === "document.changed") {
    const document = await read(data);
    if (document !== undefined) store(data, document);
  }
  response.writeHead(204).end();
}

const server = createServer(async (request, response) => {
  try {
    const body = await text(request);
    let event;
    try {
      event = webhook.verify(body, request.headers);
    } catch {
      return response.writeHead(401).end(); // Not signed by Coroom, or too old.
    }
    await answer(event, response);
  } catch (error) {
    console.error(error);
    response.writeHead(500).end(); // Coroom asks again.
  }
});
const port = Number(process.env.PORT ?? 3001);
server.listen(port, "127.0.0.1", () => console.log(`documents in ${folder}, for http://127.0.0.1:${port}`));
