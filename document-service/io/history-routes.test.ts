import { expect, test } from "vitest";

import type { Epoch, RoomKey, Seq } from "../../shared/ids.ts";
import type { InternalResponse } from "../../shared/io/internal-http.ts";
import { SILENT_LOG } from "../../shared/testing/silent-log.ts";
import type { HistoryState } from "../history/history-reads.ts";
import type { HistoryReadsHost } from "../history/history-reads-host.ts";
import { historyRoutes } from "./history-routes.ts";

const FOUND: HistoryState = { kind: "state", state: Uint8Array.of(1), position: { epoch: 1 as Epoch, seq: 5 as Seq } };

type Asked = { readonly query?: string; readonly body?: string; readonly signal?: AbortSignal; readonly room?: string };

/** Asks the route of the place, with this history as the room's. */
function asker(history: Partial<HistoryReadsHost>): ReturnType<typeof askerOf> {
  return askerOf(() => history);
}

/** `lookUp`: the history of the room at this moment. */
function askerOf(lookUp: () => Partial<HistoryReadsHost>): (method: string, place: string, asked?: Asked) => Promise<InternalResponse> {
  const routes = historyRoutes({ historyReads: () => Promise.resolve(lookUp() as HistoryReadsHost) }, SILENT_LOG);
  return (method, place, { query = "", body, signal = new AbortController().signal, room = "acme.notes" } = {}) =>
    routes
      .find((route) => route.method === method && route.place === place)!
      .answer({
        method,
        segments: [],
        query: new URLSearchParams(query),
        tenant: "acme",
        header: () => "",
        body: () => Promise.resolve(body === undefined ? undefined : new TextEncoder().encode(body)),
        room: room as RoomKey,
        parameters: [],
        signal,
      });
}

test("[HRR1] a limited number of history reads run at once, the others wait, and a read whose caller has left is not started", async () => {
  const held: (() => void)[] = [];
  const ask = asker({ readAt: () => new Promise<HistoryState>((resolve) => held.push(() => resolve(FOUND))) });
  const [stays, leaves] = [new AbortController(), new AbortController()];
  const answers = [...Array.from({ length: 7 }, () => stays), leaves, stays].map(({ signal }) =>
    ask("GET", "past", { query: "seq=5", signal }),
  );
  await new Promise(setImmediate);
  expect(held).toHaveLength(6);
  leaves.abort();
  for (let answered = 0; answered < 8; answered++) {
    held[answered]!();
    await new Promise(setImmediate);
  }
  expect((await Promise.all(answers)).map(({ status }) => status)).toEqual([...Array.from({ length: 7 }, () => 200), 503, 200]);
  expect(held).toHaveLength(8);
});

test("[HRR7] a history read of another tenant, or of another room, is the next, however many of one room wait", async () => {
  const started: string[] = [];
  const held: (() => void)[] = [];
  const read = (room: string): Promise<InternalResponse> => ask("GET", "past", { query: `seq=${rooms.indexOf(room) + 1}`, room });
  const rooms = ["acme.notes", "acme.plan", "other.notes"];
  const ask = asker({
    readAt: (moment) => {
      started.push("seq" in moment ? rooms[moment.seq - 1]! : "");
      return new Promise<HistoryState>((resolve) => held.push(() => resolve(FOUND)));
    },
  });
  const answers = [...Array.from({ length: 20 }, () => "acme.notes"), "acme.plan", "other.notes"].map(read);
  await new Promise(setImmediate);
  for (let answered = 0; answered < 22; answered++) {
    held[answered]!();
    await new Promise(setImmediate);
  }
  await Promise.all(answers);
  expect(started.slice(6, 8).sort()).toEqual(["acme.plan", "other.notes"]);
});

test("[HRR9] long history reads of one tenant or of two leave a turn for the first read of another", async () => {
  const started: string[] = [];
  const rooms = ["acme.notes", "other.notes", "third.notes"];
  const held: (() => void)[] = [];
  const ask = asker({
    readAt: (moment) => {
      started.push("seq" in moment ? rooms[moment.seq - 1]! : "");
      return new Promise<HistoryState>((resolve) => held.push(() => resolve(FOUND)));
    },
  });
  const answers: Promise<InternalResponse>[] = [];
  const read = async (room: string, count: number): Promise<number> => {
    for (let asked = 0; asked < count; asked++) answers.push(ask("GET", "past", { query: `seq=${rooms.indexOf(room) + 1}`, room }));
    await new Promise(setImmediate);
    return started.filter((other) => other === room).length;
  };
  expect(await read("acme.notes", 20)).toBe(6);
  expect(await read("other.notes", 5)).toBe(1);
  expect(await read("third.notes", 1)).toBe(1);
  for (let answered = 0; answered < 26; answered++) {
    held[answered]!();
    await new Promise(setImmediate);
  }
  await Promise.all(answers);
});

