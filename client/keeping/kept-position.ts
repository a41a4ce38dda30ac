/**
 * Whether the document kept on this device is of the log that the server has. The same position can stand in another
 * log: one that was lost and begun anew. So the last edit known is asked for once more, and must be the same; where
 * none is known, everything is asked for. Rules KPO1 to KPO5.
 */

import { type ClientId, type Position, type Seq, START } from "../../shared/ids.ts";
import type { EditName } from "./edit-store.ts";
import type { RoomFrame } from "../room/room-messages.ts";

export type Proof = "unknown" | "proven" | "refuted";

export class KeptPosition {
  #unproven: { readonly position: Position; readonly last: EditName | undefined } | undefined;

  get isUnproven(): boolean {
    return this.#unproven !== undefined;
  }

  restored(position: Position, last: EditName | undefined): void {
    this.#unproven = { position, last };
  }

  /** From where the room is to be joined. */
  joinFrom(position: Position): Position {
    if (this.#unproven === undefined) return position;
    const {
      position: { epoch, seq },
      last,
    } = this.#unproven;
    return seq === 1 || last === undefined ? START : { epoch, seq: (seq - 1) as Seq };
  }

  /** Either way it is settled with that. */
  settle(): void {
    this.#unproven = undefined;
  }

  receiveHead(head: Seq): Proof {
    if (this.#unproven === undefined) return "unknown";
    return this.#unproven.last === undefined || head < this.#unproven.position.seq ? "refuted" : "unknown";
  }

  /** `self`: as whom the room is joined. */
  receiveFrame(frame: RoomFrame & { type: "committed" | "ack" }, self: ClientId | undefined): Proof {
    const { position, last } = this.#unproven ?? {};
    const there = position && editAt(position.seq, frame, self);
    if (last === undefined || there === undefined) return "unknown";
    return there.client === last.client && there.counter === last.counter ? "proven" : "refuted";
  }
}

function editAt(seq: Seq, frame: RoomFrame & { type: "committed" | "ack" }, self: ClientId | undefined): EditName | undefined {
  if (frame.type === "committed") return frame.edits.edits[seq - frame.edits.firstSeq];
  const behind = seq - frame.seq;
  return self === undefined || behind < 0 || behind >= frame.count ? undefined : { client: self, counter: frame.counter + behind };
}
