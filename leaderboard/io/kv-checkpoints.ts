/**
 * Checkpoints. The object store has the boards, under a name that begins with the room and is used once. KV has the
 * name of each room's current object. The KV entry is the commit: a writer that was replaced cannot restore an older
 * checkpoint, even if it knows the entry's revision.
 */

import { deflateRaw, inflateRaw } from "node:zlib";
import { promisify } from "node:util";

import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { z } from "zod";

import { decodeJson, encodeJson, UndecodableEntry } from "../../shared/bus/json-messages.ts";
import { type Epoch, parseRoomKey, type RoomKey, type Seq, type UnixMillis } from "../../shared/ids.ts";
import { kvBucket, objectBucket, replaceEntry, replaceRevision } from "../../shared/io/jetstream-stores.ts";
import { objectNames, readObject, removeObject, withTimeout, removeOrphanChunks } from "../../shared/io/jetstream-object.ts";
import type { NatsConnection } from "../../shared/io/nats.ts";
import { rethrowMistake } from "../../shared/time/pause.ts";
import { type BoardsDump, isAhead } from "../boards/board.ts";
import { readBoards, writeBoards } from "../boards/checkpoint.ts";
import type { BoardCheckpoints } from "../ports.ts";
import { parseWindow, type Window } from "../boards/windows.ts";
import { checkpointKey } from "./moved-checkpoints.ts";

const [deflate, inflate] = [promisify(deflateRaw), promisify(inflateRaw)];
const TRANSFER_MS_MAX = 15_000;
/** Age after which an object without an entry never gets one. */
const NAMED_MS_MAX = 60_000;

const Entry = z.object({
  seq: z
    .int()
    .nonnegative()
    .transform((seq) => seq as Seq),
  /** The epoch and the time of the last edit. Entries of earlier builds lack them. */
  epoch: z
    .int()
    .nonnegative()
    .transform((epoch) => epoch as Epoch)
    .optional(),
  time: z
    .number()
    .transform((time) => time as UnixMillis)
    .optional(),
  activity: z.int().nonnegative().default(0),
  windows: z.array(z.string()),
  object: z.string(),
});

/** Replaces the entry permanently after the deletion of the room. `object`: the object that is still to be removed. */
const DeletedEntry = z.object({ deleted: z.literal(true), windows: z.array(z.string()), object: z.string().optional() });
export const StoredEntry = z.union([DeletedEntry, Entry]);

const REMOVAL_TRIES_MAX = 3;

