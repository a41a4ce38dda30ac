/** Questions about rooms, put to all room servers: about one, and whoever owns it replies; about all, and each says which it has. */

import { type RoomListAnswer, RoomListQuestion } from "../../shared/bus/fleet-messages.ts";
import { decodeJson, encodeJson } from "../../shared/bus/json-messages.ts";
import { type RoomAccount, RoomQuestion } from "../../shared/bus/room-account.ts";
import type { Subjects } from "../../shared/bus/subjects.ts";
import { parseRoomKey, type RoomKey, type ServerId } from "../../shared/ids.ts";
import { crashing, type NatsConnection, respond } from "../../shared/io/nats.ts";

export function answerQuestions(
  nats: NatsConnection,
  subjects: Subjects,
  server: ServerId,
  accountOf: (room: RoomKey) => Omit<RoomAccount, "server"> | undefined,
): void {
  nats.subscribe(subjects.askRooms, {
    callback: crashing((error, msg) => {
      const question = error === null ? decodeJson(RoomQuestion, msg.data) : undefined;
      const room = parseRoomKey(question?.room ?? "");
      const account = room === undefined ? undefined : accountOf(room);
      if (account !== undefined) respond(msg, encodeJson({ ...account, server } satisfies RoomAccount));
    }),
  });
}

export function answerRoomLists(nats: NatsConnection, subjects: Subjects, list: (question: RoomListQuestion) => RoomListAnswer): void {
  nats.subscribe(subjects.listRooms, {
    callback: crashing((error, msg) => {
      const question = error === null ? decodeJson(RoomListQuestion, msg.data) : undefined;
      if (question !== undefined) respond(msg, encodeJson(list(question)));
    }),
  });
}
