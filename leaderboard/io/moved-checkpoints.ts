/**
 * Moves the entries of boards' checkpoints to the partitions of their rooms, after the number of partitions has changed.
 * No leaderboard runs meanwhile. Each entry is written under its new key before the former one is removed.
 */

import type { KV } from "@nats-io/kv";

import { partitionOf } from "../../shared/bus/subjects.ts";
import { parseRoomKey, type RoomKey } from "../../shared/ids.ts";

/** The partition comes first, so that a pass lists its own rooms only. */
export function checkpointKey(room: RoomKey, partitions: number): string {
  return `${partitionOf(room, partitions)}.${room}`;
}

/** May be repeated after a kill. Returns how many entries moved. */
export async function moveCheckpoints(kv: KV, partitions: number): Promise<number> {
  const keys: string[] = [];
  for await (const key of await kv.keys()) keys.push(key);
  let moved = 0;
  for (const key of keys) {
    const room = parseRoomKey(key.slice(key.indexOf(".") + 1));
    if (room === undefined || key === checkpointKey(room, partitions)) continue;
    const entry = await kv.get(key);
    if (entry?.operation !== "PUT") continue;
    await kv.put(checkpointKey(room, partitions), entry.value);
    await kv.purge(key);
    moved += 1;
  }
  return moved;
}