/** `newName` returns a name that was never used before. */
export async function kvCheckpoints(
  nats: NatsConnection,
  bucket: string,
  options: { replicas: number; partitions: number; newName: () => string },
): Promise<BoardCheckpoints> {
  const kv = await kvBucket(jetstream(nats), bucket, { replicas: options.replicas });
  const store = await objectBucket(jetstream(nats), bucket, options.replicas);
  const objects = { name: bucket, store, manager: await jetstreamManager(nats) };
  const keyOf = (room: RoomKey) => checkpointKey(room, options.partitions);
  /** For an object that no entry names. If NATS does not answer, the next sweep removes it. */
  const tryToRemove = (object: string) => removeObject(objects, object).catch(rethrowMistake);

  /** The entry is also undefined if there is none. */
  const lookAt = async (key: string) => {
    const entry = await kv.get(key);
    if (entry === null || entry.operation !== "PUT") return { entry: undefined, revision: entry?.revision ?? 0, isUndecodable: false };
    const decoded = decodeJson(StoredEntry, entry.value);
    return { entry: decoded, revision: entry.revision, isUndecodable: decoded === undefined };
  };
  const find = async (room: RoomKey) => {
    const { isUndecodable, ...found } = await lookAt(keyOf(room));
    if (isUndecodable) {
      throw new UndecodableEntry(`the boards' checkpoint ${keyOf(room)} in ${bucket} does not decode: was it written by a newer version?`);
    }
    return found;
  };

  return {
    mark: async (room) => {
      const { entry, revision } = await find(room);
      if (entry !== undefined && "deleted" in entry) return { seq: 0 as Seq, activity: 0, windows: [], revision, isDeleted: true };
      const { epoch, time, seq = 0 as Seq, activity = 0 } = entry ?? {};
      return { epoch, time, seq, activity, windows: windowsOf(entry), revision, isDeleted: false };
    },
    read: async (room) => {
      const { entry } = await find(room);
      if (entry === undefined || "deleted" in entry) return undefined;
      const bytes = await withTimeout(TRANSFER_MS_MAX, `reading checkpoint ${entry.object}`, readObject(objects, entry.object)).catch(
        undefinedIfUndecodable,
      );
      const dump = bytes === undefined ? undefined : await boardsIn(bytes);
      if (dump !== undefined) return dump;
      if ((await find(room)).entry?.object !== entry.object) {
        throw new Error(`the boards' checkpoint of room ${room} was replaced while it was read; trying again`);
      }
      throw new UndecodableEntry(
        `the boards' checkpoint ${entry.object} of room ${room} is gone or does not read: remove its entry ${keyOf(room)} in ${bucket} to count the room from what the log still has`,
      );
    },
    write: async (room, dump, revision) => {
      const object = `${room}/${options.newName()}`;
      const begun = performance.now();
      const bytes = await deflate(JSON.stringify(writeBoards(dump)));
      await withTimeout(TRANSFER_MS_MAX, `writing checkpoint ${object}`, store.putBlob({ name: object }, bytes));
      if (performance.now() - begun > NAMED_MS_MAX) {
        throw new Error(`writing checkpoint ${object} took so long that it may have been swept; trying again`);
      }
      // Read as late as possible: a bucket that lost its end assigns the revision that a paused writer knows again.
      const { entry: before } = await find(room);
      if (before !== undefined && ("deleted" in before || isAhead(before, dump.applied))) {
        await tryToRemove(object);
        return { kind: "superseded" };
      }
      const windows = [...new Set(dump.boards.map(({ window }) => window.id))];
      const { epoch, time, seq, activity } = dump.applied;
      const entry = encodeJson({ epoch, time, seq, activity, windows, object });
      const write = await replaceEntry(kv, keyOf(room), entry, revision, ({ value }) => Buffer.compare(value, entry) === 0);
      // An object that the entry may name stays: the next sweep removes it if no entry does.
      if (write.kind === "superseded" && write.isReplaced) await tryToRemove(object);
      if (write.kind === "written" && before !== undefined) await tryToRemove(before.object);
      return write;
    },
    remove: async (room) => {
      for (let tries = 0; tries < REMOVAL_TRIES_MAX; tries++) {
        const { entry, revision } = await lookAt(keyOf(room)); // An entry that does not decode is removed as well.
        const windows = windowsOf(entry);
        const deleted = { deleted: true, windows: windows.map(({ id }) => id) };
        const isFenced = entry !== undefined && "deleted" in entry;
        const fenced = isFenced
          ? revision
          : await replaceRevision(kv, keyOf(room), encodeJson({ ...deleted, object: entry?.object }), revision);
        if (fenced === undefined) continue;
        for (const name of await objectNames(objects)) if (name.startsWith(`${room}/`)) await removeObject(objects, name);
        if (entry?.object === undefined) return windows;
        await removeObject(objects, entry.object);
        await replaceRevision(kv, keyOf(room), encodeJson(deleted), fenced);
        return windows;
      }
      throw new Error(`the boards' checkpoint of room ${room}, which is deleted, is written by another leaderboard as well; trying again`);
    },
    rooms: async (partition) => {
      const rooms: RoomKey[] = [];
      for await (const key of await kv.keys(`${partition}.>`)) {
        const room = parseRoomKey(key.slice(key.indexOf(".") + 1));
        if (room !== undefined) rooms.push(room);
      }
      return rooms;
    },
    sweep: async (ageMsMin) => {
      // Listed before the entries are read, so that an entry written in between protects its object.
      const names = await objectNames(objects);
      const named = new Set<string | undefined>();
      const undecodable = new Set<string>();
      for await (const key of await kv.keys()) {
        const { entry, isUndecodable } = await lookAt(key);
        named.add(entry?.object);
        if (isUndecodable) undecodable.add(key.slice(key.indexOf(".") + 1));
      }
      let swept = 0;
      for (const name of names.filter((unnamed) => !named.has(unnamed) && !undecodable.has(unnamed.slice(0, unnamed.lastIndexOf("/"))))) {
        const info = await store.info(name);
        if (info === null || Date.now() - Date.parse(info.mtime) < ageMsMin) continue;
        await removeObject(objects, name);
        swept += 1;
      }
      return swept + (await removeOrphanChunks(objects, ageMsMin));
    },
  };
}

/** Parts of a replaced object may already be removed. */
function undefinedIfUndecodable(cause: unknown): undefined {
  if (!(cause instanceof UndecodableEntry)) throw cause;
}

async function boardsIn(bytes: Uint8Array): Promise<BoardsDump | undefined> {
  try {
    return readBoards(JSON.parse((await inflate(bytes)).toString()));
  } catch {
    return undefined; // The object is damaged: it does not inflate, or the result is not JSON.
  }
}

function windowsOf(entry: z.output<typeof StoredEntry> | undefined): Window[] {
  return (entry?.windows ?? []).flatMap((id) => parseWindow(id) ?? []);
}
