/**
 * The questions of one room's ownership to the log and the checkpoints. Only the newest question about the log's end is
 * answered: an earlier one, from before a lost connection, does not know the requests that the newest one answers.
 */

import { assertNever } from "../../shared/assert.ts";
import type { RoomKey } from "../../shared/ids.ts";
import type { CheckpointReader, RoomLog } from "../ports.ts";
import type { OwnershipEffect, OwnershipInput } from "./ownership-messages.ts";

/** The answer, and each record that is read, is the ownership's next input. */
type StoreQuestion = Extract<OwnershipEffect, { kind: "read-log-end" | "check-log-end" | "advance-log" | "read-checkpoint" | "load" }>;

type StoreQuestionsPorts = { readonly log: RoomLog; readonly checkpoints: CheckpointReader };

export class StoreQuestions {
  readonly #room: RoomKey;
  readonly #ports: StoreQuestionsPorts;
  readonly #receiveRead: (read: OwnershipInput & { kind: "log-read" }) => void;
  /** The newest question about the log's end. */
  #aboutEnd: StoreQuestion | undefined;

  constructor(room: RoomKey, ports: StoreQuestionsPorts, receiveRead: (read: OwnershipInput & { kind: "log-read" }) => void) {
    this.#room = room;
    this.#ports = ports;
    this.#receiveRead = receiveRead;
  }

  /** Undefined: there is a newer question about the log's end, whose answer or failure follows. */
  async ask(question: StoreQuestion): Promise<OwnershipInput | undefined> {
    const isAboutEnd = question.kind === "read-log-end" || question.kind === "check-log-end";
    if (isAboutEnd) this.#aboutEnd = question;
    try {
      const answer = await this.#answerOf(question);
      return isAboutEnd && this.#aboutEnd !== question ? undefined : answer;
    } catch (error) {
      if (isAboutEnd && this.#aboutEnd !== question) return undefined;
      throw error;
    }
  }

  async #answerOf(question: StoreQuestion): Promise<OwnershipInput> {
    const [room, { log, checkpoints }] = [this.#room, this.#ports];
    switch (question.kind) {
      case "read-log-end": {
        // Read before the log's end, because the log contained everything that the checkpoint covers.
        const checkpoint = await checkpoints.newest(room);
        return { kind: "log-end-read", last: await log.readLast(room), checkpoint };
      }
      case "check-log-end":
        return { kind: "log-end-checked", isEnd: await log.endsAt(room, question.streamSeq) };
      case "advance-log":
        return { kind: "log-advanced", missing: await log.advance(room, question.past) };
      case "read-checkpoint":
        return { kind: "checkpoint-read", checkpoint: await checkpoints.newest(room) };
      case "load":
        for await (const { record } of log.read(room, question.after, question.through)) this.#receiveRead({ kind: "log-read", record });
        return { kind: "log-loaded" };
      default:
        return assertNever(question);
    }
  }
}
