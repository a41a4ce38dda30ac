/** Open rooms, asked of the room servers that have them, and of the buckets where placement and operators say where they are to be. */

import { RoomListAnswer } from "../../shared/bus/fleet-messages.ts";
import { encodeJson } from "../../shared/bus/json-messages.ts";
import { PlannedRoom, RoomPin } from "../../shared/bus/placement-messages.ts";
import { RoomAccount, type RoomQuestion } from "../../shared/bus/room-account.ts";
import type { Subjects } from "../../shared/bus/subjects.ts";
import { gatherFrom } from "../../shared/io/gathered.ts";
import type { NatsConnection } from "../../shared/io/nats.ts";
import { askNats } from "../../shared/io/nats-ask.ts";
import { bucketOf, moveRoomTo, readEntry } from "../../shared/io/room-moves.ts";
import type { OpenRooms } from "../ports.ts";

const OWNER_MS_MAX = 1_000;

/** `servers`: how many room servers live, by what is heard of them. */
export function natsOpenRooms(
  nats: NatsConnection,
  subjects: Subjects,
  servers: () => number,
  { logReplicas }: { logReplicas: number },
): OpenRooms {
  const placed = { nats, subjects, replicas: logReplicas };
  return {
    list: (question) => gatherFrom(nats, subjects.listRooms, encodeJson(question), RoomListAnswer, servers()),
    describe: async (room) => {
      const [account, planned, pin] = await Promise.all([
        askNats(nats, subjects.askRooms, { room } satisfies RoomQuestion, RoomAccount, OWNER_MS_MAX),
        bucketOf(placed, subjects.planBucket).then((plans) => readEntry(plans, room, PlannedRoom)),
        bucketOf(placed, subjects.pinsBucket).then((pins) => readEntry(pins, room, RoomPin)),
      ]);
      return { account, planned, pin };
    },
    move: (room, to) => moveRoomTo(placed, room, to),
  };
}
