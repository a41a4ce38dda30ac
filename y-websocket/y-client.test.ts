import * as encoding from "lib0/encoding";
import { Registry } from "prom-client";
import { expect, test } from "vitest";
import * as Y from "yjs";

import { FakeClock } from "../shared/testing/fake-clock.ts";
import { yWebsocketMetrics } from "./metrics.ts";
import { decodeYMessage, encodeAwareness, encodeSyncRequest, encodeUpdate } from "./protocol.ts";
import { YClient, type YRoom } from "./y-client.ts";

const silent = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
const OWN = 42;
const hello = encodeAwareness([{ client: OWN, clock: 1, state: {} }]);
const updateOf = (text: string): Uint8Array => {
  const doc = new Y.Doc();
  doc.getText("t").insert(0, text);
  return Y.encodeStateAsUpdate(doc);
};

/** A room that is in step when the test says so, and saves when it does. */
class FakeRoom {
  readonly room = "notes";
  readonly rights = { read: true, write: true };
  readonly status = "connected";
  readonly unsavedEdits = 1;
  readonly awareness = { clientID: OWN, states: new Map<number, Record<string, unknown>>(), setLocalState: () => {}, on: () => {} };
  saved = true;
  synced = false;
  isDestroyed = false;
  #tell: Readonly<Record<string, (value: never) => void>> = {};

  on(name: string, tell: (value: never) => void): void {
    this.#tell = { ...this.#tell, [name]: tell };
  }

  comeInStep(): void {
    this.synced = true;
    this.#tell["synced"]!(true as never);
  }

  destroy(): void {
    this.isDestroyed = true;
  }
}

function rig({ yWaitingBytesMax = 1_000_000 }: { readonly yWaitingBytesMax?: number } = {}) {
  const clock = new FakeClock(0);
  const room = new FakeRoom();
  const docs: { readonly doc: Y.Doc; readonly number: number }[] = [];
  const sent: string[] = [];
  const closed: number[] = [];
  const socket = { send: (bytes: Uint8Array) => void sent.push(decodeYMessage(bytes)?.kind ?? "none"), close: (code: number) => void closed.push(code), waitingBytes: 0 };
  const openRoom = (doc: Y.Doc): YRoom => {
    docs.push({ doc, number: doc.clientID });
    return room as unknown as YRoom;
  };
  const client = new YClient(socket, { yHeldBytesMax: 1_000_000, yWaitingBytesMax, ySaveMsMax: 5_000 }, { openRoom, clock, log: silent, metrics: yWebsocketMetrics(new Registry()) });
  return { client, clock, room, docs, sent, closed, socket };
}

test("[YCL1] it enters under its own number, and its document never writes under that", () => {
  const { client, docs } = rig();
  client.receive(encodeSyncRequest(new Uint8Array([0])));
  expect(docs).toEqual([]);
  client.receive(hello);
  expect(docs.map(({ number }) => number)).toEqual([OWN]);
  expect(docs[0]!.doc.clientID).not.toBe(OWN);
});

test("[YCL2] a client that shows nothing is let in all the same, after a moment", () => {
  const { clock, docs } = rig();
  clock.turn(249);
  expect(docs).toHaveLength(0);
  clock.turn(1);
  expect(docs).toHaveLength(1);
});

test("[YCL3] it is told nothing, and writes nothing, before its document is the room's", () => {
  const { client, room, docs, sent } = rig();
  for (const bytes of [hello, encodeSyncRequest(new Uint8Array([0])), encodeUpdate(updateOf("mine"))]) client.receive(bytes);
  expect(sent).toEqual([]);
  expect(docs[0]!.doc.getText("t").toJSON()).toBe("");
  Y.applyUpdate(docs[0]!.doc, updateOf("the room's "));
  room.comeInStep();
  expect(sent).toEqual(["sync-request", "awareness", "update"]); // The update answers its request.
  expect(docs[0]!.doc.getText("t").toJSON()).toHaveLength("the room's mine".length);
});

test("[YCL4] it hears something every 15 s, for it takes a silent server for gone after 30", () => {
  const { client, clock, room, sent } = rig();
  client.receive(hello);
  room.comeInStep();
  sent.length = 0;
  clock.turn(45_000);
  expect(sent).toEqual(["awareness", "awareness", "awareness"]);
});

test("[YCL5] one that does not take what it is sent is closed, to come again", () => {
  const { client, room, docs, socket, closed } = rig({ yWaitingBytesMax: 1_000 });
  client.receive(hello);
  room.comeInStep();
  socket.waitingBytes = 1_001;
  Y.applyUpdate(docs[0]!.doc, updateOf("more"));
  expect(closed).toEqual([1013]);
});

test("[YCL6] once it is gone its document stays until what it wrote is saved, for so long and no longer", async () => {
  for (const [savedAtMs, waitedMs] of [[2_000, 2_000], [60_000, 5_000]] as const) {
    const { client, clock, room } = rig();
    client.receive(hello);
    room.comeInStep();
    room.saved = false;
    clock.after(savedAtMs, () => (room.saved = true));
    const left = client.receiveClosed();
    await clock.advance(waitedMs - 200);
    expect(room.isDestroyed).toBe(false);
    await clock.advance(400);
    await left;
    expect(room.isDestroyed).toBe(true);
  }
});

test("[YCL7] what is no update writes nothing, however it begins", () => {
  const { client, room, docs, closed } = rig();
  client.receive(hello);
  room.comeInStep();
  const whole = updateOf("half of it");
  client.receive(encoding.encode((output) => {
    for (const number of [0, 2]) encoding.writeVarUint(output, number);
    encoding.writeVarUint8Array(output, whole.subarray(0, whole.byteLength - 1));
  }));
  expect(closed).toEqual([4400]);
  expect(docs[0]!.doc.getText("t").toJSON()).toBe("");
});
