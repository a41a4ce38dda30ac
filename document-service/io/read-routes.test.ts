import { expect, test } from "vitest";

import type { Epoch, RoomKey, Seq } from "../../shared/ids.ts";
import type { InternalResponse } from "../../shared/io/internal-http.ts";
import { FakeClock } from "../../shared/testing/fake-clock.ts";
import type { DocumentReads } from "../ports.ts";
import type { Served } from "../rooms/room-messages.ts";
import { type Documents, readRoutes } from "./read-routes.ts";

const ROOM = "acme.notes" as RoomKey;
const STATE = Uint8Array.of(1);
const SERVED: Documents = {
  holds: () => true,
  hasEdit: (_, seq) => Promise.resolve(seq <= 6),
  serve: () => Promise.resolve({ kind: "snapshot", state: STATE, position: { epoch: 1 as Epoch, seq: 5 as Seq } }),
};
const NEVER: DocumentReads = { diff: never, json: never, text: never, rendered: never };
function never(): never {
  throw new Error("nobody reads");
}

function reader(
  reading: Partial<DocumentReads>,
  documents: Documents = SERVED,
  clock = new FakeClock(),
  documentsAnswerMsMax = 1_000,
): (place: string, query?: string, ifNoneMatch?: string, accept?: string) => Promise<InternalResponse> {
  const routes = readRoutes(documents, { ...NEVER, ...reading }, { documentsAnswerMsMax }, clock);
  return (place, query = "", ifNoneMatch = "", accept = "") => {
    const route = routes.find((one) => one.place === place)!;
    return route.answer({
      method: "GET",
      segments: [],
      query: new URLSearchParams(query),
      tenant: "acme",
      header: (name) => ({ "if-none-match": ifNoneMatch, "x-coroom-accept": accept })[name] ?? "",
      body: () => Promise.resolve(STATE),
      room: ROOM,
      parameters: [],
      signal: new AbortController().signal,
    });
  };
}

test("[RRT1] the error for a document that cannot be read in the requested form names the alternative", async () => {
  const ask = reader({
    json: () => Promise.resolve("unreadable"),
    text: () => Promise.resolve("unreadable"),
    diff: () => Promise.resolve("unreadable"),
  });
  for (const place of ["document", "text", "diff"])
    expect(await ask(place)).toMatchObject({ status: 422, name: "unreadable", body: expect.stringContaining("fetch the snapshot") });
});

test("[RRT2] a request for one shared type as two kinds is refused, and nothing is read", async () => {
  expect(await reader({})("document", "type=a:text&type=a:array")).toMatchObject({
    status: 400,
    name: "bad-type",
    body: expect.stringContaining("each once"),
  });
});

test("[RRT7] a format is answered with its media type; an unknown format and a type that is no text are refused", async () => {
  const body = Uint8Array.of(2);
  const ask = reader({ rendered: () => Promise.resolve({ kind: "rendered", body }) });
  const csp = "default-src 'none'; sandbox";
  for (const [format, type] of [
    ["markdown", "text/markdown; charset=utf-8"],
    ["html", "text/html; charset=utf-8"],
  ])
    expect(await ask("document", `format=${format}`)).toMatchObject({
      status: 200,
      body,
      headers: { "content-type": type, "content-security-policy": csp, "x-coroom-seq": "5" },
    });
  expect(await ask("document", "format=prosemirror")).toMatchObject({ headers: { "content-type": "application/json" } });
  expect(await ask("document", "format=pdf")).toMatchObject({ status: 400, name: "bad-format" });
  for (const query of ["type=a:map", "type=a", "type=a:text&type=b:xml"])
    expect(await ask("document", `format=html&${query}`)).toMatchObject({ status: 400, name: "bad-type" });
});

