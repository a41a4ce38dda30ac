/** Commands a room's owner to hand the room over to the server that an operator names, and records that an operator did it. */

import { setTimeout as sleep } from "node:timers/promises";

import { jetstream } from "@nats-io/jetstream";
import type { KV } from "@nats-io/kv";
import type { z } from "zod";

import {
  SERVER_COMMAND_MS_MAX,
  ServerCommandReply,
  PlannedRoom,
  RoomEntry,
  type ServerCommand,
  type MoveOutcome,
} from "../bus/placement-messages.ts";
import type { Subjects } from "../bus/subjects.ts";
import type { RoomKey, ServerId, UnixMillis } from "../ids.ts";
import { decodeEntry, existingBucket, writeUnlessNewer } from "./jetstream-stores.ts";
import type { NatsConnection } from "./nats.ts";
import { requestReply } from "./nats-json.ts";

const WRITTEN_DOWN_MS = 500;

export type PlacementAccess = { readonly nats: NatsConnection; readonly subjects: Subjects };

export async function moveRoomTo(placed: PlacementAccess, room: RoomKey, to: ServerId): Promise<MoveOutcome> {
  const { subjects } = placed;
  const outcome = await orderOwner(placed, { kind: "hand-over", room, to, generation: 0 });
  if (outcome.kind !== "moved" || outcome.from === to) return outcome;
  const plans = await bucketOf(placed, subjects.planBucket);
  const reason = `an operator moved it from ${outcome.from}`;
  const at = Date.now() as UnixMillis;
  if (plans !== undefined)
    await writeUnlessNewer(plans, PlannedRoom, room, (before) => {
      const kept = before?.replica === to ? undefined : before?.replica;
      return {
        owner: to,
        ...(kept === undefined ? {} : { replica: kept }),
        reason,
        ownerReason: reason,
        generation: before?.generation ?? 1,
        at,
      };
    });
  return outcome;
}

/** Undefined: no answer. */
export function commandServer(
  { nats, subjects }: PlacementAccess,
  server: ServerId,
  order: ServerCommand,
): Promise<ServerCommandReply | undefined> {
  return requestReply(nats, subjects.order(server), order, ServerCommandReply, SERVER_COMMAND_MS_MAX);
}

/** Undefined: placement, or the room server that would create the bucket, never ran. */
export function bucketOf({ nats }: PlacementAccess, name: string): Promise<KV | undefined> {
  return existingBucket(jetstream(nats), name);
}

export async function readEntry<Entry>(bucket: KV | undefined, room: RoomKey, schema: z.ZodType<Entry>): Promise<Entry | undefined> {
  return decodeEntry(schema, await bucket?.get(room));
}

/** The rooms bucket names a new owner a moment after its claim. So ask once more after a rejection. */
async function orderOwner(placed: PlacementAccess, order: ServerCommand & { kind: "hand-over" }): Promise<MoveOutcome> {
  const rooms = await bucketOf(placed, placed.subjects.roomsBucket);
  for (let asked: ServerId | undefined; ;) {
    const entry = await readEntry(rooms, order.room, RoomEntry);
    if (entry === undefined) return { kind: "open-nowhere" };
    // The order succeeded, and only its reply was late.
    if (asked !== undefined && entry.owner === order.to) return { kind: "moved", from: asked };
    const reply = await commandServer(placed, entry.owner, order);
    if (reply?.kind === "done") return { kind: "moved", from: entry.owner };
    if (asked !== undefined)
      return reply === undefined ? { kind: "silent", server: entry.owner } : { kind: "refused", reason: reply.reason };
    asked = entry.owner;
    await sleep(WRITTEN_DOWN_MS);
  }
}
