/**
 * What goes out of a room: lets the outbox's edits go as the pace, the window, the room's state and the rights
 * allow, and takes refusals. Rules SEN1 to SEN7.
 */

import { assertNever } from "../../shared/assert.ts";
import type { ClientId, Millis, Seq } from "../../shared/ids.ts";
import type { Channel, Rights, SavingState } from "../../shared/wire/frames.ts";
import type { Outbox } from "./outbox.ts";
import { outboxFull, readOnly, tooLarge } from "./problems.ts";
import type { Line, RoomEffect, RoomFrame } from "./room-messages.ts";

/** What a frame adds to an edit's payload at most. */
const FRAME_OVERHEAD_BYTES = 64;

/** Where the room is. `synced`: everything up to the head told in JOINED has come. */
export type Where = { readonly channel: Channel; readonly parentSeq: Seq; readonly synced: boolean; readonly saving: SavingState };

export class EditSender {
  readonly #outbox: Outbox;
  #rights: Rights = { read: false, write: false };
  #toldReadOnly = true;
  /** Smaller than any edit that the server refused as too large. */
  #bytesRefused = Infinity;

  constructor(outbox: Outbox) {
    this.#outbox = outbox;
  }

  get rights(): Rights {
    return this.#rights;
  }

  joined({ client, rights }: { client: ClientId; rights: Rights }, now: Millis, effects: RoomEffect[]): void {
    this.#rights = rights;
    this.#toldReadOnly = false;
    this.#outbox.joined(client, now);
    if (!this.#outbox.isEmpty) this.#tellReadOnly(effects);
  }

  receiveEdit(payload: Uint8Array, effects: RoomEffect[]): void {
    if (!this.#outbox.add(payload)) effects.push({ kind: "problem", problem: outboxFull(payload) });
    this.#tellReadOnly(effects);
  }

  receiveNack({ counter, reason, expected, retryAfterMs }: RoomFrame & { type: "nack" }, now: Millis, effects: RoomEffect[]): void {
    if (reason === "read-only") {
      this.#rights = { ...this.#rights, write: false };
      return this.#tellReadOnly(effects);
    }
    const refusedBytes = this.#outbox.receiveNack(counter, reason, expected, retryAfterMs, now);
    if (refusedBytes !== undefined) this.#bytesRefused = Math.min(this.#bytesRefused, refusedBytes);
  }

  /** Sends what may go out now. */
  flush(line: Line, { channel, parentSeq, synced, saving }: Where, now: Millis, effects: RoomEffect[]): void {
    if (!this.#rights.write) return;
    const bytesMax = this.bytesMaxOf(line);
    const resentBytesMax = resentBytesMaxOf(line);
    while (this.#hasNext(line, synced, saving, now) && line.pace.nextAt(now) <= now) {
      const next = this.#outbox.takeNext(parentSeq, { bytesMax, resentBytesMax }, now);
      if (next.kind === "numbered") return;
      if (next.kind === "taken-back") continue; // A larger frame would end the line for good, on each line to come.
      if (next.kind === "too-large") {
        effects.push({ kind: "problem", problem: tooLarge(next.payload, bytesMax) });
        continue;
      }
      line.pace.take(now);
      const { counter, payload } = next.edit;
      line.pace.spend(payload.byteLength + FRAME_OVERHEAD_BYTES, now);
      effects.push({
        kind: "send",
        frame: { type: "edit", channel, counter, ackedThrough: next.ackedThrough, parentSeq: next.edit.parentSeq, payload },
      });
    }
  }

  /** Looks for edits in flight that nobody answers. While the log is slow, nobody does. */
  receiveTick(saving: SavingState, now: Millis): void {
    if (this.#rights.write && saving === "saved") this.#outbox.receiveTick(now);
  }

  dueAt(line: Line, { synced, saving }: Pick<Where, "synced" | "saving">, now: Millis): Millis | undefined {
    if (!this.#rights.write) return undefined;
    if (this.#hasNext(line, synced, saving, now)) return line.pace.nextAt(now);
    return this.#outbox.dueAt(saving === "saved", now);
  }

  bytesMaxOf({ limits }: Line): number {
    return Math.min(limits.editBytesMax, limits.frameBytesMax - FRAME_OVERHEAD_BYTES, this.#bytesRefused - 1);
  }

  /** What is too large to be sent again may be in the log, which shows once the room has caught up. */
  #hasNext(line: Line, synced: boolean, saving: SavingState, now: Millis): boolean {
    return this.#outbox.hasNext(windowOf(line, saving), now) && (synced || this.#outbox.resentBytes <= resentBytesMaxOf(line));
  }

  /** Once for each join. */
  #tellReadOnly(effects: RoomEffect[]): void {
    if (this.#rights.write || this.#toldReadOnly) return;
    this.#toldReadOnly = true;
    effects.push({ kind: "problem", problem: readOnly() });
  }
}

function resentBytesMaxOf({ limits }: Line): number {
  return limits.frameBytesMax - FRAME_OVERHEAD_BYTES;
}

/**
 * No more on their way than may be sent at once: however long the network held them back, they arrive within the
 * limits. While the log is slow acks say nothing about the network, and edits are to reach the room unacknowledged.
 */
function windowOf({ pace }: Line, saving: SavingState): number {
  switch (saving) {
    case "saved":
      return pace.burst;
    case "saving":
      return Infinity;
    case "refusing":
      return 1; // To see when it ends.
    default:
      return assertNever(saving);
  }
}