test("[RRT8] a document that exceeds a limit of formats, and one without rich text, are refused with the alternative", async () => {
  const unfit = reader({ rendered: () => Promise.resolve({ kind: "unfit", why: "its nodes are nested more than 100 deep" }) });
  expect(await unfit("document", "format=html")).toMatchObject({
    status: 422,
    name: "not-convertible",
    body: expect.stringContaining("nested more than 100 deep: read the document as JSON"),
  });
  const several = reader({ rendered: () => Promise.resolve({ kind: "no-such-text", names: ["a:text", "b:xml"] }) });
  expect(await several("document", "format=html")).toMatchObject({
    status: 404,
    name: "no-such-text",
    body: expect.stringContaining("?type=a%3Atext, ?type=b%3Axml"),
  });
});

test("[RRT9] a short result of a format is made once, a long one once for the requests that wait for it", async () => {
  const made = { html: 0, markdown: 0 };
  const rendered: DocumentReads["rendered"] = (_state, _room, format) => {
    const length = format === "html" ? 1024 ** 2 : 1024 ** 2 + 1;
    made[format === "html" ? "html" : "markdown"]++;
    return Promise.resolve({ kind: "rendered", body: new Uint8Array(length) });
  };
  const ask = reader({ rendered });
  for (let round = 1; round <= 2; round++) {
    const formats = ["html", "html", "markdown", "markdown"];
    for (const answer of await Promise.all(formats.map((format) => ask("document", `format=${format}`)))) expect(answer.status).toBe(200);
    expect(made).toEqual({ html: 1, markdown: round });
  }
});

test("[RRT12] JSON and text that are longer than 1 MiB and than the document are made again for each request", async () => {
  const made = { json: 0, text: 0 };
  const [short, long] = [new Uint8Array(1024 ** 2), new Uint8Array(1024 ** 2 + 1)];
  const ask = reader({
    json: (_state, _room, wanted) => (made.json++, Promise.resolve(wanted.length > 0 ? short : long)),
    text: () => (made.text++, Promise.resolve({ kind: "text", text: long })),
  });
  for (let round = 1; round <= 2; round++) {
    for (const [place, query] of [["document"], ["document", "type=a:text"], ["text"]] as const) await ask(place, query);
    expect(made).toEqual({ json: round + 1, text: round });
  }
});

test("[RRT3] the text without a name and the text with the empty name are cached separately", async () => {
  const asked: [room: string, name: string | undefined][] = [];
  const ask = reader({ text: (_, room, name) => (asked.push([room, name]), Promise.resolve({ kind: "text", text: STATE })) });
  await ask("text");
  await ask("text", "type=");
  await ask("text", "type=");
  expect(asked).toEqual([
    ["acme.notes", undefined],
    ["acme.notes", ""],
  ]);
});

test.each(["", "x", "-1", "0.5", "0x1", "1e3", "+1"])(
  "[RRT4] minSeq=%s is refused, because only decimal digits are a seq",
  async (minSeq) => {
    for (const place of ["snapshot", "document", "text"])
      expect(await reader({})(place, new URLSearchParams({ minSeq }).toString())).toMatchObject({
        status: 400,
        name: "bad-seq",
        body: expect.stringContaining("decimal digits"),
      });
  },
);

test("[RRT10] a request waits for an edit that the log has, and not for one that it does not have", async () => {
  const clock = new FakeClock();
  let seq = 5 as Seq;
  const serve: Documents["serve"] = () => Promise.resolve({ kind: "snapshot", state: STATE, position: { epoch: 1 as Epoch, seq } });
  const ask = reader({}, { ...SERVED, serve }, clock);
  expect(await ask("snapshot", "minSeq=9007199254740991")).toMatchObject({ status: 503, name: "loading" });
  const written = ask("snapshot", "minSeq=6");
  await clock.advance(500);
  seq = 6 as Seq;
  await clock.advance(50);
  expect(await written).toMatchObject({ status: 200, headers: { "x-coroom-seq": "6" } });
});

test.each(["snapshot", "document", "text", "diff"])(
  "[RRT13] a read of %s waits until the first edit of the log was read",
  async (place) => {
    const clock = new FakeClock();
    let served: Served = { kind: "behind" };
    const reading = {
      json: () => Promise.resolve(STATE),
      text: () => Promise.resolve({ kind: "text" as const, text: STATE }),
      diff: () => Promise.resolve({ kind: "diff" as const, edit: STATE }),
    };
    const ask = reader(reading, { ...SERVED, serve: () => Promise.resolve(served) }, clock);
    const read = ask(place);
    await clock.advance(400);
    served = { kind: "snapshot", state: STATE, position: { epoch: 1 as Epoch, seq: 1 as Seq } };
    await clock.advance(200);
    expect(await read).toMatchObject({ status: 200, headers: { "x-coroom-seq": "1" } });
  },
);

