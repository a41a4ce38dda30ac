import { createHash } from "node:crypto";

import { Registry } from "prom-client";
import { expect, test } from "vitest";
import * as Y from "yjs";

import type { StoredRecord } from "../shared/bus/stored-record.ts";
import { type Checkpoint, hasDocument } from "../shared/bus/checkpoint.ts";
import { encodeEditsRecord } from "../shared/bus/record.ts";
import type { ClientId, Epoch, Millis, RoomKey, Seq, UnixMillis, UserId } from "../shared/ids.ts";
import { mergeEdits } from "./merge.ts";
import { documentServiceMetrics } from "./metrics.ts";
import { RoomHost, type RoomPorts } from "./room-host.ts";

const ROOM = "acme.notes" as RoomKey;
const ann = "annannannannann1" as ClientId;
const REPLAY_WINDOW_MS = 1_000;
const OPTIONS = {
  snapshotEditsMax: 1,
  snapshotBytesMax: 1,
  snapshotAgeMsMax: 1,
  snapshotIntervalMsMin: 1,
  replayWindowMs: REPLAY_WINDOW_MS,
  boardsHoldMsMax: 60_000,
  checkpointClientsMax: 10,
  checkpointClientMsMax: 60_000,
  checkpointClientsBytesMax: 10_000,
  mergeEditsMax: 100,
  mergeBytesMax: 10_000,
  mergeMsMax: 1_000,
  stalledBytesMax: 400,
  documentIdleMsMax: 1_000,
};

/** Stores that outlive the service, and that fail where they are told to. */
class Stores {
  checkpoint: Checkpoint | undefined;
  revision = 0;
  readonly snapshots = new Map<string, Uint8Array>();
  trimmedBefore = 0;
  failing: { step: string; when: "before" | "after" } | undefined;

  #held: { step: string; until: Promise<void> } | undefined;

  /** The next call of the step waits until the returned function lets it go. */
  hold(step: string): () => void {
    let letGo = (): void => {};
    this.#held = { step, until: new Promise((resolve) => (letGo = resolve)) };
    return letGo;
  }

  async #step<Value>(step: string, effect: () => Value): Promise<Value> {
    if (this.#held?.step === step) {
      const { until } = this.#held;
      this.#held = undefined;
      await until;
    }
    const isFailing = (when: "before" | "after") => this.failing?.step === step && this.failing.when === when;
    if (isFailing("before")) throw new Error(`${step} was not done`);
    const value = effect();
    if (isFailing("after")) throw new Error(`${step} was done, and nobody heard`);
    return value;
  }

  readonly ports: RoomPorts = {
    log: {
      follow: () => {
        throw new Error("the tests hand over the records themselves");
      },
      head: () => Promise.resolve(0 as Seq),
      untrimmed: () => Promise.resolve([]),
      trim: (_, before) => this.#step("trim", () => void (this.trimmedBefore = before)),
    },
    checkpoints: {
      read: () => Promise.resolve({ checkpoint: this.checkpoint, revision: this.revision }),
      write: (_, checkpoint, revision) =>
        this.#step("checkpoint", () => {
          if (revision !== this.revision) return { kind: "superseded" };
          this.checkpoint = checkpoint;
          return { kind: "written", revision: ++this.revision };
        }),
    },
    snapshots: {
      write: (name, bytes) => this.#step("write", () => void this.snapshots.set(name, bytes)),
      read: (name) => this.#step("read back", () => this.snapshots.get(name)),
      remove: (name) => this.#step("remove", () => void this.snapshots.delete(name)),
      list: () => Promise.resolve([...this.snapshots.keys()]),
    },
    merging: { merge: (state, edits) => Promise.resolve(mergeEdits(state, edits)) },
    digest: (bytes) => createHash("sha256").update(bytes).digest("hex"),
  };
}

class Run {
  static #named = 0;
  now = 0 as Millis;
  dateAheadMs = 0;
  readonly metrics = documentServiceMetrics(new Registry());
  readonly room: RoomHost;

