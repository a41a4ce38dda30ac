import { expect, test } from "vitest";

import type { GatewayId, Millis, RoomKey } from "../ids.ts";
import { batchesOf, encodePresenceUp, PairBatches } from "./presence-batches.ts";

const entry = (room: number, bytes = 10) => ({ room: `acme.room-${room}` as RoomKey, message: new Uint8Array(bytes) });
const at = (ms: number) => ms as Millis;

test("[PBA1] entries of many rooms to one peer are one batch, in their order", () => {
  const batches = new PairBatches<string>();
  for (let room = 0; room < 50; room++) batches.add("rs-1", entry(room));
  batches.add("rs-2", entry(1));
  const due = batches.takeDue(at(100));
  expect(due.map(({ peer, entries }) => [peer, entries.length])).toEqual([
    ["rs-1", 50],
    ["rs-2", 1],
  ]);
  expect(due[0]!.entries.map(({ room }) => room)).toEqual(Array.from({ length: 50 }, (_, room) => entry(room).room));
  expect(batches.dueAt).toBe(Number.POSITIVE_INFINITY);
});

test("[PBA2] a peer receives at most one batch in 10 ms, however often entries come", () => {
  const batches = new PairBatches<string>();
  const sentAt: number[] = [];
  for (let now = 0; now < 1_000; now++) {
    batches.add("rs-1", entry(now));
    if (batches.dueAt <= now) sentAt.push(...batches.takeDue(at(now)).map(() => now));
  }
  expect(sentAt).toHaveLength(100);
});

test("[PBA3] a lost peer is sent nothing; other peers are sent their messages", () => {
  const batches = new PairBatches<string>();
  batches.add("rs-1", entry(1));
  batches.add("rs-2", entry(2));
  batches.forget("rs-1");
  expect(batches.takeDue(at(0)).map(({ peer }) => peer)).toEqual(["rs-2"]);
});

test("[PBA4] a batch above the maximum size of a NATS message is split, and an entry above it is left out", () => {
  const { batches, unsent } = batchesOf([entry(1, 400), entry(2, 2_000), entry(3, 400), entry(4, 400)], 1_000);
  expect(batches.map((batch) => batch.map(({ room }) => room))).toEqual([[entry(1).room, entry(3).room], [entry(4).room]]);
  expect(unsent).toBe(1);
  const overhead = 96 + 8 + entry(1).room.length;
  expect([0, 1].map((more) => batchesOf([entry(1, 1_000 - overhead + more)], 1_000).unsent)).toEqual([0, 1]);
  expect(batchesOf([entry(1, 400), entry(2, 470)], 1_000).batches, "both take 908 bytes, and 96 belong to the batch").toHaveLength(2);
});

test("[PBA6] a batch from a gateway with the longest id is at most as large as NATS accepts", () => {
  const room = "a".repeat(64).concat(".", "r".repeat(128)) as RoomKey;
  const gateway = "g".repeat(64) as GatewayId;
  for (const bytesMax of [1_000, 200_000])
    for (let less = 0; less < 350; less++) {
      const { batches } = batchesOf([{ room, message: new Uint8Array(bytesMax - less) }], bytesMax);
      for (const entries of batches)
        expect(encodePresenceUp({ gateway, sentAtMs: Number.MAX_SAFE_INTEGER, entries }).byteLength).toBeLessThanOrEqual(bytesMax);
    }
});

test("[PBA5] the interval of one peer is not that of another", () => {
  const batches = new PairBatches<string>();
  const sendAt = (now: number, peer: string): string[] => {
    batches.add(peer, entry(1));
    return batches.takeDue(at(now)).map((due) => due.peer);
  };
  expect([sendAt(0, "rs-1"), sendAt(5, "rs-2"), sendAt(6, "rs-1"), batches.dueAt]).toEqual([["rs-1"], ["rs-2"], [], 10]);
  expect([sendAt(9, "rs-3"), batches.takeDue(at(10)).map(({ peer }) => peer)]).toEqual([["rs-3"], ["rs-1"]]);
});
