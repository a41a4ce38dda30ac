import * as encoding from "lib0/encoding";
import { Registry } from "prom-client";
import { expect, test } from "vitest";

import { FakeClock } from "../shared/testing/fake-clock.ts";
import { decodeFrame, encodeFrame } from "../shared/wire/codec.ts";
import { ROOM_ID_RULE } from "../shared/ids.ts";
import { EarlyMessagesBudget } from "./held-messages.ts";
import { decodeHocuspocus, hocuspocusDialect, toDocument } from "./hocuspocus-protocol.ts";
import { HocuspocusSocket } from "./hocuspocus-socket.ts";
import { yWebsocketMetrics } from "./metrics.ts";
import type { YListener, YRejection, YSeat, YSocket } from "./ports.ts";
import { yWebsocketDialect } from "./y-websocket-protocol.ts";

const message = (type: number, ...texts: (string | number)[]): Uint8Array =>
  encoding.encode((output) => {
    encoding.writeVarUint(output, type);
    for (const text of texts)
      if (typeof text === "string") encoding.writeVarString(output, text);
      else encoding.writeVarUint(output, text);
  });
const token = (document: string, value = "a token"): Uint8Array => toDocument(document, message(2, 0, value, "4.8.0"));
const step = Uint8Array.of(0, 0, 1, 0);

type RigOptions = { readonly rejection?: YRejection; readonly budget?: EarlyMessagesBudget; readonly remedy?: string };

function rig({ rejection, budget = new EarlyMessagesBudget(1_000), ...remedy }: RigOptions = {}) {
  const clock = new FakeClock();
  const sent: Uint8Array[] = [];
  const closed: number[] = [];
  const reasons: string[] = [];
  const documents: { seat: YSeat; socket: YSocket; received: (Uint8Array | "closed")[] }[] = [];
  const enter = (seat: YSeat, socket: YSocket): YListener | YRejection => {
    const received: (Uint8Array | "closed")[] = [];
    documents.push({ seat, socket, received });
    return (
      rejection ?? {
        receiveBytes: () => true,
        receiveMessage: (bytes) => void received.push(bytes),
        receiveClosed: () => void received.push("closed"),
      }
    );
  };
  const close = (code: number, reason: string): void => {
    closed.push(code);
    reasons.push(reason);
  };
  const socket = { send: (bytes: Uint8Array) => void sent.push(bytes), close, waitingBytes: 0 };
  const origin = { address: "203.0.113.9", place: undefined, ...remedy };
  const { closes } = yWebsocketMetrics(new Registry());
  const hocuspocus = new HocuspocusSocket(
    socket,
    origin,
    { yHelloMsMax: 10_000, yDocumentsMax: 2, yWaitingBytesMax: 1_000 },
    { enter, budget, clock, closes },
  );
  return { hocuspocus, clock, sent, closed, reasons, documents, closes, socket };
}

test("[YHP1] each document is a separate client with its token and its messages, and each answer begins with its name", () => {
  const { hocuspocus, documents, sent } = rig();
  for (const bytes of [
    token("a", "of a"),
    token("b\0session", "of b"),
    toDocument("a", step),
    toDocument("unknown", step),
    Uint8Array.of(10),
  ])
    hocuspocus.receiveMessage(bytes);
  expect(documents.map(({ seat }) => [seat.room, seat.token, seat.address])).toEqual([
    ["a", "of a", "203.0.113.9"],
    ["b", "of b", "203.0.113.9"],
  ]);
  expect(documents.map(({ received }) => received)).toEqual([[step], []]);
  documents[1]!.socket.send(step);
  expect(sent).toEqual([toDocument("b\0session", step)]);
  hocuspocus.receiveMessage(token("a", "a newer token"));
  expect(documents).toHaveLength(2);
});

test("[YHP2] a refused or closed document leaves the others open, and may be opened again", () => {
  const { hocuspocus, documents, closed } = rig();
  for (const name of ["a", "b"]) hocuspocus.receiveMessage(token(name));
  documents[0]!.socket.close(4401, "refused");
  hocuspocus.receiveMessage(toDocument("b", Uint8Array.of(7)));
  expect([documents.map(({ received }) => received), closed]).toEqual([[["closed"], ["closed"]], []]);
  hocuspocus.receiveMessage(token("a"));
  expect(documents).toHaveLength(3);
});

