import { expect, test } from "vitest";

import { ONLY_EDIT_COUNTER_MIN } from "../../shared/bus/envelope.ts";
import type { ClientId, Epoch, Millis, Seq, UnixMillis, UserId } from "../../shared/ids.ts";
import { Sequencer } from "./sequencer.ts";

const ann = "annannannannann1" as ClientId;
const bob = "bobbobbobbobbob1" as ClientId;
const PAYLOAD = new Uint8Array();
const at = (ms: number) => ms as Millis;
const options = { dedupeMsMin: 1_000, writersMax: 100, runsPerWriterMax: 4 };

function sequencer(more: Partial<typeof options> = {}): Sequencer {
  return new Sequencer({ ...options, ...more }, 0 as Seq);
}

function take(sequencer: Sequencer, client: ClientId, counter: number, now = at(0)): void {
  expect(sequencer.placeOf(client, counter, 0, PAYLOAD, now)).toEqual({ kind: "next" });
  sequencer.accept(client, counter);
}

function commit(sequencer: Sequencer, edits: readonly (readonly [ClientId, number])[], now = at(0)): void {
  const firstSeq = (sequencer.head + 1) as Seq;
  sequencer.commit(
    {
      epoch: 1 as Epoch,
      firstSeq,
      edits: edits.map(([client, counter]) => ({ client, counter, parentSeq: 0 as Seq, payload: new Uint8Array() })),
    },
    now,
  );
}

test("[SEQ1] only the next edit of a writer is accepted; a later one is refused with the missing counter", () => {
  const seq = sequencer();
  expect(seq.placeOf(ann, 2, 0, PAYLOAD, at(0))).toEqual({ kind: "gap", expected: 1 });
  take(seq, ann, 1);
  take(seq, ann, 2);
  expect(seq.placeOf(ann, 4, 0, PAYLOAD, at(0))).toEqual({ kind: "gap", expected: 3 });
});

test("[SEQ11] a client id of a write over HTTP stands for one edit: another counter is another body under the same key", () => {
  const seq = sequencer();
  const [body, otherBody] = [ONLY_EDIT_COUNTER_MIN + 7, ONLY_EDIT_COUNTER_MIN + 3];
  expect(seq.placeOf(ann, body, 0, PAYLOAD, at(0))).toEqual({ kind: "next" });
  expect(seq.placeOf(ann, otherBody, 0, PAYLOAD, at(0)), "the first was refused").toEqual({ kind: "next" });
  take(seq, ann, body);
  for (const any of [body, otherBody, body + 1])
    expect(seq.placeOf(ann, any, any - 1, PAYLOAD, at(0)), "the log may not get the first").toEqual({ kind: "waiting" });
  commit(seq, [[ann, body]]);
  expect(seq.placeOf(ann, body, 0, PAYLOAD, at(0))).toEqual({ kind: "committed", seq: 1, exact: true });
  for (const other of [otherBody, body + 1]) expect(seq.placeOf(ann, other, other - 1, PAYLOAD, at(0))).toEqual({ kind: "key-reused" });

  const next = new Sequencer(options, 1 as Seq);
  next.restore([{ client: ann, user: "ann" as UserId, counter: body, seq: 1 as Seq, lastSeen: 0 as UnixMillis }], at(0));
  expect(next.placeOf(ann, body, 0, PAYLOAD, at(0)), "an owner that knows a checkpoint").toEqual({
    kind: "committed",
    seq: 1,
    exact: true,
  });
  expect(next.placeOf(ann, otherBody, 0, PAYLOAD, at(0))).toEqual({ kind: "key-reused" });
});

test("[SEQ2] a repeat is not ordered twice: it waits with its first copy, and afterwards is committed with that seq", () => {
  const seq = sequencer();
  take(seq, ann, 1);
  expect(seq.placeOf(ann, 1, 0, PAYLOAD, at(0))).toEqual({ kind: "waiting" });
  commit(seq, [
    [bob, 1],
    [ann, 1],
  ]);
  expect(seq.placeOf(ann, 1, 0, PAYLOAD, at(0))).toEqual({ kind: "committed", seq: 2, exact: true });
});

