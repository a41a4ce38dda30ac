/**
 * Decides when edits leave the outbox: by send rate, window, state of the log and rights. Handles refusals. The
 * invariant: an edit that servers may have forgotten is repeated only once the room is synced. Rules SEN1 to SEN9.
 */

import { assertNever } from "../../shared/assert.ts";
import type { ClientId, Millis, Seq } from "../../shared/ids.ts";
import type { Channel, Rights, SavingState } from "../../shared/wire/frames.ts";
import { wholeFrameBytesMax } from "../../shared/wire/parts.ts";
import type { Outbox } from "./outbox.ts";
import { outboxFull, readOnly, tooLarge } from "./problems.ts";
import type { SharedLimits, RoomSessionEffect, RoomFrame } from "./room-messages.ts";

const FRAME_OVERHEAD_BYTES = 64;

/** `synced`: everything up to the head in JOINED has arrived. */
type Where = { readonly channel: Channel; readonly parentSeq: Seq; readonly synced: boolean; readonly saving: SavingState };

export class EditSender {
  readonly #outbox: Outbox;
  #rights: Rights = { read: false, write: false };
  #hasReportedReadOnly = true;
  /** Servers may have forgotten this client's edits, and would order a repeated one again. */
  isLongAway = false;
  /** The smallest edit that the server refused as too large. */
  #bytesRefused = Infinity;

  constructor(outbox: Outbox) {
    this.#outbox = outbox;
  }

  get rights(): Rights {
    return this.#rights;
  }

  joined({ client, rights }: { client: ClientId; rights: Rights }, now: Millis, effects: RoomSessionEffect[]): void {
    this.#rights = rights;
    this.#hasReportedReadOnly = false;
    this.#outbox.joined(client, now);
    if (!this.#outbox.isEmpty) this.#reportReadOnly(effects);
  }

  receiveEdit(payload: Uint8Array, effects: RoomSessionEffect[]): void {
    if (!this.#outbox.add(payload)) effects.push({ kind: "problem", problem: outboxFull(payload) });
    this.#reportReadOnly(effects);
  }

  receiveNack({ counter, reason, expected, retryAfterMs }: RoomFrame & { type: "nack" }, now: Millis, effects: RoomSessionEffect[]): void {
    if (reason === "read-only") {
      this.#rights = { ...this.#rights, write: false };
      return this.#reportReadOnly(effects);
    }
    const refusedBytes = this.#outbox.receiveNack(counter, reason, expected, retryAfterMs, now);
    if (refusedBytes !== undefined) this.#bytesRefused = Math.min(this.#bytesRefused, refusedBytes);
  }

  /** Sends what may be sent now. */
  flush(connection: SharedLimits, { channel, parentSeq, synced, saving }: Where, now: Millis, effects: RoomSessionEffect[]): void {
    if (!this.#rights.write) return;
    const bytesMax = this.bytesMaxOf(connection);
    const resentBytesMax = resentBytesMaxOf(connection);
    while (this.#hasNext(connection, synced, saving, now) && connection.editRate.nextAt(now) <= now) {
      const next = this.#outbox.takeNext(parentSeq, { bytesMax, resentBytesMax }, now);
      if (next.kind === "numbered") return;
      if (next.kind === "taken-back") continue; // The server would close the connection again and again for a larger frame.
      if (next.kind === "too-large") {
        effects.push({ kind: "problem", problem: tooLarge(next.payload, bytesMax) });
        continue;
      }
      connection.editRate.take(now);
      const { counter, payload } = next.edit;
      connection.editRate.spend(payload.byteLength + FRAME_OVERHEAD_BYTES, now);
      effects.push({
        kind: "send",
        frame: { type: "edit", channel, counter, ackedThrough: next.ackedThrough, parentSeq: next.edit.parentSeq, payload },
      });
    }
  }

  /** Repeats unanswered edits. While the log is slow, missing answers are normal. */
  receiveTick(saving: SavingState, now: Millis): void {
    if (this.#rights.write && saving === "saved") this.#outbox.receiveTick(now);
  }

  dueAt(connection: SharedLimits, { synced, saving }: Pick<Where, "synced" | "saving">, now: Millis): Millis | undefined {
    if (!this.#rights.write) return undefined;
    if (this.#hasNext(connection, synced, saving, now)) return connection.editRate.nextAt(now);
    return this.#outbox.dueAt(saving === "saved", now);
  }

  bytesMaxOf({ limits }: SharedLimits): number {
    return Math.min(limits.editBytesMax, wholeFrameBytesMax(limits) - FRAME_OVERHEAD_BYTES, this.#bytesRefused - 1);
  }

  /** An edit that was sent long ago, or is now too large to repeat, waits until the room is synced: the log may have it. */
  #hasNext(connection: SharedLimits, synced: boolean, saving: SavingState, now: Millis): boolean {
    return this.#outbox.hasNext(windowOf(connection, saving), now) && (synced || this.#mayRepeat(connection));
  }

  #mayRepeat(connection: SharedLimits): boolean {
    const { resentBytes, ownThrough } = this.#outbox;
    const isRecent = !this.isLongAway && ownThrough === Infinity; // An earlier page may have sent its edits long ago.
    return resentBytes === 0 || (isRecent && resentBytes <= resentBytesMaxOf(connection));
  }

  /** At most once per join. */
  #reportReadOnly(effects: RoomSessionEffect[]): void {
    if (this.#rights.write || this.#hasReportedReadOnly) return;
    this.#hasReportedReadOnly = true;
    effects.push({ kind: "problem", problem: readOnly() });
  }
}

function resentBytesMaxOf({ limits }: SharedLimits): number {
  return wholeFrameBytesMax(limits) - FRAME_OVERHEAD_BYTES;
}

/** Maximum number of edits on their way: one burst, which is within the server's limits. While the log is slow there is no maximum. */
function windowOf({ editRate }: SharedLimits, saving: SavingState): number {
  switch (saving) {
    case "saved":
      return editRate.burst;
    case "saving":
      return Infinity;
    case "refusing":
      return 1; // One edit, to detect when the log accepts edits again.
    default:
      return assertNever(saving);
  }
}