test("[YHP3] any other close of a document closes the socket, and with it all documents", () => {
  const { hocuspocus, documents, closed } = rig();
  for (const name of ["a", "b"]) hocuspocus.receiveMessage(token(name));
  documents[0]!.socket.close(1013, "overloaded");
  expect(closed).toEqual([1013]);
  hocuspocus.receiveMessage(token("c"));
  hocuspocus.receiveClosed();
  expect(documents.map(({ received }) => received)).toEqual([["closed"], ["closed"]]);
});

test("[YHP10] a document above the limit of a socket is refused with the remedy, and the others stay open", async () => {
  const { hocuspocus, sent, closed, documents, closes } = rig();
  for (const name of ["a", "b", "c"]) hocuspocus.receiveMessage(token(name));
  expect([documents.length, documents.flatMap(({ received }) => received), closed]).toEqual([2, [], []]);
  expect(new TextDecoder().decode(sent[0])).toContain("2 documents at most");
  expect((await closes.get()).values).toMatchObject([{ labels: { code: "4401" }, value: 1 }]);
  hocuspocus.receiveMessage(toDocument("a", message(7)));
  hocuspocus.receiveMessage(token("c"));
  expect(documents.map(({ seat }) => seat.room)).toEqual(["a", "b", "c"]);
});

test("[YHP11] a client that does not read the refusals of its documents is closed", () => {
  const { hocuspocus, socket, sent, closed } = rig();
  socket.waitingBytes = 1_000;
  hocuspocus.receiveMessage(token(""));
  expect([sent.length, closed]).toEqual([1, []]);
  socket.waitingBytes = 1_001;
  hocuspocus.receiveMessage(token(""));
  expect([sent.length, closed]).toEqual([1, [1013]]);
});

test("[YHP12] a client that opens and closes documents again and again is closed", async () => {
  const { hocuspocus, clock, documents, closed, closes } = rig();
  const openAndClose = (): void => [token("a"), toDocument("a", message(7))].forEach((bytes) => hocuspocus.receiveMessage(bytes));
  for (let time = 0; time < 4; time++) openAndClose();
  clock.turn(100);
  openAndClose();
  expect([documents.length, closed]).toEqual([5, []]);
  openAndClose();
  expect([documents.length, closed]).toEqual([5, [4529]]);
  expect((await closes.get()).values).toMatchObject([{ labels: { code: "4529" }, value: 1 }]);
});

test("[YHP13] a client that opens a document under a very long name is closed, because each of its messages repeats the name", () => {
  const { hocuspocus, documents, sent, closed } = rig();
  const room = "r\0";
  hocuspocus.receiveMessage(token(room.padEnd(1_024, "s")));
  expect([documents.length, closed]).toEqual([1, []]);
  hocuspocus.receiveMessage(token(room.padEnd(1_025, "s")));
  expect([documents.length, sent, closed]).toEqual([1, [], [4400]]);
});

test("[YHP4] a socket above the limit of clients is closed with a retry", () => {
  const full = rig({ rejection: "full" });
  full.hocuspocus.receiveMessage(token("a"));
  expect(full.closed).toEqual([1013]);
});

test("[YHP5] a socket that opens no document in time is closed", () => {
  const [mute, speaking] = [rig(), rig()];
  speaking.hocuspocus.receiveMessage(token("a"));
  for (const { clock } of [mute, speaking]) clock.turn(10_000);
  expect([mute.closed, speaking.closed]).toEqual([[4508], []]);
});

test("[YHP9] a socket without a document is closed in time, also after a valid token", () => {
  const [refused, unnamed, trusted, again] = [rig(), rig(), rig(), rig()];
  for (const { hocuspocus } of [refused, trusted, again]) hocuspocus.receiveMessage(token("a"));
  unnamed.hocuspocus.receiveMessage(token(""));
  trusted.documents[0]!.socket.send(hocuspocusDialect.joined(true)!);
  for (const { clock } of [refused, trusted, again]) clock.turn(9_000);
  for (const { documents } of [refused, trusted, again]) documents[0]!.socket.close(4401, "refused");
  for (const { clock } of [refused, unnamed, trusted, again]) clock.turn(9_000);
  expect([refused, trusted, again].map(({ closed }) => closed)).toEqual([[], [], []]);
  again.hocuspocus.receiveMessage(token("b"));
  for (const { clock } of [refused, unnamed, trusted, again]) clock.turn(1_000);
  expect([refused, unnamed, trusted, again].map(({ closed }) => closed)).toEqual([[4508], [4508], [4508], []]);
  again.clock.turn(60_000);
  expect(again.closed).toEqual([]);
});

