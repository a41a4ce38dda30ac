/**
 * The history of a room over HTTP, through the gateways of a complete Coroom. `document-service/history-openapi.json`
 * is checked too.
 */

import { afterAll, beforeAll, expect, test } from "vitest";
import * as Y from "yjs";

import { Declared } from "../contract/declared.ts";
import { askAgain } from "./ask-again.ts";
import { SystemCluster } from "./cluster.ts";
import { eventually } from "./eventually.ts";

/**
 * Errors that need a failure, more time than a test has, or a document that no thread can read.
 * `stored-bytes.system.test.ts` fills a room (STQ1).
 */
const UNMET =
  /unavailable|loading|storage-full|busy|log-stalled|unconfirmed|token-expired|rate-limited|too-much|too-large|not-kept|unreadable/;

const declared = new Declared(new URL("../../document-service/history-openapi.json", import.meta.url));
let cluster: SystemCluster;

beforeAll(async () => {
  const settings = {
    SNAPSHOT_BURST: "500",
    DOCUMENT_WRITE_BURST: "100",
    WRITE_MS_MAX: "60000",
    DOCUMENTS_READ_MS: "50",
    HISTORY_NAMED_MAX: "1",
    REPLAY_WINDOW_MS: "200",
    SNAPSHOT_AGE_MS_MAX: "200",
    SNAPSHOT_INTERVAL_MS_MIN: "1",
    HISTORY_SEGMENT_MS_MIN: "1",
  };
  cluster = await SystemCluster.start({ gateways: 2, roomServers: 1, settings });
  const token = await cluster.token("*", "probe");
  await eventually("both gateways know a document service", async () =>
    (await Promise.all([0, 1].map((at) => ask("GET", "none/text", { token, at })))).every(({ status }) => status === 404),
  );
});
afterAll(() => cluster?.stop());

type Json = {
  error?: string;
  seq?: number;
  id?: string;
  versions?: { id: string; name: string | null; seq: number }[];
  sessions?: object[];
  through?: number;
};

type Asking = { token?: string; json?: object; body?: Uint8Array; headers?: Record<string, string>; at?: number };
type Answer = { status: number; bytes: Uint8Array; json: Json };

/** Repeats a read while the service is temporarily unable to answer. */
function ask(method: string, place: string, asking: Asking = {}): Promise<Answer> {
  const once = (): Promise<Answer> => askOnce(method, place, asking);
  return method === "GET" ? askAgain(`${method} ${place}`, once) : once();
}

async function askOnce(method: string, place: string, { token, json, body, headers = {}, at = 0 }: Asking): Promise<Answer> {
  const url = `${cluster.gateways[at]!.httpUrl}/v1/rooms/${place}`;
  const sent = json === undefined ? body : new TextEncoder().encode(JSON.stringify(json));
  const response = await fetch(url, {
    method,
    headers: { ...(token === undefined ? {} : { authorization: `Bearer ${token}` }), ...headers },
    ...(sent === undefined ? {} : { body: Buffer.from(sent) }),
  });
  const bytes = new Uint8Array(await response.arrayBuffer());
  const isJson = response.headers.get("content-type") === "application/json";
  const answer = isJson ? (JSON.parse(new TextDecoder().decode(bytes)) as Json) : {};
  if (isJson && !place.includes("/edits") && !place.includes("/text"))
    declared.expect({ method, path: new URL(url).pathname, status: response.status, body: answer });
  return { status: response.status, bytes, json: answer };
}

const BINARY = { "content-type": "application/octet-stream" };

/** Sends one edit for each letter. */
async function typed(room: string, token: string, letters: string): Promise<void> {
  const doc = new Y.Doc();
  for (const letter of letters) {
    const before = Y.encodeStateVector(doc);
    doc.getText("text").insert(doc.getText("text").length, letter);
    expect((await ask("POST", `${room}/edits`, { token, headers: BINARY, body: Y.encodeStateAsUpdate(doc, before) })).status).toBe(200);
  }
}

function textOf({ status, bytes, json }: { status: number; bytes: Uint8Array; json: Json }): string {
  if (status !== 200) return json.error ?? String(status);
  const doc = new Y.Doc();
  Y.applyUpdate(doc, bytes);
  return doc.getText("text").toString();
}

test("[HHTTP1] every seq stays readable while the log is trimmed, and an old state is restored by an edit that everybody receives", async () => {
  const token = await cluster.token("notes", "ann");
  await typed("notes", token, "abcdef");
  await eventually("some of it is in segments", async () => (await ask("GET", "notes/sessions", { token })).json.through !== 6);
  for (const seq of [0, 1, 3, 6]) expect(textOf(await ask("GET", `notes/past?seq=${seq}`, { token }))).toBe("abcdef".slice(0, seq));
  expect(textOf(await ask("GET", `notes/past?time=${Date.now() + 60_000}`, { token, at: 1 }))).toBe("abcdef");
  const key = { "idempotency-key": "back to three" };
  const restored = await ask("POST", "notes/restore?seq=3", { token, headers: key });
  expect(restored).toMatchObject({ status: 200, json: { seq: 7 } });
  expect(await ask("POST", "notes/restore?seq=2", { token, headers: key })).toMatchObject({ status: 422, json: { error: "key-reused" } });
  expect(new TextDecoder().decode((await ask("GET", "notes/text?minSeq=7", { token })).bytes)).toBe("abc");
  expect([textOf(await ask("GET", "notes/past?seq=6", { token })), textOf(await ask("GET", "notes/past?seq=7", { token }))]).toEqual([
    "abcdef",
    "abc",
  ]);
  for (const seq of [3, 7]) expect((await ask("POST", `notes/restore?seq=${seq}`, { token })).json.error).toBe("unchanged");
});