  constructor(stores: Stores) {
    const silent = () => {};
    const clock = { now: () => this.now, wallNow: () => (this.now + this.dateAheadMs) as UnixMillis, after: () => silent };
    const log = { debug: silent, info: silent, warn: silent, error: silent };
    this.room = new RoomHost(ROOM, stores.ports, OPTIONS, { clock, log, metrics: this.metrics, newName: () => `run-${++Run.#named}`, boardsFloor: () => Number.POSITIVE_INFINITY });
  }

  async take(...records: readonly StoredRecord[]): Promise<void> {
    for (const record of records) this.room.receiveRecord(record);
    await new Promise(setImmediate); // It may look up a checkpoint first.
  }

  async served(): Promise<string> {
    const served = await this.room.serve();
    if (served.kind !== "snapshot") return served.kind;
    const doc = new Y.Doc();
    Y.applyUpdate(doc, served.state);
    return `${served.position.seq} ${doc.getText("text").toString()}`;
  }
}

/** One record for each letter, at stream sequences 10, 20, 30 and so on. */
function recordsOf(text: string): StoredRecord[] {
  const doc = new Y.Doc();
  const records: StoredRecord[] = [];
  doc.on("update", (payload: Uint8Array) => {
    const seq = records.length + 1;
    const edits = [{ client: ann, counter: seq, parentSeq: (seq - 1) as Seq, payload }];
    const bytes = encodeEditsRecord({ id: `server.${seq}`, time: 0 as UnixMillis, users: new Map([[ann, "ann" as UserId]]), edits: { epoch: 1 as Epoch, firstSeq: seq as Seq, edits } });
    records.push({ room: ROOM, streamSeq: seq * 10, time: 0 as UnixMillis, bytes });
  });
  for (const letter of text) doc.getText("text").insert(doc.getText("text").length, letter);
  return records;
}

const STEPS = ["write", "read back", "checkpoint", "remove", "trim"].flatMap((step) => [{ step, when: "before" as const }, { step, when: "after" as const }]);

test.each(STEPS)("[RMH1] a service that dies $when the step '$step' leaves a whole document to the next", async (failing) => {
  const stores = new Stores();
  const records = recordsOf("abcd");
  const first = new Run(stores);
  await first.take(...records.slice(0, 2));
  await first.room.save();
  await first.take(...records.slice(2));
  first.now = 5_000 as Millis;
  stores.failing = failing;
  await first.room.save();
  first.now = 9_000 as Millis;
  await first.room.trim();
  expect(stores.trimmedBefore).toBeLessThanOrEqual(stores.checkpoint!.streamSeq);

  stores.failing = undefined;
  const next = new Run(stores);
  await next.take(...records.filter(({ streamSeq }) => streamSeq >= stores.trimmedBefore && streamSeq > stores.checkpoint!.streamSeq));
  expect(await next.served()).toBe("4 abcd");
});

test.each(STEPS)("[RMH2] a service that lives on when '$step' fails $when its effect does it again", async (failing) => {
  const stores = new Stores();
  const run = new Run(stores);
  await run.take(...recordsOf("abcd"));
  stores.failing = failing;
  await run.room.save();
  await run.room.trim();
  stores.failing = undefined;
  for (let tries = 0; tries < 2; tries++) {
    run.now = (run.now + 5_000) as Millis;
    if (run.room.isSaveDue(run.now, { pressed: false })) await run.room.save();
    if (run.room.isTrimDue(run.now)) await run.room.trim();
  }
  expect(stores.checkpoint).toMatchObject({ seq: 4, streamSeq: 40 });
  expect(stores.trimmedBefore).toBe(40);
  expect(await run.served()).toBe("4 abcd");
});

test("[RMH11] a date that is set back delays neither the next snapshot nor the trimming", async () => {
  const stores = new Stores();
  const run = new Run(stores);
  const records = recordsOf("ab");
  await run.take(records[0]!);
  await run.room.save();
  run.dateAheadMs = -3_600_000;
  await run.take(records[1]!);
  run.now = 60_000 as Millis;
  expect([run.room.isSaveDue(run.now, { pressed: false }), run.room.isTrimDue(run.now)]).toEqual([true, true]);
});

