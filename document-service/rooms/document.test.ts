import fc from "fast-check";
import { expect, test } from "vitest";
import * as Y from "yjs";

import type { Checkpoint } from "../../shared/bus/checkpoint.ts";
import { encodeEditsRecord, encodeEpochRecord, type StoredRecord } from "../../shared/bus/record.ts";
import type { ClientId, Epoch, RoomKey, Seq, UnixMillis, UserId } from "../../shared/ids.ts";
import { mergeEdits } from "../merge.ts";
import { Document } from "./document.ts";

const ann = "annannannannann1" as ClientId;
const users = new Map([[ann, "ann" as UserId]]);
const options = { silenceMsMax: 60_000, clientsMax: 100, bytesMax: 100_000 };

function stored(streamSeq: number, bytes: Uint8Array): StoredRecord {
  return { room: "acme.notes" as RoomKey, streamSeq, time: (streamSeq * 10) as UnixMillis, bytes };
}

function epoch(streamSeq: number, number: number, head: number): StoredRecord {
  return stored(
    streamSeq,
    encodeEpochRecord({ id: `server.${streamSeq}`, time: streamSeq as UnixMillis, epoch: number as Epoch, head: head as Seq }),
  );
}

function edits(streamSeq: number, epochNumber: number, firstSeq: number, payloads: readonly Uint8Array[]): StoredRecord {
  const all = payloads.map((payload, index) => ({ client: ann, counter: firstSeq + index, parentSeq: 0 as Seq, payload }));
  return stored(
    streamSeq,
    encodeEditsRecord({
      id: `server.${streamSeq}`,
      time: streamSeq as UnixMillis,
      users,
      edits: { epoch: epochNumber as Epoch, firstSeq: firstSeq as Seq, edits: all },
    }),
  );
}

/** The edits of typing `text` one letter at a time. */
function letters(text: string): Uint8Array[] {
  const doc = new Y.Doc();
  const made: Uint8Array[] = [];
  doc.on("update", (edit: Uint8Array) => made.push(edit));
  for (const letter of text) doc.getText("text").insert(doc.getText("text").length, letter);
  return made;
}

function textOf(document: Document): string {
  const doc = new Y.Doc();
  Y.applyUpdate(doc, document.merged!.state);
  return doc.getText("text").toString();
}

function merge(document: Document): void {
  const plan = document.planMerge();
  if (plan !== undefined) document.receiveMerged(plan, mergeEdits(plan.base, plan.edits));
}

/** The checkpoint that a save of the merged state would write. */
function checkpointOf(document: Document, time: number): Checkpoint {
  const { state, applied, clients, leftOut } = document.merged!;
  return {
    ...applied,
    time: time as UnixMillis,
    clients: [...clients],
    leftOut,
    snapshot: { object: `at ${applied.seq}`, bytes: state.byteLength, sha256: "" },
  };
}

test("[DCM1] records in log order become the document, and an epoch record takes no seq", () => {
  const document = new Document(undefined, options);
  const [a, b, c] = letters("abc");
  expect(document.receiveRecord(epoch(3, 1, 0))).toEqual({ kind: "applied", forgotten: 0 });
  expect(document.receiveRecord(edits(4, 1, 1, [a!, b!]))).toEqual({ kind: "applied", forgotten: 0 });
  expect(document.receiveRecord(epoch(9, 2, 2))).toEqual({ kind: "applied", forgotten: 0 });
  expect(document.receiveRecord(edits(10, 2, 3, [c!]))).toEqual({ kind: "applied", forgotten: 0 });
  merge(document);
  expect(textOf(document)).toBe("abc");
  expect(document.merged!.applied).toEqual({ epoch: 2, seq: 3, epochs: [1, 0, 2, 2], streamSeq: 10, recordId: "server.10" });
  expect(document.merged!.clients).toMatchObject([{ client: ann, counter: 3, seq: 3 }]);
});

test("[DCM2] a repeated record changes nothing", () => {
  const document = new Document(undefined, options);
  const record = edits(4, 1, 1, letters("ab"));
  document.receiveRecord(record);
  expect(document.receiveRecord(record)).toEqual({ kind: "repeat" });
  expect(document.pending.edits).toBe(2);
});

