/** Appends deletions to JetStream's log, and asks on NATS whether a room still has an owner. */

import { randomUUID } from "node:crypto";

import type { JetStreamClient } from "@nats-io/jetstream";
import { errors } from "nats";

import { encodeToOwner } from "../../shared/bus/envelope.ts";
import { encodeDeletedRecord } from "../../shared/bus/record.ts";
import { partitionOf, type Subjects } from "../../shared/bus/subjects.ts";
import type { Clock } from "../../shared/time/clock.ts";
import type { NatsConnection } from "../../shared/io/nats.ts";
import type { Deletions } from "../ports.ts";

/** An owner sends no reply: it reads its log and has released the room by the next request. */
const OWNER_MS_MAX = 300;

export function jetstreamDeletions(
  nats: NatsConnection,
  jetstream: JetStreamClient,
  subjects: Subjects,
  { partitions }: { partitions: number },
  clock: Pick<Clock, "wallNow">,
): Deletions {
  return {
    append: async (room) => {
      const id = `deletion.${randomUUID()}`;
      const { seq } = await jetstream.publish(
        subjects.log(partitionOf(room, partitions), room),
        encodeDeletedRecord({ id, time: clock.wallNow() }),
        { msgID: id },
      );
      return seq;
    },
    notifyOwner: async (room) => {
      try {
        await nats.request(subjects.toOwner(room), encodeToOwner({ kind: "check-ownership" }), { timeout: OWNER_MS_MAX });
      } catch (error) {
        if (isNobodyThere(error)) return "nobody"; // On any other error an owner may exist.
      }
      return "somebody";
    },
  };
}

function isNobodyThere(error: unknown): boolean {
  return error instanceof errors.NoRespondersError || (error instanceof errors.RequestError && error.isNoResponders());
}