test("[SEQ3] all writers' edits share one order without a gap", () => {
  const seq = sequencer();
  commit(seq, [
    [ann, 1],
    [bob, 1],
    [ann, 2],
  ]);
  expect(seq.head).toBe(3);
  expect(seq.placeOf(ann, 2, 0, PAYLOAD, at(0))).toMatchObject({ seq: 3 });
  expect(seq.placeOf(bob, 1, 0, PAYLOAD, at(0))).toMatchObject({ seq: 2 });
});

test("[SEQ4] an edit that was withdrawn leaves no trace: its retry is the next again", () => {
  const seq = sequencer();
  expect(seq.placeOf(ann, 1, 0, PAYLOAD, at(0))).toEqual({ kind: "next" });
  expect(seq.placeOf(ann, 2, 0, PAYLOAD, at(0))).toEqual({ kind: "gap", expected: 1 });
  take(seq, ann, 1);
});

test("[SEQ5] an unknown writer continues after the counter that it knows committed", () => {
  const seq = sequencer();
  expect(seq.placeOf(ann, 9, 7, PAYLOAD, at(0))).toEqual({ kind: "gap", expected: 8 });
  expect(seq.placeOf(ann, 8, 7, PAYLOAD, at(0))).toEqual({ kind: "next" });
});

test("[SEQ6] a writer that knows of commits which the log has lost is not refused forever", () => {
  const seq = sequencer();
  take(seq, ann, 1);
  commit(seq, [[ann, 1]]);
  expect(seq.placeOf(ann, 6, 5, PAYLOAD, at(0))).toEqual({ kind: "next" });
});

test("[SEQ6] a counter that only the writer knows committed is not confirmed: an owner fenced unnoticed has not seen it", () => {
  const seq = sequencer();
  commit(seq, [
    [ann, 1],
    [ann, 2],
  ]);
  expect(seq.placeOf(ann, 6, 5, PAYLOAD, at(0))).toEqual({ kind: "next" });
  seq.accept(ann, 6);
  expect(seq.placeOf(ann, 4, 0, PAYLOAD, at(0))).toEqual({ kind: "waiting" });
  expect(seq.placeOf(ann, 2, 0, PAYLOAD, at(0))).toEqual({ kind: "committed", seq: 2, exact: true });
});

test("[SEQ7] the seqs of a limited number of runs are known exactly; an edit before them was committed at or before the head", () => {
  const seq = sequencer();
  for (let counter = 1; counter <= 6; counter++)
    commit(seq, [
      [ann, counter],
      [bob, counter],
    ]);
  expect(seq.placeOf(ann, 6, 0, PAYLOAD, at(0))).toEqual({ kind: "committed", seq: 11, exact: true });
  expect(seq.placeOf(ann, 3, 0, PAYLOAD, at(0))).toEqual({ kind: "committed", seq: 5, exact: true });
  expect(seq.placeOf(ann, 2, 0, PAYLOAD, at(0))).toEqual({ kind: "committed", seq: 12, exact: false });
});

test("[SEQ7] any number of consecutive edits is one run", () => {
  const seq = sequencer({ runsPerWriterMax: 1 });
  for (let counter = 1; counter <= 500; counter++) commit(seq, [[ann, counter]]);
  expect(seq.placeOf(ann, 1, 0, PAYLOAD, at(0))).toEqual({ kind: "committed", seq: 1, exact: true });
});

test("[SEQ8] a writer is known for the dedupe window after its last edit, and while an edit of it waits", () => {
  const seq = sequencer();
  commit(seq, [[ann, 1]], at(0));
  take(seq, bob, 1, at(0));
  seq.forgetSilent(at(1_000));
  expect(seq.writers).toBe(2);
  seq.forgetSilent(at(1_001));
  expect(seq.writers).toBe(1);
  expect(seq.placeOf(bob, 1, 0, PAYLOAD, at(1_001))).toEqual({ kind: "waiting" });
});

test("[SEQ9] with too many writers the most silent are removed first, and their number is reported", () => {
  const seq = sequencer({ writersMax: 10 });
  for (let number = 0; number < 12; number++) commit(seq, [[`client${String(number).padStart(10, "0")}` as ClientId, 1]], at(number));
  expect(seq.forgetSilent(at(12))).toBe(3);
  expect(seq.placeOf("client0000000003" as ClientId, 1, 0, PAYLOAD, at(12))).toMatchObject({ kind: "committed", exact: true });
  expect(seq.placeOf("client0000000002" as ClientId, 2, 1, PAYLOAD, at(12))).toEqual({ kind: "next" });
});

