/** Restores one room: carries out the effects of its restore (restore.ts), and passes each outcome back. */

import { assertNever } from "../../shared/assert.ts";
import type { StoredRecord } from "../../shared/bus/record.ts";
import type { RoomKey, UnixMillis } from "../../shared/ids.ts";
import type { Checkpoints, Digest, Histories, Merging, ObjectStore, StoredRoomLog } from "../ports.ts";
import { readVerified, writeVerified } from "../verified-write-host.ts";
import { type RestoredRoom, type RestoreEffect, type RestoreInput, RoomRestore } from "./restore.ts";
import type { RoomObjects } from "./restored-history.ts";

type RestorePorts = {
  readonly log: StoredRoomLog;
  readonly checkpoints: Checkpoints;
  readonly snapshots: ObjectStore;
  readonly histories: Histories;
  readonly history: ObjectStore;
  readonly merging: Merging;
  readonly digest: Digest;
};
/** `newName` returns a name that no other object ever has. */
type RestoreDeps = { readonly newName: () => string; readonly wallNow: () => UnixMillis };

/** Throws if a person must act before the room can be restored. */
export async function restoreRoom(room: RoomKey, objects: RoomObjects, ports: RestorePorts, deps: RestoreDeps): Promise<RestoredRoom> {
  const restore = new RoomRestore(room, objects, { newName: deps.newName, digest: ports.digest });
  let effect = restore.begin();
  for (;;) {
    if (effect.kind === "end") return effect.restored;
    if (effect.kind === "fail") throw new Error(effect.why);
    effect = restore.receive(await outcomeOf(room, effect, ports), deps.wallNow());
  }
}

async function outcomeOf(
  room: RoomKey,
  effect: Exclude<RestoreEffect, { kind: "end" | "fail" }>,
  ports: RestorePorts,
): Promise<RestoreInput> {
  const { log, checkpoints, snapshots, histories, merging, digest } = ports;
  switch (effect.kind) {
    case "read-checkpoint":
      return { kind: "checkpoint-read", found: await checkpoints.read(room) };
    case "read-history":
      return { kind: "history-read", found: await histories.read(room) };
    case "read-log-end":
      return { kind: "log-end-read", end: await log.end(room) };
    case "read-object":
      return { kind: "object-read", bytes: await ports[effect.store].read(effect.object) };
    case "read-verified-snapshot":
      return { kind: "object-read", bytes: await readVerified(snapshots, digest, effect) };
    case "read-records":
      return { kind: "records-read", records: await readRecords(log, room, effect.through) };
    case "merge":
      return { kind: "merged", merged: await merging.merge(effect.state, effect.edits, room, "background") };
    case "write-snapshot":
      return { kind: "snapshot-written", written: await writeVerified(snapshots, digest, effect.object, effect.bytes) };
    case "write-checkpoint":
      return { kind: "checkpoint-written", write: await checkpoints.write(room, effect.entry, effect.revision) };
    case "write-history":
      return { kind: "history-written", write: await histories.write(room, effect.history, effect.revision) };
    default:
      return assertNever(effect);
  }
}

async function readRecords(log: StoredRoomLog, room: RoomKey, through: number): Promise<StoredRecord[]> {
  const records: StoredRecord[] = [];
  for await (const record of log.read(room, 0, through)) records.push({ ...record, bytes: record.bytes.slice() });
  return records;
}