test("[HRR8] naming versions takes turns too, so that few documents are held for it, and none for a caller that has left", async () => {
  const held: (() => void)[] = [];
  const named: string[] = [];
  const ask = asker({
    name: (name) => {
      named.push(name);
      return new Promise((resolve) => held.push(() => resolve({ kind: "too-many" })));
    },
  });
  const left = new AbortController();
  const name = (of: string, asked: Asked = {}): Promise<InternalResponse> =>
    ask("POST", "versions", { body: JSON.stringify({ name: of }), ...asked });
  const answers = [
    ...Array.from({ length: 6 }, () => name("many")),
    ...Array.from({ length: 20 }, () => name("left", { signal: left.signal })),
    name("other", { room: "acme.plan" }),
  ];
  await new Promise(setImmediate);
  expect(named).toEqual(Array.from({ length: 6 }, () => "many"));
  left.abort();
  for (let answered = 0; answered < 7; answered++) {
    held[answered]!();
    await new Promise(setImmediate);
  }
  await Promise.all(answers);
  expect(named.slice(6)).toEqual(["other"]);
});

test("[HRR10] a read that waited for its turn reads the room that is in memory then", async () => {
  const held: (() => void)[] = [];
  const read: string[] = [];
  const historyOf = (time: string): Partial<HistoryReadsHost> => ({
    readAt: () => {
      read.push(time);
      return new Promise<HistoryState>((resolve) => held.push(() => resolve(FOUND)));
    },
  });
  let present = historyOf("before");
  const ask = askerOf(() => present);
  const answers = Array.from({ length: 7 }, () => ask("GET", "past", { query: "seq=5" }));
  await new Promise(setImmediate);
  present = historyOf("at its turn"); // The room has left memory, and was opened again.
  for (let answered = 0; answered < 7; answered++) {
    held[answered]!();
    await new Promise(setImmediate);
  }
  await Promise.all(answers);
  expect(read).toEqual([...Array.from({ length: 6 }, () => "before"), "at its turn"]);
});

test("[HRR2] a seq or a time that is not in decimal digits is refused, and nothing is read", async () => {
  const ask = asker({});
  for (const text of ["", "0x1", "1e3", "-1", "0.5"]) {
    for (const name of ["seq", "time"]) {
      const query = `${name}=${text}`;
      expect(await ask("GET", "past", { query }), query).toMatchObject({ status: 400, name: "bad-moment" });
      expect(await ask("POST", "revert", { query }), query).toMatchObject({ status: 400, name: "bad-moment" });
    }
    expect(await ask("GET", "sessions", { query: `from=${text}` }), text).toMatchObject({ status: 400, name: "bad-seq" });
  }
});

test("[HRR6] a time in seconds is refused, so that a restore to it does not empty the document", async () => {
  const ask = asker({});
  for (const [method, verb] of [
    ["GET", "past"],
    ["POST", "revert"],
  ] as const)
    expect(await ask(method, verb, { query: "time=1796035918" })).toMatchObject({ status: 400, name: "bad-moment" });
});

test("[HRR3] a version's name has no control characters and is well-formed, and the error names the rule", async () => {
  const named: string[] = [];
  const ask = asker({ name: (name) => (named.push(name), Promise.resolve({ kind: "too-many" })) });
  for (const name of ["", "a\u0000b", "line\nbreak", "\u007f", "\ud800", "x".repeat(129)])
    expect(await ask("POST", "versions", { body: JSON.stringify({ name }) }), JSON.stringify(name)).toMatchObject({
      status: 400,
      name: "bad-name",
      body: expect.stringContaining("1 to 128 characters, without control characters"),
    });
  expect(await ask("POST", "versions", { body: JSON.stringify({ name: "draft", label: "x" }) })).toMatchObject({ status: 400 });
  expect((await ask("POST", "versions", { body: JSON.stringify({ name: "Entwurf für Jürgen 🎉" }) })).status).toBe(409);
  expect(named).toEqual(["Entwurf für Jürgen 🎉"]);
});

test.each([
  [0, "the room has no edit yet: ask again after its first edit"],
  [4, "the newest seq of the room is 4: ask for this seq or an earlier one"],
])("[HRR4] the error for a seq that the room has not reached names what can be read (newest seq %d)", async (head, message) => {
  const ask = asker({
    readAt: () => Promise.resolve({ kind: "not-yet", head: head as Seq }),
    revert: () => Promise.resolve({ kind: "not-yet", head: head as Seq }),
  });
  for (const [method, place] of [
    ["GET", "past"],
    ["POST", "revert"],
  ] as const) {
    const answer = await ask(method, place, { query: "seq=9" });
    expect([answer.status, JSON.parse(String(answer.body))]).toEqual([404, { error: "not-yet", message }]);
  }
});

test("[HRR5] a restore whose edit clients would refuse is answered with the limit, and writes nothing", async () => {
  const ask = asker({ revert: () => Promise.resolve({ kind: "unfit", why: "it has 50001 structs, more than 50000" }) });
  expect(await ask("POST", "revert", { query: "seq=5" })).toMatchObject({
    status: 413,
    name: "too-large",
    body: expect.stringContaining("50001 structs, more than 50000"),
  });
});
