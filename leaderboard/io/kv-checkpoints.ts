/**
 * Checkpoints: the boards in the object store under a name used once, and in KV which of them is the room's.
 * The KV entry is the commit; a writer that was replaced unknowingly cannot put back an older one.
 */

import { deflateRaw, inflateRaw } from "node:zlib";
import { promisify } from "node:util";

import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { z } from "zod";

import { decodeJson, encodeJson } from "../../shared/bus/placement-messages.ts";
import { partitionOf } from "../../shared/bus/subjects.ts";
import { parseRoomKey, type RoomKey, type Seq } from "../../shared/ids.ts";
import { kvBucket, objectBucket } from "../../shared/io/copies.ts";
import { inTime } from "../../shared/io/in-time.ts";
import { replace } from "../../shared/io/kv-replace.ts";
import type { NatsConnection } from "../../shared/io/nats.ts";
import { readBoards, writeBoards } from "../checkpoint.ts";
import type { Checkpoints } from "../ports.ts";
import { parseWindow } from "../windows.ts";

const [deflate, inflate] = [promisify(deflateRaw), promisify(inflateRaw)];
const TRANSFER_MS_MAX = 15_000;

const Entry = z.object({ seq: z.int().nonnegative().transform((seq) => seq as Seq), activity: z.int().nonnegative().default(0), windows: z.array(z.string()), object: z.string() });

/** `newName` gives a name that was never given before. */
export async function kvCheckpoints(nats: NatsConnection, bucket: string, options: { replicas: number; partitions: number; newName: () => string }): Promise<Checkpoints> {
  const kv = await kvBucket(jetstream(nats), bucket, { replicas: options.replicas });
  const objects = await objectBucket(jetstream(nats), bucket, options.replicas);
  const manager = await jetstreamManager(nats);
  const remove = async (object: string): Promise<void> => {
    await objects.delete(object);
    // What is left is a note that the object was deleted. Names are never used again: nobody needs it.
    const name = Buffer.from(object).toString("base64").replaceAll("+", "-").replaceAll("/", "_");
    await manager.streams.purge(`OBJ_${bucket}`, { filter: `$O.${bucket}.M.${name}` });
  };
  const keyOf = (room: RoomKey) => `${partitionOf(room, options.partitions)}.${room}`;

  const find = async (room: RoomKey) => {
    const entry = await kv.get(keyOf(room));
    if (entry === null || entry.operation !== "PUT") return { entry: undefined, revision: entry?.revision ?? 0 };
    const decoded = decodeJson(Entry, entry.value);
    if (decoded === undefined) throw new Error(`the boards' checkpoint of room ${room} does not decode: was it written by a newer version?`);
    return { entry: decoded, revision: entry.revision };
  };

  return {
    mark: async (room) => {
      const { entry, revision } = await find(room);
      const windows = (entry?.windows ?? []).flatMap((id) => parseWindow(id) ?? []);
      return { seq: entry?.seq ?? (0 as Seq), activity: entry?.activity ?? 0, windows, revision };
    },
    read: async (room) => {
      const { entry } = await find(room);
      if (entry === undefined) return undefined;
      const bytes = await inTime(TRANSFER_MS_MAX, `reading checkpoint ${entry.object}`, objects.getBlob(entry.object));
      const dump = bytes === null ? undefined : readBoards(JSON.parse((await inflate(bytes)).toString()));
      if (dump === undefined) throw new Error(`the boards' checkpoint ${entry.object} of room ${room} is gone or does not read: remove its entry ${keyOf(room)} in ${bucket} to count the room from what the log still has`);
      return dump;
    },
    write: async (room, dump, revision) => {
      const object = options.newName();
      const bytes = await deflate(JSON.stringify(writeBoards(dump)));
      const before = (await find(room)).entry?.object;
      await inTime(TRANSFER_MS_MAX, `writing checkpoint ${object}`, objects.putBlob({ name: object }, bytes));
      const windows = [...new Set(dump.boards.map(({ window }) => window.id))];
      const written = await replace(kv, keyOf(room), encodeJson({ seq: dump.applied.seq, activity: dump.applied.activity, windows, object }), revision);
      const found = written === undefined ? await find(room) : undefined;
      if (found !== undefined && found.entry?.object !== object) {
        await remove(object);
        return { kind: "superseded" };
      }
      if (before !== undefined) await remove(before);
      return { kind: "written", revision: written ?? found?.revision ?? revision };
    },
    rooms: async (partition) => {
      const rooms: RoomKey[] = [];
      for await (const key of await kv.keys(`${partition}.>`)) {
        const room = parseRoomKey(key.slice(key.indexOf(".") + 1));
        if (room !== undefined) rooms.push(room);
      }
      return rooms;
    },
  };
}
