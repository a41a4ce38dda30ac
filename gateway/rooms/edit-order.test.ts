import * as encoding from "lib0/encoding";
import { expect, test } from "vitest";

import type { ClientId, Epoch, Seq } from "../../shared/ids.ts";
import { writeCommittedEdits, batchFrom, type CommittedBatch } from "../../shared/wire/committed-edits.ts";
import { InOrder } from "./edit-feed.ts";

const ann = "annannannannann1" as ClientId;
const bob = "bobbobbobbobbob1" as ClientId;

/** Memory of one held edit of ten bytes. */
const HELD_BYTES = 210;

/** Edits `first` to `last`, of ten bytes each. */
function batch(first: number, last = first, epoch = 1): CommittedBatch {
  return { epoch: epoch as Epoch, firstSeq: first as Seq, lastSeq: last as Seq, runs: [], bytes: new Uint8Array(10 * (last - first + 1)) };
}

function startedAt(seq: number, heldBytesMax = 1_000): InOrder {
  const order = new InOrder({ heldBytesMax });
  order.startAt({ epoch: 1 as Epoch, seq: seq as Seq });
  return order;
}

const seqs = (batches: readonly CommittedBatch[]): string => batches.map(({ firstSeq, lastSeq }) => `${firstSeq}-${lastSeq}`).join(" ");

test("[ORD1] batches in order pass immediately, repeated ones do not", () => {
  const order = startedAt(0);
  expect(seqs(order.receiveBatch(batch(1, 3)))).toBe("1-3");
  expect(seqs(order.receiveBatch(batch(2, 3)))).toBe("");
  expect(seqs(order.receiveBatch(batch(3, 5)))).toBe("3-5"); // A member that has seq 3 drops it.
  expect(order.position).toEqual({ epoch: 1, seq: 5 });
});

test("[ORD2] a batch after a gap is held, the gap is reported, and the batch passes once the gap is closed", () => {
  const order = startedAt(2);
  expect(seqs(order.receiveBatch(batch(7, 8)))).toBe("");
  expect(seqs(order.receiveBatch(batch(5, 6)))).toBe("");
  expect(order.gap()).toEqual({ after: { epoch: 1, seq: 2 }, through: 4 });
  expect(seqs(order.receiveBatch(batch(3, 4)))).toBe("3-4 5-6 7-8");
  expect(order.gap()).toBeUndefined();
});

test("[ORD3] everything is held until a position is known", () => {
  const order = new InOrder({ heldBytesMax: 1_000 });
  expect(seqs(order.receiveBatch(batch(4)))).toBe("");
  expect(seqs(order.receiveBatch(batch(6)))).toBe("");
  expect(order.gap()).toBeUndefined();
  expect(seqs(order.startAt({ epoch: 1 as Epoch, seq: 4 as Seq }))).toBe("");
  expect(seqs(order.receiveBatch(batch(5)))).toBe("5-5 6-6");
});

test("[ORD4] a batch above the limit of held bytes is dropped, and becomes the next gap", () => {
  const order = startedAt(0, 2 * HELD_BYTES);
  for (const seq of [2, 3, 4]) order.receiveBatch(batch(seq));
  expect(seqs(order.receiveBatch(batch(1)))).toBe("1-1 2-2 3-3");
  order.receiveBatch(batch(6));
  expect(order.gap()).toMatchObject({ through: 5 });
});

test("[ORD5] a room whose log was lost begins again at a lower position", () => {
  const order = startedAt(100);
  order.receiveBatch(batch(12, 12, 2)); // Older than the position.
  expect(seqs(order.startAt({ epoch: 2 as Epoch, seq: 11 as Seq }))).toBe("");
  expect(seqs(order.receiveBatch(batch(12, 12, 2)))).toBe("12-12");
});

test("[ORD8] delivered edits are beyond the beginning of a later owner, and never beyond an earlier owner's head", () => {
  const order = startedAt(100);
  const isBeyond = (epoch: number, seq: number): boolean => order.isBeyond({ epoch: epoch as Epoch, seq: seq as Seq });
  expect([isBeyond(2, 80), isBeyond(2, 100), isBeyond(1, 80)]).toEqual([true, false, false]);
  expect(new InOrder({ heldBytesMax: 1 }).isBeyond({ epoch: 2 as Epoch, seq: 0 as Seq }), "nothing was delivered").toBe(false);
});