test("[RMH3] a snapshot that reads back other than it was written is never named", async () => {
  const stores = new Stores();
  const damaged: RoomPorts["snapshots"] = { ...stores.ports.snapshots, write: (name, bytes) => stores.ports.snapshots.write(name, bytes.slice(1)) };
  const run = new Run(Object.assign(new Stores(), { ports: { ...stores.ports, snapshots: damaged } }));
  await run.take(...recordsOf("abcd"));
  await run.room.save();
  expect(stores.checkpoint).toBeUndefined();
  expect(await run.served()).toBe("4 abcd");
});

test("[RMH4] a hole in the log that a newer checkpoint explains is closed from it", async () => {
  const stores = new Stores();
  const records = recordsOf("abcd");
  const slow = new Run(stores);
  await slow.take(records[0]!);
  const other = new Run(stores);
  await other.take(...records.slice(0, 3));
  await other.room.save(); // And trims what it covers, before the slow one has read it.
  await slow.take(records[3]!);
  expect(await slow.served()).toBe("4 abcd");
  await slow.room.save();
  expect(stores.checkpoint).toMatchObject({ seq: 4 });
  expect(stores.checkpoint?.leftOut).toBeUndefined();
});

test("[RMH5] a hole that nothing explains is counted, what is there is served, and the log is never trimmed again", async () => {
  const stores = new Stores();
  const [a, , c] = recordsOf("abc");
  const run = new Run(stores);
  await run.take(a!, c!);
  expect(await run.served()).toBe("3 a"); // Yjs keeps c until b comes.
  await run.room.save();
  expect(stores.checkpoint).toMatchObject({ seq: 3, leftOut: 1 });
  run.now = 60_000 as Millis;
  expect(run.room.isTrimDue(run.now)).toBe(false);
  expect((await run.metrics.gaps.get()).values[0]?.value).toBe(1);
});

test("[RMH6] whoever saves behind a newer checkpoint goes on from that one, and its own snapshot goes", async () => {
  const stores = new Stores();
  const records = recordsOf("abcd");
  const [stale, fresh] = [new Run(stores), new Run(stores)];
  await stale.take(records[0]!);
  await fresh.take(...records);
  await fresh.room.save();
  await stale.room.save();
  expect(stores.checkpoint?.seq).toBe(4);
  expect([...stores.snapshots.keys()]).toEqual([stores.checkpoint?.snapshot.object]);
  expect(await stale.served()).toBe("4 abcd");
});

test("[RMH8] a save that began before a newer checkpoint was found does not go back behind it", async () => {
  const stores = new Stores();
  const records = recordsOf("abcd");
  const slow = new Run(stores);
  await slow.take(records[0]!);
  const other = new Run(stores);
  await other.take(...records.slice(0, 3));
  const letGo = stores.hold("read back");
  const saving = slow.room.save();
  await new Promise(setImmediate);
  await other.room.save();
  const held = stores.checkpoint; // The slow one looks behind a gap, and knows it from then on.
  await slow.take(records[3]!);
  letGo();
  await saving;
  expect(stores.checkpoint).toBe(held);
  expect(await slow.served()).toBe("4 abcd");
});

test("[RMH7] snapshots that a crash left go, and one whose writer was only slow can no longer be named", async () => {
  const stores = new Stores();
  const records = recordsOf("abcd");
  const slow = new Run(stores);
  await slow.take(...records.slice(0, 2));
  await slow.room.save();
  await slow.take(...records.slice(2));
  const next = new Run(stores);
  await next.room.opened;
  const letGo = stores.hold("checkpoint");
  const saving = slow.room.save();
  await new Promise(setImmediate);
  await next.room.removeOrphans([...stores.snapshots.keys()]);
  letGo();
  await saving;
  expect([...stores.snapshots.keys()]).toEqual([stores.checkpoint?.snapshot.object]);
  expect(stores.checkpoint?.seq).toBe(2);
});