test("[SEQ9] of writers that were loaded together, those whose last edit is oldest are removed first: active writers repeat edits after a takeover", () => {
  const seq = new Sequencer({ ...options, writersMax: 10 }, 12 as Seq);
  const clients = Array.from({ length: 12 }, (_, number) => `client${String(number).padStart(10, "0")}` as ClientId);
  seq.restore(
    clients.map((client, index) => ({ client, user: "ann" as UserId, counter: 1, seq: (index + 1) as Seq, lastSeen: 0 as UnixMillis })),
    at(5),
  );
  commit(seq, [[clients[0]!, 2]], at(5));
  expect(seq.forgetSilent(at(5))).toBe(3);
  expect(seq.placeOf(clients[0]!, 2, 1, PAYLOAD, at(5)), "a repeat of the newest edit").toMatchObject({ kind: "committed", seq: 13 });
  expect(seq.placeOf(clients[1]!, 2, 1, PAYLOAD, at(5))).toEqual({ kind: "next" });
});

test("[SEQ9] between two removals there are at most twice as many writers, also while a claim loads a long log, and all removed ones are reported", () => {
  const seq = sequencer({ writersMax: 10 });
  let most = 0;
  for (let number = 0; number < 1_000; number++) {
    commit(seq, [[`client${String(number).padStart(10, "0")}` as ClientId, 1]]);
    most = Math.max(most, seq.writers);
  }
  expect(most).toBe(20);
  expect(seq.forgetSilent(at(0)) + seq.writers).toBe(1_000);
  expect(seq.placeOf("client0000000999" as ClientId, 1, 0, PAYLOAD, at(0))).toMatchObject({ kind: "committed", exact: true });
});

test("[SEQ10] the dedupe window of a checkpoint's writers begins at the claim", () => {
  const seq = new Sequencer(options, 40 as Seq);
  seq.restore([{ client: ann, user: "ann" as never, counter: 12, seq: 31 as Seq, lastSeen: 0 as UnixMillis }], at(1_000_000));
  expect(seq.placeOf(ann, 12, 0, PAYLOAD, at(1_000_000))).toEqual({ kind: "committed", seq: 31, exact: true });
  expect(seq.placeOf(ann, 11, 0, PAYLOAD, at(1_000_000))).toEqual({ kind: "committed", seq: 40, exact: false });
  expect(seq.placeOf(ann, 13, 11, PAYLOAD, at(1_000_000))).toEqual({ kind: "next" });
});

test("[SEQ13] other bytes under a committed counter are refused: a copy of the client's process numbers its edits as well", () => {
  const seq = sequencer();
  for (const counter of [1, 2]) take(seq, ann, counter);
  commit(seq, [
    [ann, 1],
    [ann, 2],
  ]);
  for (const counter of [1, 2]) {
    expect(seq.placeOf(ann, counter, 0, PAYLOAD, at(0))).toEqual({ kind: "committed", seq: counter, exact: true });
    expect(seq.placeOf(ann, counter, 0, new Uint8Array([counter]), at(0))).toEqual({ kind: "key-reused" });
  }
});

test("[SEQ13] edits whose digests were dropped because of their age are acknowledged like any repeat", () => {
  const seq = sequencer();
  for (let counter = 1; counter <= 33; counter++) {
    take(seq, ann, counter);
    commit(seq, [[ann, counter]]);
  }
  const kinds = [1, 2, 33].map((counter) => seq.placeOf(ann, counter, 0, new Uint8Array([9]), at(0)).kind);
  expect(kinds).toEqual(["committed", "key-reused", "key-reused"]);
});

