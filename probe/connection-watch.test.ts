import { expect, test } from "vitest";

import type { Millis, Seq } from "../shared/ids.ts";
import { CLOSE } from "../shared/wire/close-codes.ts";
import { encodeFrame } from "../shared/wire/codec.ts";
import type { Frame } from "../shared/wire/frames.ts";
import { ConnectionWatch } from "./connection-watch.ts";

const at = (ms: number): Millis => ms as Millis;
const LIMITS = {
  pingIntervalMs: 1,
  silenceMsMax: 1,
  frameBytesMax: 1,
  editBytesMax: 1,
  editBurst: 1,
  editsPerSecond: 1,
  bytesBurst: 1,
  bytesPerSecond: 1,
  presenceBurst: 1,
  presencePerSecond: 1,
  presenceBytesMax: 1,
  presenceFieldsMax: 1,
  controlBurst: 1,
  controlsPerSecond: 1,
};
const WELCOME: Frame = { type: "welcome", version: 1, connection: "c", limits: LIMITS, tokenExpiresInMs: 1 };

function welcomed(): ConnectionWatch {
  const watch = new ConnectionWatch(at(0));
  watch.receiveOpened();
  watch.receiveReceived(encodeFrame(WELCOME), at(8));
  return watch;
}

test("[PLW1] the first message is WELCOME, timed from the request of the socket", () => {
  const watch = new ConnectionWatch(at(2));
  watch.receiveOpened();
  expect(watch.receiveReceived(encodeFrame(WELCOME), at(10))).toEqual([{ kind: "first-message", ms: 8 }]);
  expect(watch.receiveReceived(encodeFrame(WELCOME), at(11))).toEqual([]);
});

test("[PLW2] a PONG belongs to the PING with its number", () => {
  const watch = welcomed();
  watch.receiveSent(encodeFrame({ type: "ping", nonce: 7 }), at(100));
  expect(watch.receiveReceived(encodeFrame({ type: "pong", nonce: 6 }), at(101))).toEqual([]);
  expect(watch.receiveReceived(encodeFrame({ type: "pong", nonce: 7 }), at(103))).toEqual([{ kind: "round-trip", ms: 3 }]);
  expect(watch.receiveReceived(encodeFrame({ type: "pong", nonce: 7 }), at(104))).toEqual([]);
});

test("[PLW3] a request for a replay counts as a gap", () => {
  expect(welcomed().receiveSent(encodeFrame({ type: "replay-request", channel: 1, after: 3 as Seq, through: 5 as Seq }), at(9))).toEqual([
    { kind: "gap" },
  ]);
});

test.each<[string, boolean, number, string]>([
  ["no socket opens", false, 1006, "unreachable"],
  ["it closes without a refusal", true, 1006, "broken"],
  ["the gateway states why", true, CLOSE.overloaded.code, "overloaded"],
])("[PLW4] a failed attempt is reported once, with its cause: %s", (_, opens, code, cause) => {
  const watch = new ConnectionWatch(at(0));
  if (opens) watch.receiveOpened();
  expect(watch.receiveClosed(code)).toEqual([{ kind: "connect-failed", cause }]);
  expect(watch.receiveClosed(code)).toEqual([]);
});

test("[PLW5] an open connection that ends is no failed attempt", () => {
  expect(welcomed().receiveClosed(1006)).toEqual([]);
});

test("[PLW6] bytes that are no frame are ignored", () => {
  const watch = welcomed();
  expect(
    [new Uint8Array(), new Uint8Array([0x87]), new Uint8Array([0x83, 255])].map((bytes) => watch.receiveReceived(bytes, at(9))),
  ).toEqual([[], [], []]);
});