test("[DCM3] a record after a gap is taken only when the gap is accepted, and the missing edits then count as left out", () => {
  const document = new Document(undefined, options);
  const [a, , , d] = letters("abcd");
  document.receiveRecord(edits(4, 1, 1, [a!]));
  const behind = edits(9, 1, 4, [d!]);
  expect(document.receiveRecord(behind)).toEqual({ kind: "gap", expected: 2, found: 4 });
  expect(document.applied.seq).toBe(1);
  expect(document.receiveAcrossGap(behind)).toEqual({ kind: "applied", forgotten: 0 });
  expect(document.applied).toEqual({ epoch: 1, seq: 4, epochs: [1, 0], streamSeq: 9, recordId: "server.9" });
  expect(document.leftOut).toBe(2);
});

test("[DCM4] edits that arrive during a merge belong to the next merge", () => {
  const document = new Document(undefined, options);
  const [a, b] = letters("ab");
  document.receiveRecord(edits(4, 1, 1, [a!]));
  const plan = document.planMerge()!;
  document.receiveRecord(edits(5, 1, 2, [b!]));
  document.receiveMerged(plan, mergeEdits(plan.base, plan.edits));
  expect(document.merged!.applied.seq).toBe(1);
  expect(document.pending.edits).toBe(1);
  merge(document);
  expect(textOf(document)).toBe("ab");
});

test("[DCM5] a checkpoint covers its merged edits, and later edits stay uncovered from their first record on", () => {
  const document = new Document(undefined, options);
  const [a, b] = letters("ab");
  document.receiveRecord(edits(4, 1, 1, [a!]));
  expect(document.uncovered).toMatchObject({ edits: 1, fromStreamSeq: 4 });
  merge(document);
  const checkpoint = checkpointOf(document, 100);
  document.receiveRecord(edits(20, 1, 2, [b!]));
  document.receiveSaved(checkpoint);
  expect(document.uncovered).toMatchObject({ edits: 1, fromStreamSeq: 5 });
  merge(document);
  document.receiveSaved(checkpointOf(document, 200));
  expect(document.uncovered).toBeUndefined();
});

test("[DCM6] a newer checkpoint of another service replaces the complete document", () => {
  const ahead = new Document(undefined, options);
  const [a, b, c] = letters("abc");
  ahead.receiveRecord(edits(4, 1, 1, [a!]));
  ahead.receiveRecord(edits(5, 1, 2, [b!, c!]));
  merge(ahead);
  const behind = new Document(undefined, options);
  behind.receiveRecord(edits(4, 1, 1, [a!]));
  const planned = behind.planMerge()!;
  behind.receiveStored(checkpointOf(ahead, 100));
  behind.receiveMerged(planned, mergeEdits(planned.base, planned.edits)); // An earlier record has no place any more.
  expect(behind.applied).toEqual({ epoch: 1, seq: 3, epochs: [1, 0], streamSeq: 5, recordId: "server.5" });
  expect(behind.merged).toBeUndefined();
  behind.receiveState(ahead.merged!.state);
  expect(textOf(behind)).toBe("abc");
});

test("[DCM7] a refused edit and a record that does not decode count as left out, and the checkpoint has the count", () => {
  const document = new Document(undefined, options);
  const [a] = letters("a");
  document.receiveRecord(edits(4, 1, 1, [a!, Uint8Array.of(255)]));
  expect(document.receiveRecord(stored(5, Uint8Array.of(9, 9)))).toEqual({ kind: "unreadable" });
  merge(document);
  expect(document.leftOut).toBe(2);
  const reopened = new Document(checkpointOf(document, 100), options);
  expect(reopened.leftOut).toBe(2);
});

test("[DCM8] an edit cannot read beyond its own bytes", () => {
  const secret = "what stands behind it";
  const [edit] = letters("x");
  const longer = edit!.slice();
  const length = longer.lastIndexOf("x".charCodeAt(0)) - 1;
  expect(longer[length]).toBe(1);
  longer[length] = 1 + secret.length; // The edit claims that its text continues in the neighbouring bytes.
  const neighbour = new TextEncoder().encode(secret);
  const document = new Document(undefined, options);
  document.receiveRecord(edits(4, 1, 1, [longer, neighbour]));
  merge(document);
  expect(document.leftOut).toBe(2);
  expect(textOf(document)).toBe("");
});