test("[RMH9] a room of other payloads than Yjs updates has no snapshot, and its checkpoint says so", async () => {
  const stores = new Stores();
  const run = new Run(stores);
  const payload = new TextEncoder().encode("{}");
  const edits = { epoch: 1 as Epoch, firstSeq: 1 as Seq, edits: [{ client: ann, counter: 1, parentSeq: 0 as Seq, payload }] };
  await run.take({ room: ROOM, streamSeq: 10, time: 0 as UnixMillis, bytes: encodeEditsRecord({ id: "server.1", time: 0 as UnixMillis, users: new Map([[ann, "ann" as UserId]]), edits }) });
  await run.room.save();
  expect([await run.served(), hasDocument(stores.checkpoint!)]).toEqual(["not-a-document", false]);
});

test("[RMH10] a thousand who ask at once cost one merge, and a second one only where edits came meanwhile", async () => {
  const stores = new Stores();
  let merges = 0;
  let finish: () => void = () => {};
  const counting: Stores["ports"] = { ...stores.ports, merging: { merge: (state, edits) => (merges++, new Promise((resolve) => (finish = () => resolve(mergeEdits(state, edits))))) } };
  const run = new Run({ ports: counting } as Stores);
  const [one, two, three] = recordsOf("abc") as [StoredRecord, StoredRecord, StoredRecord];
  await run.take(one, two);

  const crowd = Array.from({ length: 1_000 }, () => run.served());
  await new Promise(setImmediate);
  await run.take(three);
  const late = Array.from({ length: 1_000 }, () => run.served());
  await new Promise(setImmediate);
  finish();
  await new Promise(setImmediate);
  finish();

  expect(new Set(await Promise.all(crowd))).toEqual(new Set(["2 ab"]));
  expect(new Set(await Promise.all(late))).toEqual(new Set(["3 abc"]));
  expect(merges).toBe(2);
});

/** Merging that is given up while it is told to. */
function stallingStores(): { stores: Stores; state: { isStalling: boolean; tries: number } } {
  const stores = new Stores();
  const state = { isStalling: false, tries: 0 };
  const merge: Stores["ports"]["merging"]["merge"] = (base, edits) => {
    state.tries += 1;
    return Promise.resolve(state.isStalling ? "overran" : mergeEdits(base, edits));
  };
  return { stores: Object.assign(new Stores(), { ports: { ...stores.ports, merging: { merge } } }), state };
}

test("[RMH12] a room whose merge takes too long is served as it was, keeps its log, and is tried again after pauses that double", async () => {
  const { stores, state } = stallingStores();
  const run = new Run(stores);
  const records = recordsOf("abcd");
  await run.take(...records.slice(0, 2));
  await run.room.save();
  await run.take(...records.slice(2));
  state.isStalling = true;
  state.tries = 0;
  expect([await run.served(), run.room.isStalled]).toEqual(["2 ab", true]);
  await run.room.save();
  expect(run.room.uncoveredFrom).toBe(30);
  const triedAt = [];
  for (let second = 0; second < 20; second++) {
    run.now = (second * 1_000) as Millis;
    const before = state.tries;
    if (run.room.isSaveDue(run.now, { pressed: true })) await run.room.save();
    if (state.tries > before) triedAt.push(second);
  }
  expect(triedAt).toEqual([2, 6, 14]);
  state.isStalling = false;
  run.now = 60_000 as Millis;
  await run.room.save();
  expect([await run.served(), run.room.isStalled, run.room.uncoveredFrom]).toEqual(["4 abcd", false, undefined]);
});

test("[RMH13] what comes of a stalled room past its bound is left in the log, which the next run reads from the same place", async () => {
  const { stores, state } = stallingStores();
  const run = new Run(stores);
  const records = recordsOf("abcdefghijklmnopqrst");
  await run.take(...records.slice(0, 2));
  await run.room.save();
  state.isStalling = true;
  await run.take(...records.slice(2, 4));
  await run.served();
  await run.take(...records.slice(4));
  run.room.mergeIfDue();
  expect(run.room.heldBytes).toBeLessThan(400);
  await run.take(...records.slice(10));
  expect([run.room.uncoveredFrom, await run.served(), run.room.isSaveDue(99_999 as Millis, { pressed: true })]).toEqual([30, "2 ab", false]);

  state.isStalling = false;
  const next = new Run(stores);
  await next.take(...records.filter(({ streamSeq }) => streamSeq >= 21));
  expect(await next.served()).toBe("20 abcdefghijklmnopqrst");
});
