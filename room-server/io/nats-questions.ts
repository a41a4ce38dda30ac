/** Questions about rooms, put to all room servers: about one, and whoever owns it replies; about all, and each says which it has. */

import { type RoomListAnswer, RoomListQuestion } from "../../shared/bus/fleet-messages.ts";
import { encodeJson } from "../../shared/bus/json-messages.ts";
import { type RoomAccount, RoomQuestion } from "../../shared/bus/room-account.ts";
import type { Subjects } from "../../shared/bus/subjects.ts";
import { parseRoomKey, type RoomKey, type ServerId } from "../../shared/ids.ts";
import { type NatsConnection, respond } from "../../shared/io/nats.ts";
import { hear } from "../../shared/io/nats-hear.ts";

export function answerQuestions(
  nats: NatsConnection,
  subjects: Subjects,
  server: ServerId,
  accountOf: (room: RoomKey) => Omit<RoomAccount, "server"> | undefined,
): void {
  hear(nats, subjects.askRooms, RoomQuestion, (question, msg) => {
    const room = parseRoomKey(question.room);
    const account = room === undefined ? undefined : accountOf(room);
    if (account !== undefined) respond(msg, encodeJson({ ...account, server } satisfies RoomAccount));
  });
}

export function answerRoomLists(nats: NatsConnection, subjects: Subjects, list: (question: RoomListQuestion) => RoomListAnswer): void {
  hear(nats, subjects.listRooms, RoomListQuestion, (question, msg) => respond(msg, encodeJson(list(question))));
}
