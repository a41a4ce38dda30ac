/** What an ownership asks of the log and of the checkpoints. The answer is its next input; each record read on the way is one too. */

import { assertNever } from "../../shared/assert.ts";
import type { RoomKey } from "../../shared/ids.ts";
import type { Checkpoints, RoomLog } from "../ports.ts";
import type { OwnershipEffect, OwnershipInput } from "./ownership-messages.ts";

export type StoresQuestion = Extract<OwnershipEffect, { kind: "read-log-end" | "look-behind" | "read-checkpoint" | "load" }>;

export async function askStores(
  room: RoomKey,
  question: StoresQuestion,
  { log, checkpoints }: { readonly log: RoomLog; readonly checkpoints: Checkpoints },
  receiveRead: (read: OwnershipInput & { kind: "log-read" }) => void,
): Promise<OwnershipInput> {
  switch (question.kind) {
    case "read-log-end": {
      const [last, checkpoint] = await Promise.all([log.readLast(room), checkpoints.newest(room)]);
      return { kind: "log-end-read", last, checkpoint };
    }
    case "look-behind":
      return { kind: "looked-behind", isEnd: await log.endsAt(room, question.streamSeq) };
    case "read-checkpoint":
      return { kind: "checkpoint-read", checkpoint: await checkpoints.newest(room) };
    case "load":
      for await (const { record } of log.read(room, question.after, question.through)) receiveRead({ kind: "log-read", record });
      return { kind: "log-read-whole" };
    default:
      return assertNever(question);
  }
}