test("[ORD9] batches held for a former owner are not delivered, even after the gap before them is closed", () => {
  const order = startedAt(0, 2 * HELD_BYTES);
  for (const seq of [3, 4]) order.receiveBatch(batch(seq));
  order.forgetHeld();
  expect(order.gap()).toBeUndefined();
  expect(seqs(order.receiveBatch(batch(1, 2, 2)))).toBe("1-2");
  expect(seqs([...order.receiveBatch(batch(5, 5, 2)), ...order.receiveBatch(batch(4, 4, 2))]), "there is room again").toBe("");
  expect(seqs(order.receiveBatch(batch(3, 3, 2)))).toBe("3-3 4-4 5-5");
});

test("[ORD10] a held batch does not keep the buffer in which it arrived", () => {
  const order = startedAt(0);
  order.receiveBatch({ ...batch(2), bytes: new Uint8Array(65_536).subarray(100, 110) });
  expect(order.receiveBatch(batch(1)).map(({ bytes }) => bytes.buffer.byteLength)).toEqual([10, 10]);
});

test("[ORD11] everything is held until the owner confirms that its log has the delivered edits", () => {
  const order = startedAt(2);
  order.doubt();
  expect(seqs(order.receiveBatch(batch(3, 3, 2)))).toBe("");
  expect([order.isUnconfirmed, order.gap()]).toEqual([true, undefined]);
  expect(seqs(order.confirm())).toBe("3-3");
  expect([order.isUnconfirmed, seqs(order.receiveBatch(batch(4, 4, 2)))]).toEqual([false, "4-4"]);
});

test("[ORD12] a new start position ends the wait for the owner's confirmation, which is not needed if nothing was delivered", () => {
  const order = startedAt(2);
  order.doubt();
  order.receiveBatch(batch(6, 6, 2));
  expect(seqs(order.startAt({ epoch: 2 as Epoch, seq: 5 as Seq }))).toBe("6-6");
  const fresh = startedAt(0);
  fresh.doubt();
  expect([order.isUnconfirmed, fresh.isUnconfirmed, new InOrder({ heldBytesMax: 1 }).isUnconfirmed]).toEqual([false, false, false]);
});

test("[ORD13] the position takes the next owner's epoch if that owner begins directly after it", () => {
  const begin = (seq: number) => ({ epoch: 2 as Epoch, seq: seq as Seq });
  const [level, behind, doubtful] = [startedAt(3), startedAt(3), startedAt(3)];
  level.receiveNext(begin(3));
  behind.receiveNext(begin(4));
  doubtful.doubt();
  doubtful.receiveNext(begin(3));
  expect([level, behind, doubtful].map(({ position }) => position?.epoch)).toEqual([2, 1, 1]);
});

test("[ORD6] a batch is divided into runs of one author each, without reading payloads", () => {
  const payload = new Uint8Array(5);
  const edits = [
    [ann, 4],
    [ann, 5],
    [bob, 1],
    [ann, 6],
    [ann, 9],
  ] as const;
  const bytes = encoding.encode((out) =>
    writeCommittedEdits(out, {
      epoch: 3 as Epoch,
      firstSeq: 10 as Seq,
      edits: edits.map(([client, counter]) => ({ client, counter, parentSeq: 9 as Seq, payload })),
    }),
  );
  expect(batchFrom(bytes)).toEqual({
    epoch: 3,
    firstSeq: 10,
    lastSeq: 14,
    bytes,
    runs: [
      { client: ann, counter: 4, seq: 10, count: 2 },
      { client: bob, counter: 1, seq: 12, count: 1 },
      { client: ann, counter: 6, seq: 13, count: 1 },
      { client: ann, counter: 9, seq: 14, count: 1 },
    ],
  });
});

test("[ORD7] truncated or other bytes are no committed edits", () => {
  const edits = [{ client: ann, counter: 1, parentSeq: 0 as Seq, payload: new Uint8Array(5) }];
  const bytes = encoding.encode((out) => writeCommittedEdits(out, { epoch: 3 as Epoch, firstSeq: 10 as Seq, edits }));
  for (let length = 0; length < bytes.length; length++) expect(batchFrom(bytes.slice(0, length))).toBeUndefined();
  expect(batchFrom(new Uint8Array([...bytes, 0]))).toBeUndefined();
});