test("[YHP15] a socket whose document was refused, and that opens no other in time, is closed with the reason of the refusal", () => {
  const [mute, refused, unnamed, later] = [rig(), rig(), rig(), rig()];
  for (const { hocuspocus } of [refused, later]) hocuspocus.receiveMessage(token("a"));
  for (const { documents } of [refused, later]) documents[0]!.socket.close(4401, "the token was refused");
  unnamed.hocuspocus.receiveMessage(token(""));
  later.hocuspocus.receiveMessage(token("b"));
  later.hocuspocus.receiveMessage(toDocument("b", message(7, "left")));
  for (const { clock } of [mute, refused, unnamed, later]) clock.turn(10_000);
  const inTime = "the client opened no document in time: connect again";
  expect([mute, refused, unnamed, later].flatMap(({ reasons }) => reasons)).toEqual([
    inTime,
    "the token was refused",
    expect.stringContaining("pass a room's name and a token"),
    inTime,
  ]);
});

test("[YHP6] bytes of incomplete messages are bounded in total until a token is verified; a refused token is not", () => {
  const budget = new EarlyMessagesBudget(1_000);
  const [one, other] = [rig({ budget }), rig({ budget })];
  one.hocuspocus.receiveMessage(token("a"));
  one.documents[0]!.socket.send(hocuspocusDialect.refused("no")!);
  expect([one.hocuspocus.receiveBytes(900), other.hocuspocus.receiveBytes(200)]).toEqual([true, false]);
  expect(other.closed).toEqual([1013]);
  one.hocuspocus.receiveMessage(toDocument("a", step));
  one.documents[0]!.socket.send(hocuspocusDialect.joined(true)!);
  expect(one.hocuspocus.receiveBytes(100_000)).toBe(true);
});

test("[YHP7] a document without a name or a token is refused with the remedy", () => {
  const { hocuspocus, sent, documents, closed } = rig();
  hocuspocus.receiveMessage(token("a", ""));
  hocuspocus.receiveMessage(token("x".repeat(200)));
  hocuspocus.receiveMessage(token(".."));
  expect([documents, closed, sent.length]).toEqual([[], [], 3]);
  expect(new TextDecoder().decode(sent[2])).toContain(ROOM_ID_RULE);
  expect(new TextDecoder().decode(sent[0])).toContain("`name` and `token`");
});

test("[YHP8] a client of another protocol receives the right URL, and no bytes make the socket throw", () => {
  const sdk = rig();
  sdk.hocuspocus.receiveMessage(encodeFrame({ type: "hello", version: 1, token: "a token", agent: "test" }));
  expect([sdk.closed, decodeFrame(sdk.sent[0]!)]).toEqual([
    [4103],
    { type: "error", code: 4103, message: expect.stringContaining("gateway") },
  ]);
  for (const [bytes, code] of [
    [step, 4401],
    [Uint8Array.of(), 4400],
    [Uint8Array.of(0xff, 0xff), 4400],
    [Uint8Array.of(1), 4401],
  ] as const) {
    const { hocuspocus, closed } = rig();
    hocuspocus.receiveMessage(bytes);
    expect(closed).toEqual([code]);
  }
  expect(decodeHocuspocus(toDocument("a", message(2, 5)))).toBeUndefined();
});

test("[YHP14] a client that cannot be served receives the remedy once, in its own protocol, and is closed with it", () => {
  const remedy = "do this instead";
  for (const [bytes, answer] of [
    [step, yWebsocketDialect.refused(remedy)],
    [token("a"), toDocument("a", hocuspocusDialect.refused(remedy)!)],
    [toDocument("a", step), toDocument("a", hocuspocusDialect.refused(remedy)!)], // HocuspocusProvider 2 without a token.
  ] as const) {
    const { hocuspocus, sent, closed, documents } = rig({ remedy });
    hocuspocus.receiveMessage(bytes);
    hocuspocus.receiveMessage(bytes);
    expect([sent, closed, documents]).toEqual([[answer], [4401], []]);
  }
  const { hocuspocus, sent, closed } = rig({ remedy });
  hocuspocus.receiveMessage(token("x".repeat(2_000)));
  expect([sent, closed]).toEqual([[], [4401]]);
});
