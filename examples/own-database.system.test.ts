/** The example `own-database.js` loads and stores documents of a whole system, also after a failure and in a new environment. */

import { createHash } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";

import { afterAll, beforeAll, expect, test } from "vitest";
import * as Y from "yjs";

import { CoroomProvider } from "../client/index.ts";
import { claimPort } from "../engines/free-port.ts";
import { SystemCluster } from "../test/system/cluster.ts";
import { eventually } from "../test/system/eventually.ts";
import { Program } from "./program.ts";

const SECRET = `whsec_${Buffer.from("a secret of the tests, 32 bytes!").toString("base64")}`;

let folder: string;
let port: number;
let cluster: SystemCluster;
let database: Program;
const providers: CoroomProvider[] = [];

function startDatabase(): Program {
  return new Program("own-database.js", [], {
    COROOM_JWT_SECRET: cluster.internalSecret, // The tests use one secret for all.
    COROOM_WEBHOOK_SECRETS: SECRET,
    SERVER_HTTP_URL: cluster.gateways[0]!.httpUrl,
    DATABASE_DIR: folder,
    PORT: String(port),
  });
}

function startCluster(): Promise<SystemCluster> {
  const url = `http://127.0.0.1:${port}/coroom`;
  const settings = {
    FIRST_CONTENT_URLS: url,
    WEBHOOK_URLS: url,
    WEBHOOK_SECRETS: SECRET,
    WEBHOOK_QUIET_MS: "200",
    DOCUMENTS_LEASE_MS: "1000",
    DOCUMENTS_READ_MS: "50",
  };
  return SystemCluster.start({ gateways: 1, roomServers: 1, settings });
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "coroom-own-database-"));
  port = await claimPort(0, "127.0.0.1", "port");
  cluster = await startCluster();
  database = startDatabase();
  await database.prints("documents in");
});
afterAll(async () => {
  for (const provider of providers) provider.destroy();
  database?.stop();
  await database?.exited();
  await cluster?.stop();
  rmSync(folder, { recursive: true });
});

const fileOf = (room: string): string => join(folder, `${createHash("sha256").update(`default/${room}`).digest("hex")}.yjs`);

async function open(room: string): Promise<{ readonly provider: CoroomProvider; readonly text: Y.Text }> {
  const doc = new Y.Doc();
  const provider = new CoroomProvider({ url: cluster.gateways[0]!.url, room, doc, token: await cluster.token(room, "ada") });
  providers.push(provider);
  return { provider, text: doc.getText("text") };
}

function storedText(room: string): string {
  try {
    const doc = new Y.Doc();
    Y.applyUpdate(doc, readFileSync(fileOf(room)));
    return doc.getText("text").toString();
  } catch {
    return "nothing is stored"; // No file, yet.
  }
}

function putIntoDatabase(room: string, words: string): void {
  const doc = new Y.Doc();
  doc.getText("text").insert(0, words);
  writeFileSync(fileOf(room), Y.encodeStateAsUpdate(doc));
}

test("[ODB1] a room opens with its stored content, and the database gets what people type", async () => {
  putIntoDatabase("team/notes", "from the database");
  const { provider, text } = await open("team/notes");
  await eventually("the content is there", () => provider.synced && text.toString() === "from the database");
  text.insert(0, "typed, ");
  await eventually("it is stored", () => storedText("team/notes") === "typed, from the database");

  const { provider: fresh, text: words } = await open("team/fresh");
  await eventually("a room without content opens empty", () => fresh.synced && words.length === 0);
  words.insert(0, "first words");
  await eventually("it is stored too", () => storedText("team/fresh") === "first words");
});

test("[ODB2] while the database is down new rooms wait and changes are kept; both go on when it is back", async () => {
  const { provider, text } = await open("kept");
  await eventually("the room is open", () => provider.synced);
  putIntoDatabase("waiting", "from the database");
  database.stop();
  await database.exited();
  text.insert(0, "typed meanwhile");
  const { provider: waiting, text: words } = await open("waiting");
  let reason = "";
  waiting.on("error", ({ message }) => void (reason = message));
  await eventually("its page learns why", () => reason.includes("first content"));
  expect(waiting.synced).toBe(false);
  database = startDatabase();
  await eventually("the room opens with its content", () => waiting.synced && words.toString() === "from the database");
  await eventually("the change is stored", () => storedText("kept") === "typed meanwhile");
});

test("[ODB5] rooms with the longest names, with slashes, or that differ only in case have files of their own", async () => {
  const names = ["汉".repeat(128), "../outside", "Plan", "plan"];
  const rooms = await Promise.all(names.map((room) => open(room)));
  await eventually("all are open", () => rooms.every(({ provider }) => provider.synced));
  for (const [index, { text }] of rooms.entries()) text.insert(0, `words of ${index}`);
  await eventually("all are stored", () => names.every((room, index) => storedText(room) === `words of ${index}`));
  const files = readdirSync(folder).map((file) => file.toLowerCase()); // Some file systems ignore case.
  for (const room of names) expect(files.filter((file) => file === basename(fileOf(room)).toLowerCase())).toHaveLength(1);
});

test("[ODB3] a request without a valid signature gets nothing", async () => {
  const body = JSON.stringify({ type: "document.requested", data: { tenant: "default", room: "team/notes" } });
  const headers = { "webhook-id": "1", "webhook-timestamp": String(Math.floor(Date.now() / 1000)), "webhook-signature": "v1,AAAA" };
  const response = await fetch(`http://127.0.0.1:${port}/coroom`, { method: "POST", headers, body });
  expect([response.status, await response.text()]).toEqual([401, ""]);
});

test("[ODB4] a new environment opens the rooms with what the former one stored", async () => {
  for (const provider of providers.splice(0)) provider.destroy();
  await cluster.stop();
  cluster = await startCluster();
  database.stop();
  await database.exited();
  database = startDatabase();
  await database.prints("documents in");
  const { provider, text } = await open("team/notes");
  await eventually("the document is there", () => provider.synced && text.toString() === "typed, from the database");
  text.insert(0, "and ");
  await eventually("a change is stored", () => storedText("team/notes") === "and typed, from the database");
});