test("[SEQ14] an edit that is not accepted leaves no trace of the commits that it states: the writer's earlier edits still get answers", () => {
  const seq = sequencer();
  expect(seq.placeOf(ann, 100, 98, PAYLOAD, at(0))).toEqual({ kind: "gap", expected: 99 });
  expect(seq.placeOf(ann, 99, 98, PAYLOAD, at(0)), "refused afterwards").toEqual({ kind: "next" });
  expect(seq.placeOf(ann, 50, 0, PAYLOAD, at(0)), "no commit would ever answer it").toEqual({ kind: "gap", expected: 1 });
  seq.accept(ann, 99);
  expect(seq.placeOf(ann, 50, 0, PAYLOAD, at(0)), "the commit of 99 answers it").toEqual({ kind: "waiting" });
  commit(seq, [[ann, 99]]);
  expect(seq.placeOf(ann, 50, 0, PAYLOAD, at(0))).toEqual({ kind: "committed", seq: 1, exact: false });
});

test("[SEQ13] a record that repeats an older edit does not shift the digests: the newest edit's repeat is acknowledged", () => {
  const seq = sequencer();
  const payloads = [1, 2, 3].map((byte) => new Uint8Array([byte]));
  const store = (counter: number): void => {
    const edit = { client: ann, counter, parentSeq: 0 as Seq, payload: payloads[counter - 1]! };
    seq.commit({ epoch: 1 as Epoch, firstSeq: (seq.head + 1) as Seq, edits: [edit] }, at(0));
  };
  for (const counter of [1, 2, 3, 2]) store(counter); // The former owner had forgotten the writer when 2 came again.
  expect(seq.placeOf(ann, 3, 0, payloads[2]!, at(0))).toEqual({ kind: "committed", seq: 3, exact: true });
});

test("[SEQ8] a writer that repeats an edit is still known for the dedupe window after the repeat", () => {
  const seq = sequencer();
  take(seq, ann, 1);
  commit(seq, [[ann, 1]], at(0));
  expect(seq.placeOf(ann, 1, 0, PAYLOAD, at(900)).kind).toBe("committed");
  seq.forgetSilent(at(1_900));
  expect(seq.placeOf(ann, 1, 0, PAYLOAD, at(1_900)).kind).toBe("committed");
});

test("[SEQ8] the dedupe window of an edit that waited long for the log begins when the log has it", () => {
  const seq = sequencer();
  take(seq, ann, 1, at(0));
  commit(seq, [[ann, 1]], at(5_000));
  seq.forgetSilent(at(6_000));
  expect(seq.placeOf(ann, 1, 0, PAYLOAD, at(6_000)).kind).toBe("committed");
});

test("[SEQ9] a writer whose edit waits for the log is never removed, and each removed writer is reported once", () => {
  const seq = sequencer({ writersMax: 10 });
  const writer = (index: number) => `writer${String(index).padStart(10, "0")}` as ClientId;
  take(seq, ann, 1, at(0));
  for (let index = 0; index < 11; index++) commit(seq, [[writer(index), 1]], at(1 + index));
  expect(seq.forgetSilent(at(20))).toBe(3);
  expect(seq.placeOf(ann, 1, 0, PAYLOAD, at(20))).toEqual({ kind: "waiting" });
  expect(seq.forgetSilent(at(21))).toBe(0);
});

test("[SEQ7] a seq is exact only within a run of consecutive counters", () => {
  const seq = sequencer();
  commit(seq, [
    [ann, 1],
    [ann, 5],
  ]);
  expect(seq.placeOf(ann, 5, 0, PAYLOAD, at(0))).toEqual({ kind: "committed", seq: 2, exact: true });
  expect(seq.placeOf(ann, 2, 0, PAYLOAD, at(0))).toEqual({ kind: "committed", seq: 2, exact: false });
});

test("[SEQ13] after counters that the log does not have, only the later payloads are compared", () => {
  const seq = sequencer();
  const stored = (counter: number, byte: number) =>
    seq.commit(
      {
        epoch: 1 as Epoch,
        firstSeq: (seq.head + 1) as Seq,
        edits: [{ client: ann, counter, parentSeq: 0 as Seq, payload: new Uint8Array([byte]) }],
      },
      at(0),
    );
  stored(1, 7);
  stored(5, 8);
  expect(seq.placeOf(ann, 4, 0, new Uint8Array([9]), at(0)).kind, "unknown").toBe("committed");
  expect(seq.placeOf(ann, 5, 0, new Uint8Array([9]), at(0)).kind).toBe("key-reused");
});