test("[RRT14] a read waits for the first edit at most two seconds, with a check each 200 ms, and not for an empty room", async () => {
  const clock = new FakeClock();
  let checks = 0;
  const serve = (): Promise<Served> => {
    checks += 1;
    return Promise.resolve({ kind: "behind" });
  };
  const behind = reader({}, { ...SERVED, serve }, clock, 10_000)("snapshot");
  await clock.advance(2_100);
  expect(await behind).toMatchObject({ status: 503, name: "loading" });
  expect(checks).toBe(11);
  const empty = reader({}, { ...SERVED, serve: () => Promise.resolve({ kind: "no-document" }) }, clock);
  expect(await empty("snapshot")).toMatchObject({ status: 404, name: "no-document" });
});

test.each([
  ['"1-5"', 304],
  ['W/"1-5"', 304],
  ['"1-5-gzip"', 304],
  ['"1-4", "1-5"', 304],
  ["*", 304],
  ['"1-4"', 200],
  ['"*"', 200],
  ["", 200],
])("[RRT11] a snapshot at 1-5 for If-None-Match: %s is answered with %i", async (ifNoneMatch, status) => {
  expect(await reader({})("snapshot", "", ifNoneMatch)).toMatchObject({ status, headers: { etag: '"1-5"' } });
});

test("[RRT15] sixteen results of a state are kept: another one replaces the oldest, and a kept one replaces none", async () => {
  const made: string[] = [];
  const ask = reader({ text: (_, _room, name) => (made.push(name!), Promise.resolve({ kind: "text", text: STATE })) });
  const names = Array.from({ length: 16 }, (_, index) => `t${index}`);
  for (const name of [...names, ...names]) await ask("text", `type=${name}`);
  expect(made).toEqual(names);
  for (const name of ["t16", "t1", "t0", "t2"]) await ask("text", `type=${name}`);
  expect(made.slice(16)).toEqual(["t16", "t0"]);
});

test("[RRT16] a result that failed is made again for the next request", async () => {
  const results = [() => Promise.reject(new Error("the thread ended")), () => Promise.resolve({ kind: "text" as const, text: STATE })];
  const ask = reader({ text: () => results.shift()!() });
  await expect(ask("text")).rejects.toThrow("the thread ended");
  expect(await ask("text")).toMatchObject({ status: 200 });
});

test("[RRT17] an answer of at least 1 KB is compressed for a caller that accepts it, with an ETag of its own", async () => {
  for (const [bytes, accept, etag] of [
    [1_023, "gzip", '"1-5"'],
    [1_024, "gzip", '"1-5-gzip"'],
    [1_024, "", '"1-5"'],
  ] as const) {
    const json = new Uint8Array(bytes);
    const { headers, body } = await reader({ json: () => Promise.resolve(json) })("document", "", "", accept);
    expect(headers).toMatchObject({ etag });
    expect((body as Uint8Array).byteLength < bytes, `${bytes} ${accept}`).toBe(etag.includes("gzip"));
  }
});

test.each([
  [{ kind: "deleted" }, true, 410],
  [{ kind: "stalled" }, true, 503],
  [{ kind: "not-a-document" }, true, 404],
  [{ kind: "loading" }, false, 503],
] as [Served, boolean, number][])(
  "[RRT18] a read of a seq that %o cannot reach is answered at once (held here: %s)",
  async (served, holds, status) => {
    const clock = new FakeClock();
    const answers: InternalResponse[] = [];
    const ask = reader({}, { ...SERVED, holds: () => holds, serve: () => Promise.resolve(served) }, clock);
    void ask("snapshot", "minSeq=6").then((answer) => answers.push(answer));
    await clock.advance(40);
    expect(answers).toMatchObject([{ status }]);
  },
);