test("[HHTTP2] a named version is listed until a user who may write removes it", async () => {
  const [token, reader] = [await cluster.token("plans", "ann"), await cluster.token("plans", "rae", { rights: ["read"] })];
  expect((await ask("POST", "plans/versions", { token, json: { name: "too soon" } })).json.error).toBe("no-document");
  await typed("plans", token, "ab");
  await eventually("it is kept", async () => (await ask("POST", "plans/versions", { token, json: { name: "first" } })).status === 201);
  expect((await ask("POST", "plans/versions", { token, json: { name: "second" } })).json.error).toBe("too-many-versions");
  const { versions = [] } = (await ask("GET", "plans/versions", { token: reader })).json;
  expect(versions.filter(({ name }) => name !== null)).toMatchObject([{ name: "first" }]);
  const named = versions.find(({ name }) => name === "first")!;
  expect((await ask("DELETE", `plans/versions/${named.id}`, { token: reader })).json.error).toBe("not-allowed");
  expect((await ask("DELETE", `plans/versions/${named.id}`, { token })).status).toBe(204);
  expect((await ask("DELETE", `plans/versions/${named.id}`, { token })).json.error).toBe("no-such-version");
});

test("[HHTTP4] a deleted room has no history: every request for it is answered with 410", async () => {
  const [token, admin] = [await cluster.token("doomed", "ann"), await cluster.token("doomed", "boss", { rights: ["admin"] })];
  await typed("doomed", token, "ab");
  await eventually("it is kept", async () => (await ask("POST", "doomed/versions", { token, json: { name: "first" } })).status === 201);
  const erase = (): Promise<Response> =>
    fetch(`${cluster.gateways[0]!.httpUrl}/v1/rooms/doomed`, { method: "DELETE", headers: { authorization: `Bearer ${admin}` } });
  await eventually("it is wiped", async () => ((await (await erase()).json()) as { wiped?: boolean }).wiped === true);
  for (const [method, place] of [
    ["GET", "versions"],
    ["POST", "versions"],
    ["DELETE", "versions/none"],
    ["GET", "past?seq=1"],
    ["GET", "sessions"],
    ["POST", "restore?seq=1"],
  ] as const) {
    expect(
      await ask(method, `doomed/${place}`, { token, ...(place === "versions" && method === "POST" ? { json: { name: "late" } } : {}) }),
      `${method} ${place}`,
    ).toMatchObject({ status: 410, json: { error: "deleted" } });
  }
});

test("[HHTTP3] each invalid request gets its error, and every declared error occurs", async () => {
  const token = await cluster.token("*", "ann");
  const other = await cluster.token("other", "ann");
  const long = encodeURIComponent("x".repeat(129));
  for (const [method, place] of [
    ["GET", "versions"],
    ["POST", "versions"],
    ["DELETE", "versions/none"],
    ["GET", "past?seq=1"],
    ["GET", "sessions"],
    ["POST", "restore?seq=1"],
  ] as const) {
    expect((await ask(method, `notes/${place}`)).json.error).toBe("no-token");
    expect((await ask(method, `notes/${place}`, { token: "forged" })).json.error).toBe("token-refused");
    expect((await ask(method, `notes/${place}`, { token: other })).json.error).toBe("not-allowed");
    expect((await ask(method, `${long}/${place}`, { token })).json.error).toBe("no-such-room");
  }
  for (const query of ["", "?seq=-1", "?seq=1&time=1"])
    expect((await ask("GET", `notes/past${query}`, { token })).json.error).toBe("bad-moment");
  expect((await ask("POST", "notes/restore", { token })).json.error).toBe("bad-moment");
  expect((await ask("POST", "notes/restore?seq=1", { token, headers: { "idempotency-key": "x".repeat(256) } })).json.error).toBe("bad-key");
  expect((await ask("GET", "notes/past?seq=99", { token })).json.error).toBe("not-yet");
  expect((await ask("POST", "notes/restore?seq=99", { token })).json.error).toBe("not-yet");
  expect((await ask("GET", "notes/sessions?from=0", { token })).json.error).toBe("bad-seq");
  expect(await ask("GET", "never/versions", { token }), "a room without an edit").toMatchObject({ status: 200, json: { versions: [] } });
  expect(await ask("GET", "never/sessions?from=3", { token })).toMatchObject({ status: 200, json: { sessions: [], through: 2 } });
  expect((await ask("GET", "never/past?seq=1", { token })).json.error).toBe("not-yet");
  expect((await ask("DELETE", "never/versions/none", { token })).json.error).toBe("no-such-version");
  expect((await ask("POST", "notes/versions", { token, json: {} })).json.error).toBe("bad-name");
  expect(declared.unmet.filter((error) => !UNMET.test(error))).toEqual([]);
});
