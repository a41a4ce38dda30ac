/**
 * Documents over HTTP through the gateways of a complete Coroom. `document-service/openapi.json` is checked too: each
 * answer must match its schema, and each declared error that a test can cause must occur.
 */

import { createHash } from "node:crypto";

import { afterAll, beforeAll, expect, test } from "vitest";
import * as Y from "yjs";

import { Declared } from "../contract/declared.ts";
import { askAgain } from "./ask-again.ts";
import { SystemCluster } from "./cluster.ts";
import { eventually } from "./eventually.ts";
import { Person } from "./person.ts";
import { TRACE_TEXT } from "./traces.ts";

const declared = new Declared(new URL("../../document-service/openapi.json", import.meta.url));

/** Errors that a healthy system of this size does not return. `stored-bytes.system.test.ts` fills a room (STQ1). */
const UNMET =
  /unavailable|loading|stalled|storage-full|busy|too-long|log-stalled|no-first-content|unconfirmed|token-expired|unknown|(text|put.*|diff|edits) 422 unreadable/;

const BINARY = { "content-type": "application/octet-stream" };
const TEXT = { "content-type": "text/plain" };
const JSON_TYPE = { "content-type": "application/json" };

let cluster: SystemCluster;

beforeAll(async () => {
  const settings = {
    SNAPSHOT_BURST: "60",
    SNAPSHOTS_PER_SECOND: "1",
    DOCUMENT_WRITE_BURST: "60",
    DOCUMENT_WRITES_PER_SECOND: "1",
    WRITE_MS_MAX: "60000",
    EDIT_BYTES_MAX: "100000",
    SNAPSHOT_SHARED_MS: "0",
    DOCUMENTS_READ_MS: "50",
  };
  cluster = await SystemCluster.start({ gateways: 2, roomServers: 2, settings });
  const token = await cluster.token("*", "probe");
  await eventually("both gateways know a document service", async () =>
    (await Promise.all([0, 1].map((at) => ask("GET", "none/snapshot", { token, at })))).every(({ status }) => status === 404),
  );
});
afterAll(() => cluster?.stop());

type Asking = { token?: string; headers?: Record<string, string>; body?: string | Uint8Array; at?: number };
type Answer = {
  status: number;
  headers: Headers;
  bytes: Uint8Array;
  text: string;
  json: {
    rooms?: { room: string; seq: number; snapshot?: { seq: number; bytes: number } }[];
    next?: string;
    error?: string;
    wiped?: boolean;
    seq?: number;
    epoch?: number;
    types?: Record<string, { kind: string; value: unknown }>;
  };
};

/** Repeats a read while the service is temporarily unable to answer. */
function ask(method: string, path: string, asking: Asking): Promise<Answer> {
  const once = (): Promise<Answer> => askOnce(method, path, asking);
  return method === "GET" ? askAgain(`${method} ${path}`, once) : once();
}

async function askOnce(method: string, path: string, { token, headers = {}, body, at = 0 }: Asking): Promise<Answer> {
  const url = `${cluster.gateways[at]!.httpUrl}/v1/rooms${path.startsWith("?") ? "" : "/"}${path}`;
  const response = await fetch(url, {
    method,
    headers: { ...(token === undefined ? {} : { authorization: `Bearer ${token}` }), ...headers },
    ...(body === undefined ? {} : { body: Buffer.from(body) }),
  });
  const bytes = new Uint8Array(await response.arrayBuffer());
  const text = new TextDecoder().decode(bytes);
  const json = (response.headers.get("content-type") === "application/json" ? JSON.parse(text) : {}) as Answer["json"];
  declared.expect({ method, path: new URL(url).pathname, status: response.status, headers: response.headers, body: json });
  return { status: response.status, headers: response.headers, bytes, text, json };
}

function update(write: (doc: Y.Doc) => void): Uint8Array {
  const doc = new Y.Doc();
  write(doc);
  return Y.encodeStateAsUpdate(doc);
}

const typing = (words: string) => update((doc) => doc.getText(TRACE_TEXT).insert(0, words));