test("[DCM9] a state leaves memory only when a snapshot has it", () => {
  const document = new Document(undefined, options);
  document.receiveRecord(edits(4, 1, 1, letters("a")));
  document.releaseState();
  merge(document);
  document.releaseState();
  expect(document.merged).toBeDefined();
  document.receiveSaved(checkpointOf(document, 100));
  document.releaseState();
  expect(document.merged).toBeUndefined();
  expect(document.heldBytes).toBe(0);
});

test("[DCM10] merges, saves, restarts and repeated reads in any order yield the document and the checkpoints of the log", () => {
  const text = "the quick brown fox jumps over the lazy dog";
  const payloads = letters(text);
  const step = fc.oneof(
    { weight: 6, arbitrary: fc.constant("read" as const) },
    fc.constantFrom("merge" as const, "save" as const, "restart" as const, "read-again" as const, "release" as const),
  );
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 12, maxLength: 12 }),
      fc.array(step, { maxLength: 80 }),
      (sizes, steps) => {
        const records: StoredRecord[] = [];
        for (let seq = 1, index = 0; seq <= payloads.length; index++) {
          const size = sizes[index % sizes.length]!;
          if (index % 5 === 0) records.push(epoch(records.length + 1, 1 + index / 5, seq - 1));
          records.push(edits(records.length + 1, 1 + Math.floor(index / 5), seq, payloads.slice(seq - 1, seq - 1 + size)));
          seq += size;
        }
        const snapshots = new Map<string, Uint8Array>();
        let saved: Checkpoint | undefined;
        let document = new Document(undefined, options);
        let next = 0;
        const load = (): void => {
          if (document.merged === undefined) document.receiveState(snapshots.get(document.checkpoint!.snapshot.object)!);
        };
        const save = (): void => {
          load();
          merge(document);
          const checkpoint = checkpointOf(document, 0);
          expect(textOf(document)).toBe(text.slice(0, checkpoint.seq));
          expect(checkpoint.streamSeq).toBeGreaterThanOrEqual(saved?.streamSeq ?? 0);
          if (checkpoint.streamSeq === 0) return;
          snapshots.set(checkpoint.snapshot.object, document.merged!.state);
          saved = checkpoint;
          document.receiveSaved(checkpoint);
        };
        for (const one of [...steps, ...records.map(() => "read" as const), "save" as const]) {
          switch (one) {
            case "read":
              if (next < records.length) expect(document.receiveRecord(records[next++]!).kind).not.toBe("gap");
              break;
            case "read-again":
              next = Math.max(0, next - 3);
              break;
            case "merge":
              load();
              merge(document);
              break;
            case "save":
              save();
              break;
            case "release":
              document.releaseState();
              break;
            case "restart":
              document = new Document(saved, options);
              next = Math.min(next, saved?.streamSeq ?? 0); // The reader restarts at the floor, so it reads again what no checkpoint covers.
              break;
          }
        }
        expect(document.applied.seq).toBe(text.length);
        expect(textOf(document)).toBe(text);
        expect(document.leftOut).toBe(0);
      },
    ),
  );
});

test("[DCM11] after edits were dropped nothing is merged until a checkpoint covers them", () => {
  const [a, b, c] = letters("abc");
  const document = new Document(undefined, options);
  document.receiveRecord(epoch(1, 1, 0));
  document.receiveRecord(edits(2, 1, 1, [a!]));
  merge(document);
  document.receiveRecord(edits(3, 1, 2, [b!]));
  document.receiveRecord(stored(4, Uint8Array.of(255)));
  document.dropPending();
  expect(document.planMerge()).toBeUndefined();
  document.receiveRecord(edits(5, 1, 3, [c!]));
  expect(document.planMerge(), "what came later either").toBeUndefined();
  expect([textOf(document), document.merged!.applied.seq]).toEqual(["a", 1]);

  const { state } = document.merged!;
  document.receiveSaved({ ...checkpointOf(document, 0), streamSeq: 9, seq: 7 as Seq });
  document.receiveState(state);
  document.receiveRecord(edits(10, 1, 8, [a!]));
  expect(document.planMerge()?.edits).toEqual([a]);
});

