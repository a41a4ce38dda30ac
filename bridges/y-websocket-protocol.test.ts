import fc from "fast-check";
import * as decoding from "lib0/decoding";
import * as encoding from "lib0/encoding";
import { expect, test } from "vitest";
import { applyAwarenessUpdate, Awareness, encodeAwarenessUpdate } from "y-protocols/awareness";
import { readSyncMessage, writeSyncStep1, writeSyncStep2, writeUpdate } from "y-protocols/sync";
import * as Y from "yjs";

import { assert } from "../shared/assert.ts";
import {
  decodeYMessage,
  encodeAwareness,
  encodeSyncAnswer,
  encodeSyncRequest,
  encodeUpdate,
  readJson,
  visitStates,
  type YState,
} from "./y-websocket-protocol.ts";

const [SYNC, AWARENESS] = [0, 1];

function docOf(text: string): Y.Doc {
  const doc = new Y.Doc();
  doc.getText("t").insert(0, text);
  return doc;
}

function messageOf(kind: number, write: (output: encoding.Encoder) => void): Uint8Array {
  return encoding.encode((output) => {
    encoding.writeVarUint(output, kind);
    write(output);
  });
}

function statesIn(bytes: Uint8Array): YState[] {
  const states: YState[] = [];
  visitStates(bytes, (client, clock, json) => states.push({ client, clock, json: readJson(bytes, json) }));
  return states;
}

test("[YPR1] the bridge decodes what y-protocols writes", () => {
  const doc = docOf("abc");
  const update = Y.encodeStateAsUpdate(doc);
  expect(decodeYMessage(messageOf(SYNC, (output) => writeSyncStep1(output, doc)))).toEqual({
    kind: "sync-request",
    stateVector: Y.encodeStateVector(doc),
  });
  expect(decodeYMessage(messageOf(SYNC, (output) => writeSyncStep2(output, doc)))).toEqual({ kind: "update", update, isAnswer: true });
  expect(decodeYMessage(messageOf(SYNC, (output) => writeUpdate(output, update)))).toEqual({ kind: "update", update, isAnswer: false });
  const awareness = new Awareness(doc);
  awareness.setLocalState({ user: { name: "Ann" } });
  const message = messageOf(AWARENESS, (output) => encoding.writeVarUint8Array(output, encodeAwarenessUpdate(awareness, [doc.clientID])));
  const decoded = decodeYMessage(message);
  assert(decoded?.kind === "awareness", "an awareness message");
  expect(decoded.first).toBe(doc.clientID);
  expect(statesIn(decoded.bytes)).toEqual([{ client: doc.clientID, clock: 1, json: `{"user":{"name":"Ann"}}` }]);
  expect(decodeYMessage(new Uint8Array([3]))).toEqual({ kind: "awareness-request" });
  awareness.destroy();
});

test("[YPR2] y-protocols decodes what the bridge writes", () => {
  const [doc, other] = [docOf("abc"), new Y.Doc()];
  const bodyOf = (bytes: Uint8Array): decoding.Decoder => {
    const input = decoding.createDecoder(bytes);
    decoding.readVarUint(input);
    return input;
  };
  const answer = encoding.createEncoder();
  readSyncMessage(bodyOf(encodeSyncRequest(Y.encodeStateVector(other))), answer, doc, null);
  readSyncMessage(decoding.createDecoder(encoding.toUint8Array(answer)), encoding.createEncoder(), other, null);
  expect(other.getText("t").toJSON()).toBe("abc");
  for (const encode of [encodeSyncAnswer, encodeUpdate]) {
    const third = new Y.Doc();
    readSyncMessage(bodyOf(encode(Y.encodeStateAsUpdate(doc))), encoding.createEncoder(), third, null);
    expect(third.getText("t").toJSON()).toBe("abc");
  }
  const awareness = new Awareness(other);
  applyAwarenessUpdate(
    awareness,
    decoding.readVarUint8Array(bodyOf(encodeAwareness([{ client: 7, clock: 3, json: `{"mood":"calm"}` }]))),
    null,
  );
  expect(awareness.getStates().get(7)).toEqual({ mood: "calm" });
  awareness.destroy();
});

test("[YPR3] no bytes make the decoder throw", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 64 }), (bytes) => void decodeYMessage(bytes)),
    { numRuns: 2_000 },
  );
  const torn = messageOf(AWARENESS, (output) => encoding.writeVarUint8Array(output, new Uint8Array([0xff, 0xff, 0xff, 0x7f])));
  const long = messageOf(AWARENESS, (output) => encoding.writeVarUint8Array(output, new Uint8Array([1, 7, 0, 2, 0x61])));
  for (const bytes of [new Uint8Array(), torn, long]) expect(decodeYMessage(bytes)).toBeUndefined();
});

test("[YPR4] an awareness message larger than any client's own state is skipped undecoded", () => {
  const long = messageOf(AWARENESS, (output) => encoding.writeVarUint8Array(output, new Uint8Array(256 * 1024 + 1)));
  expect(decodeYMessage(long)).toEqual({ kind: "unknown" });
});

test("[YPR5] a request with a state vector that is torn, or too long to decode at once, is no message", () => {
  const request = (stateVector: Uint8Array): unknown => decodeYMessage(encodeSyncRequest(stateVector))?.kind;
  expect([request(Uint8Array.of(0)), request(Uint8Array.of(1, 7, 3)), request(Uint8Array.of(1, 7))]).toEqual([
    "sync-request",
    "sync-request",
    undefined,
  ]);
  const zeros = (bytes: number): Uint8Array => new Uint8Array(bytes); // A state vector of no client, and bytes that are not read.
  expect([request(zeros(1024 ** 2)), request(zeros(1024 ** 2 + 1))]).toEqual(["sync-request", undefined]);
});