test("[DHTTP1] an edit over HTTP is ordered and reaches the members, and is read at its seq as text, JSON, bytes and a difference", async () => {
  const token = await cluster.token("plan", "backend");
  const ann = await Person.enter(cluster, cluster.gateways[1]!, "plan", "ann", { merging: false });
  try {
    await eventually("ann is in", () => ann.room.synced);
    ann.type(typing("typed "));
    await ann.untilSaved();
    const written = await ask("POST", "plan/edits", {
      token,
      headers: BINARY,
      body: update((doc) => doc.getMap("meta").set("title", "Plan")),
    });
    expect([written.status, written.json.seq, written.headers.get("x-coroom-seq")]).toEqual([200, 2, "2"]);
    await eventually("ann sees it", () => ann.doc.getMap("meta").get("title") === "Plan");

    const read = (place: string, headers = {}) => ask("GET", `plan/${place}${place.includes("?") ? "&" : "?"}minSeq=2`, { token, headers });
    expect((await read("document")).json.types).toEqual({
      meta: { kind: "map", value: { title: "Plan" } },
      [TRACE_TEXT]: { kind: "text", value: "typed " },
    });
    expect((await read(`document?type=${TRACE_TEXT}:text`)).json.types).toEqual({ [TRACE_TEXT]: { kind: "text", value: "typed " } });
    expect((await read("text")).text).toBe("typed ");
    const snapshot = await read("snapshot");
    const doc = new Y.Doc();
    Y.applyUpdate(doc, snapshot.bytes);
    expect(doc.getMap("meta").get("title")).toBe("Plan");
    for (const place of ["document", "text", "snapshot"])
      expect((await read(place, { "if-none-match": snapshot.headers.get("etag")! })).status).toBe(304);

    const before = new Y.Doc();
    Y.applyUpdate(before, typing("typed "));
    const diff = await ask("POST", "plan/diff", { token, body: Y.encodeStateVector(before), headers: BINARY });
    Y.applyUpdate(before, diff.bytes);
    expect(before.getMap("meta").get("title")).toBe("Plan");
  } finally {
    ann.leave();
  }
});

test("[DHTTP2] a long document is compressed for a client that accepts it, and decompresses to the same bytes", async () => {
  const token = await cluster.token("long", "backend");
  expect(
    (await ask("POST", "long/edits", { token, headers: BINARY, body: typing("all work and no play ".repeat(4_000)) })).json,
  ).toMatchObject({ seq: 1 });
  const get = (encoding: string) => ask("GET", "long/snapshot?minSeq=1", { token, headers: { "accept-encoding": encoding } });
  const [plain, zipped, refused] = [await get("identity"), await get("br, gzip;q=0.5"), await get("gzip;q=0")];
  expect(plain.bytes.byteLength).toBeGreaterThan(84_000);
  expect([plain, zipped, refused].map(({ headers }) => headers.get("content-encoding"))).toEqual([null, "gzip", null]);
  expect(Number(zipped.headers.get("content-length"))).toBeLessThan(plain.bytes.byteLength / 10);
  expect(zipped.bytes).toEqual(plain.bytes);
  expect((await ask("GET", "long/snapshot", { token, headers: { "if-none-match": zipped.headers.get("etag")! } })).status).toBe(304);
});