test.each([
  ["at the seqs of what was lost", 16],
  ["behind them", 18],
])("[DCM12] a checkpoint omits an epoch that the log lost with its end, and the epoch before it continues, %s", (_, firstSeq) => {
  const document = new Document(undefined, options);
  const typed = letters("a text of nineteen letters".slice(0, 19));
  const taken = [epoch(1, 3, 0), edits(2, 3, 1, typed.slice(0, 15)), epoch(3, 5, 15), edits(4, 5, 16, typed.slice(15, 17))];
  for (const record of taken) document.receiveRecord(record);
  const goesOn = edits(9, 3, firstSeq, typed.slice(firstSeq - 1));
  if (document.receiveRecord(goesOn).kind === "gap") document.receiveAcrossGap(goesOn);
  merge(document);
  const { epoch: last, seq, epochs } = checkpointOf(document, 0);
  expect([last, seq, epochs]).toEqual([3, 19, [3, 0]]);
});

test("[DCM13] a repeat is recognised by epoch and seq, even if the log gave the record another stream sequence", () => {
  const document = new Document(undefined, options);
  const [a, b, c] = letters("abc");
  document.receiveRecord(edits(40, 1, 1, [a!]));
  document.receiveRecord(edits(50, 2, 2, [b!]));
  expect(document.receiveRecord(edits(60, 1, 1, [a!])), "an older record in a later place").toEqual({ kind: "repeat" });
  expect(document.receiveRecord(edits(61, 2, 2, [b!]))).toEqual({ kind: "repeat" });
  expect(document.receiveRecord(epoch(41, 3, 2)), "a log that lost its end gives the number again").toEqual({
    kind: "applied",
    forgotten: 0,
  });
  expect(document.receiveRecord(edits(42, 3, 3, [c!]))).toEqual({ kind: "applied", forgotten: 0 });
  merge(document);
  expect([textOf(document), document.leftOut, document.applied.streamSeq]).toEqual(["abc", 0, 42]);
});

test("[DCM14] edits after a released state are not merged into an older snapshot", () => {
  const [a, b, c] = letters("abc");
  const document = new Document(undefined, options);
  document.receiveRecord(edits(2, 1, 1, [a!]));
  merge(document);
  const [older, { state }] = [checkpointOf(document, 0), document.merged!];
  document.receiveRecord(edits(3, 1, 2, [b!]));
  merge(document);
  expect(document.receiveStored(older), "the state is in memory").toBe(true);
  expect([textOf(document), document.uncovered]).toMatchObject(["ab", { edits: 1, fromStreamSeq: 3 }]);
  document.receiveSaved(checkpointOf(document, 0));
  document.releaseState();
  document.receiveRecord(edits(4, 1, 3, [c!]));
  expect(document.receiveStored(older), "only the lost snapshot had the state").toBe(false);
  document.receiveState(state);
  expect([document.planMerge(), document.isIncomplete, textOf(document)]).toEqual([undefined, true, "a"]);
  expect(document.uncovered).toMatchObject({ edits: 2, fromStreamSeq: 3 });
});

test("[DCM15] content that crossed a gap is dropped if a checkpoint covers the missing edits", () => {
  const [a, b, c] = letters("abc");
  const complete = new Document(undefined, options);
  const crossed = new Document(undefined, options);
  complete.receiveRecord(edits(2, 1, 1, [a!]));
  crossed.receiveRecord(edits(2, 1, 1, [a!]));
  merge(complete);
  const older = checkpointOf(complete, 0);
  complete.receiveRecord(edits(3, 1, 2, [b!]));
  merge(complete);
  crossed.receiveAcrossGap(edits(4, 1, 3, [c!]));
  merge(crossed);
  expect(crossed.receiveStored(older)).toBe(true);
  const own = checkpointOf(crossed, 0);
  expect(crossed.receiveStored(checkpointOf(complete, 0))).toBe(false);
  expect([crossed.merged, crossed.isIncomplete]).toEqual([undefined, true]);

  const saved = new Document(older, options);
  saved.receiveAcrossGap(edits(4, 1, 3, [c!]));
  saved.receiveSaved(own);
  expect(saved.receiveStored({ ...own, time: 1 as UnixMillis }), "its own checkpoint accepted the gap").toBe(true);
});