test("[DHTTP3] exactly one of several concurrent requests creates a document, through any gateway, and its content exists once", async () => {
  for (let round = 0; round < 5; round++) {
    const room = `seeded-${round}`;
    const ann = await Person.enter(cluster, cluster.gateways[round % 2]!, room, "ann", { merging: false });
    const answers = await Promise.all(
      Array.from({ length: 8 }, async (_, index) =>
        ask("PUT", `${room}/document`, {
          token: await cluster.token(room, `backend-${index}`),
          headers: TEXT,
          body: `template of ${index} `,
          at: index % 2,
        }),
      ),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([201, ...Array.from({ length: 7 }, () => 409)]);
    const winner = answers.findIndex(({ status }) => status === 201);
    expect(answers[winner]!.json).toMatchObject({ seq: 1 });
    await eventually("the member of the room has the content once", () => ann.doc.getText("text").toString() === `template of ${winner} `);
    expect((await ask("GET", `${room}/text?minSeq=1`, { token: await cluster.token(room, "reader") })).text).toBe(`template of ${winner} `);
    ann.leave();
  }
});

test("[DHTTP4] a repeated request gets the answer of the first, also after the death of the room's owner", async () => {
  const token = await cluster.token("again", "backend");
  const put = (at: number) =>
    ask("PUT", "again/document", {
      token,
      headers: JSON_TYPE,
      body: JSON.stringify({ types: { body: { kind: "text", value: "once" }, items: { kind: "array", value: [1, [2]] } } }),
      at,
    });
  const named = typing("named ");
  const post = (at: number, body = named) =>
    ask("POST", "again/edits", { token, headers: { ...BINARY, "idempotency-key": "rename 7" }, body, at });
  expect([(await put(0)).json.seq, (await post(0)).json.seq]).toEqual([1, 2]);
  expect([(await put(1)).json.seq, (await post(1)).json.seq]).toEqual([1, 2]);
  const create = (body: string) =>
    ask("PUT", "keyed/document", { token: keyed, headers: { ...TEXT, "idempotency-key": "create 1" }, body });
  const keyed = await cluster.token("keyed", "backend");
  expect([(await create("one")).status, (await create("two")).json.error]).toEqual([201, "key-reused"]);
  const other = typing("other ");
  for (const at of [0, 1]) expect(await post(at, other)).toMatchObject({ status: 422, json: { error: "key-reused" } });
  const victim = cluster.roomServers[0]!;
  await victim.kill();
  expect([(await put(0)).json.seq, (await post(1)).json.seq]).toEqual([1, 2]);
  expect((await post(0, other)).status).toBe(422);
  await victim.startAgain();
  await cluster.roomServers[1]!.kill();
  expect([(await post(0)).json.seq, (await put(1)).status]).toEqual([2, 201]);
  await cluster.roomServers[1]!.startAgain();
  expect((await ask("GET", "again/document?minSeq=2", { token })).json.types).toEqual({
    body: { kind: "text", value: "once" },
    items: { kind: "array", value: [1, [2]] },
    [TRACE_TEXT]: { kind: "text", value: "named " },
  });
});

test("[DHTTP5] each declared refusal occurs with its status and error code", async () => {
  const room = "refusals";
  const all = await cluster.token("*", "tester");
  await ask("PUT", `${room}/document`, {
    token: all,
    headers: JSON_TYPE,
    body: JSON.stringify({ types: { a: { kind: "text", value: "a" }, b: { kind: "text", value: "b" } } }),
  });
  await ask("POST", "no-yjs/edits", { token: all, headers: BINARY, body: "not an update" });

  const operations: [string, string, Asking][] = [
    ["GET", "snapshot", {}],
    ["GET", "text?type=a", {}],
    ["GET", "document", {}],
    ["POST", "diff", { headers: BINARY, body: Y.encodeStateVector(new Y.Doc()) }],
    ["POST", "edits", { headers: BINARY, body: typing("x") }],
    ["PUT", "document", { headers: TEXT, body: "x" }],
  ];
  const readOnly = await cluster.token("*", "reader", { rights: ["read"] });
  const elsewhere = await cluster.token("elsewhere", "tester");
  const expected: [string, string, Asking, number, string][] = operations.flatMap(
    ([method, place, asking]): [string, string, Asking, number, string][] => [
      [method, `${room}/${place}`, asking, 401, "no-token"],
      [method, `${room}/${place}`, { ...asking, token: "nonsense" }, 401, "token-refused"],
      [method, `${room}/${place}`, { ...asking, token: elsewhere }, 403, "not-allowed"],
      [method, `%00/${place}`, { ...asking, token: all }, 404, "no-such-room"],
    ],
  );
  const admin = await cluster.token("*", "admin", { rights: ["admin"] });
  const big = new Uint8Array(100_001);
  expect(
    (await ask("PUT", "holes/document", { token: all, headers: JSON_TYPE, body: `{"types":{"list":{"kind":"array","value":[null]}}}` }))
      .status,
  ).toBe(201);
  expected.push(
    ["GET", "?limit=1", {}, 401, "no-token"],
    ["GET", "?limit=1", { token: "nonsense" }, 401, "token-refused"],
    ["GET", "?limit=1", { token: all }, 403, "not-allowed"],
    ["GET", "?tenant=another", { token: admin }, 403, "not-allowed"],
    ["GET", "?tenant=no%20tenant", { token: admin }, 400, "bad-request"],
    ["GET", "?limit=1001", { token: admin }, 400, "bad-page"],
    ["GET", "?limit=one", { token: admin }, 400, "bad-page"],
    ["GET", `?prefix=${"p".repeat(129)}`, { token: admin }, 400, "bad-page"],
    ["DELETE", room, {}, 401, "no-token"],
    ["DELETE", room, { token: "nonsense" }, 401, "token-refused"],
    ["DELETE", room, { token: elsewhere }, 403, "not-allowed"],
    ["DELETE", room, { token: all }, 403, "not-allowed"],
    ["DELETE", "%00", { token: admin }, 404, "no-such-room"],
    ["DELETE", "nothing", { token: admin }, 404, "no-room"],
    ["POST", `${room}/edits`, { token: readOnly, headers: BINARY, body: typing("x") }, 403, "not-allowed"],
    ["PUT", `${room}/document`, { token: readOnly, headers: TEXT, body: "x" }, 403, "not-allowed"],
    ["GET", "nothing/snapshot", { token: all }, 404, "no-document"],
    ["GET", "nothing/text", { token: all }, 404, "no-document"],
    ["GET", "nothing/document", { token: all }, 404, "no-document"],
    ["POST", "nothing/diff", { token: all, headers: BINARY, body: Y.encodeStateVector(new Y.Doc()) }, 404, "no-document"],
    ["GET", `${room}/text`, { token: all }, 404, "no-such-text"],
    ["GET", `${room}/text?type=c`, { token: all }, 404, "no-such-text"],
    ["GET", `${room}/snapshot?minSeq=x`, { token: all }, 400, "bad-seq"],
    ["GET", `${room}/text?minSeq=-1`, { token: all }, 400, "bad-seq"],
    ["GET", `${room}/document?minSeq=0.5`, { token: all }, 400, "bad-seq"],
    ["GET", `${room}/document?type=a:poem`, { token: all }, 400, "bad-type"],
    ["GET", "holes/document?minSeq=1&type=list:xml", { token: all }, 422, "unreadable"],
    ["POST", `${room}/diff`, { token: all, headers: BINARY, body: Uint8Array.of(255, 255, 255) }, 400, "bad-vector"],
    ["POST", `${room}/diff`, { token: all, headers: BINARY, body: big }, 413, "too-large"],
    ["POST", `${room}/edits`, { token: all, headers: BINARY, body: "not an update" }, 400, "bad-content"],
    [
      "POST",
      `${room}/edits`,
      { token: all, headers: { ...BINARY, "idempotency-key": "k".repeat(256) }, body: typing("x") },
      400,
      "bad-key",
    ],
    ["POST", `${room}/edits`, { token: all, headers: TEXT, body: "x" }, 415, "bad-content-type"],
    ["POST", `${room}/edits`, { token: all, headers: BINARY, body: big }, 413, "too-large"],
    ["PUT", `${room}/document`, { token: all, headers: TEXT, body: "x" }, 409, "document-exists"],
    ["PUT", "new/document", { token: all, headers: TEXT, body: "" }, 400, "bad-content"],
    ["PUT", "new/document", { token: all, headers: JSON_TYPE, body: "{}" }, 400, "bad-content"],
    ["PUT", "new/document", { token: all, headers: JSON_TYPE, body: "{" }, 400, "bad-content"],
    ["PUT", "new/document", { token: all, headers: BINARY, body: "not an update" }, 400, "bad-content"],
    ["PUT", "new/document", { token: all, headers: { ...TEXT, "idempotency-key": "k".repeat(256) }, body: "x" }, 400, "bad-key"],
    ["PUT", "new/document", { token: all, headers: { "content-type": "text/html" }, body: "x" }, 415, "bad-content-type"],
    ["PUT", "new/document", { token: all, headers: TEXT, body: big }, 413, "too-large"],
  );
  for (const [method, path, asking, status, error] of expected) {
    const answer = await ask(method, path, asking);
    expect([method, path, answer.status, answer.json.error]).toEqual([method, path, status, error]);
  }
  const hasty = await cluster.token("*", "hasty", { rights: ["read", "write", "admin"] });
  const untilTooFast = async (method: string, path: string, asking: Asking) => {
    const answers = await Promise.all(Array.from({ length: 100 }, () => ask(method, path, { ...asking, token: hasty })));
    const refused = answers.find(({ status }) => status === 429);
    expect([refused?.json.error, refused?.headers.get("retry-after")], path).toEqual(["rate-limited", expect.stringMatching(/^\d+$/)]);
  };
  for (const [method, place, asking] of operations) await untilTooFast(method, `${room}/${place}`, asking);
  await untilTooFast("DELETE", "nothing", {});
  await untilTooFast("GET", "?limit=1", {});
});

test("[DHTTP8] every request for a deleted room is answered with 410 on every gateway, and its name cannot be used again", async () => {
  const [token, admin] = [await cluster.token("doomed", "ann"), await cluster.token("doomed", "boss", { rights: ["admin"] })];
  await ask("POST", "doomed/edits", { token, headers: BINARY, body: typing("content") });
  expect((await ask("GET", "doomed/text?minSeq=1", { token })).text).toBe("content");
  for (const at of [1, 0])
    await eventually("it is wiped", async () => (await ask("DELETE", "doomed", { token: admin, at })).json.wiped === true);
  for (const at of [0, 1]) {
    for (const place of ["snapshot", "text", "document"])
      expect(await ask("GET", `doomed/${place}`, { token, at })).toMatchObject({ status: 410, json: { error: "deleted" } });
    expect(await ask("POST", "doomed/diff", { token, headers: BINARY, body: Y.encodeStateVector(new Y.Doc()), at })).toMatchObject({
      status: 410,
    });
    expect(await ask("POST", "doomed/edits", { token, headers: BINARY, body: typing("back"), at })).toMatchObject({
      status: 410,
      json: { error: "deleted" },
    });
    expect(await ask("PUT", "doomed/document", { token, headers: TEXT, body: "again", at })).toMatchObject({
      status: 410,
      json: { error: "deleted" },
    });
  }
});

test("[DHTTP9] a list has every room with an edit, in pages by name, and no deleted room, through any gateway", async () => {
  const [token, admin] = [await cluster.token("*", "ann"), await cluster.token("*", "librarian", { rights: ["admin"] })];
  const names = ["list/a b", "list/é", "list1", "list2", "list3"];
  for (const room of names) {
    const path = `${encodeURIComponent(room)}/edits`;
    expect(await ask("POST", path, { token, headers: BINARY, body: typing(room) })).toMatchObject({ status: 200, json: { seq: 1 } });
  }
  const opened = await Person.enter(cluster, cluster.gateways[0]!, "list-without-edits", "ben", { merging: false });
  await eventually("a member is in a room without edits", () => opened.room.synced);
  const list = (query: string, at = 0) => ask("GET", `?prefix=list&${query}`, { token: admin, at });
  const pages = async (limit: number, at: number): Promise<string[][]> => {
    const found: string[][] = [];
    for (let after: string | undefined = ""; after !== undefined;) {
      const { json } = await list(`limit=${limit}&after=${encodeURIComponent(after)}`, at);
      found.push(json.rooms!.map(({ room }) => room));
      after = json.next;
    }
    return found;
  };
  expect(await pages(2, 1)).toEqual([["list/a b", "list/é"], ["list1", "list2"], ["list3"]]);
  expect((await list("limit=1")).json.rooms).toMatchObject([{ room: "list/a b", seq: 1 }]);
  await eventually("it is wiped", async () => (await ask("DELETE", "list2", { token: admin })).json.wiped === true);
  expect((await pages(1_000, 0)).flat()).toEqual(names.filter((room) => room !== "list2"));
  opened.leave();
});

test("[DHTTP6] every declared error occurs, except those of a failing system, and a room with other payloads is not a document", async () => {
  const token = await cluster.token("*", "stranger");
  const { RoomConnection } = await import("../../client/index.ts");
  const room = new RoomConnection({ url: cluster.gateways[0]!.url, room: "json", token, format: { merge: undefined } as never });
  room.send(new TextEncoder().encode(`{"op":1}`));
  await eventually("it is saved", () => room.saved && room.seq > 0);
  room.destroy();
  for (const place of ["snapshot", "text", "document"]) {
    await eventually(
      "it is known to be no document",
      async () => (await ask("GET", `json/${place}`, { token })).json.error === "not-a-document",
    );
  }
  expect((await ask("POST", "json/diff", { token, headers: BINARY, body: Y.encodeStateVector(new Y.Doc()) })).json.error).toBe(
    "not-a-document",
  );

  await ask("POST", "nested/edits", { token, headers: BINARY, body: nestedText(150) });
  const converted = async (query: string) => (await ask("GET", `nested/document?${query}`, { token })).json.error;
  expect(await converted("format=pdf")).toBe("bad-format");
  expect(await converted("format=html&type=missing:text")).toBe("no-such-text");
  expect(await converted("format=html")).toBe("not-convertible");

  expect(declared.unmet.filter((error) => !UNMET.test(error))).toEqual([]);
});

/** Rich text with more levels than an export converts. */
function nestedText(levels: number): Uint8Array {
  const doc = new Y.Doc();
  let parent: Y.XmlFragment = doc.getXmlFragment("body");
  for (let level = 0; level < levels; level++) {
    const child = new Y.XmlElement("blockquote");
    parent.insert(0, [child]);
    parent = child;
  }
  return Y.encodeStateAsUpdate(doc);
}

test("[DHTTP7] 100 concurrent readers of a document, through two gateways, get the same bytes", async () => {
  const owner = await cluster.token("crowd", "owner");
  await ask("POST", "crowd/edits", { token: owner, headers: BINARY, body: typing("x".repeat(50_000)) });
  const hashes = await Promise.all(
    Array.from({ length: 100 }, async (_, index) => {
      const answer = await ask("GET", "crowd/snapshot?minSeq=1", { token: await cluster.token("crowd", `reader-${index}`), at: index % 2 });
      return createHash("sha256").update(answer.bytes).digest("hex");
    }),
  );
  expect(new Set(hashes).size).toBe(1);
});
