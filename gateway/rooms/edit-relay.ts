/**
 * From the members to the owner: edits are kept, sent on together at the end of each turn, and sent again until
 * the log has them or the owner refuses them. Refusals and late acks go back to whoever wrote the edit.
 */

import type { Answer, SubmittedEdit } from "../../shared/bus/envelope.ts";
import type { GatewayId, Millis, Position } from "../../shared/ids.ts";
import type { Channel, NackReason } from "../../shared/wire/frames.ts";
import type { Members } from "./members.ts";
import type { ConnectionId } from "../ports.ts";
import type { RoomEffect } from "./room-messages.ts";
import type { Unacked } from "./unacked.ts";

/** One message to the owner carries so much, or one edit. */
export const MESSAGE_BYTES_MAX = 262_144;
/** Client id, numbers and lengths. */
const EDIT_OVERHEAD_BYTES = 64;
const FULL_RETRY_MS = 1_000;

export class EditRelay {
  readonly #gateway: GatewayId;
  readonly #channel: Channel;
  readonly #members: Members;
  readonly #unacked: Unacked;
  /** Taken in this turn, not sent yet. */
  #fresh: SubmittedEdit[] = [];

  constructor(gateway: GatewayId, channel: Channel, members: Members, unacked: Unacked) {
    this.#gateway = gateway;
    this.#channel = channel;
    this.#members = members;
    this.#unacked = unacked;
  }

  receiveEdit(from: ConnectionId, edit: SubmittedEdit, now: Millis, effects: RoomEffect[]): void {
    switch (this.#unacked.add(edit, now)) {
      case "added":
        this.#fresh.push(edit);
        // Its join was turned away while it wrote on in good faith.
        if (!this.#members.has(edit.author.client)) this.#unacked.clientGone(edit.author.client, now);
        return;
      case "held":
        return; // On its way already: its client came back and repeats itself.
      case "full":
        effects.push(this.#nack([from], edit.counter, "write-backpressure", edit.counter, FULL_RETRY_MS));
    }
  }

  /** Of nobody who is in the room: kept for as long as one of somebody who left. */
  receiveWrite(edit: SubmittedEdit, now: Millis, effects: RoomEffect[]): void {
    switch (this.#unacked.add(edit, now)) {
      case "added":
        this.#fresh.push(edit);
        return this.#unacked.clientGone(edit.author.client, now);
      case "held":
        return;
      case "full":
        effects.push({ kind: "write-refused", client: edit.author.client, reason: "write-backpressure" });
    }
  }

  endTurn(effects: RoomEffect[]): void {
    const fresh = this.#fresh;
    this.#fresh = [];
    this.#send(fresh, effects);
  }

  /** What is held goes nowhere: whoever wrote it is told so, and may write it again. */
  giveUp(): void {
    this.#fresh = [];
    this.#unacked.clear();
  }

  sendAllAgain(now: Millis, effects: RoomEffect[]): void {
    this.#fresh = []; // They are among them.
    this.sendAgain(this.#unacked.sendAllAgain(now), effects);
  }

  sendAgain(edits: readonly SubmittedEdit[], effects: RoomEffect[]): void {
    if (edits.length === 0) return;
    effects.push({ kind: "noted", what: "edits-sent-again", count: edits.length });
    this.#send(edits, effects);
  }

  receiveRefused(
    { client, counter, reason, expected, retryAfterMs }: Answer & { kind: "refused" },
    now: Millis,
    effects: RoomEffect[],
  ): void {
    // Not from here, or settled since. A forged resubmission names somebody who never sent it.
    if (reason === "forged" || !this.#unacked.has(client, counter)) return;
    if (reason === "gap") {
      if (this.#unacked.isSettled(client, expected)) return; // Said before that one arrived.
      const missed = this.#unacked.sendAgainFrom(client, expected, now);
      if (missed.length > 0) return this.sendAgain(missed, effects);
    }
    this.#unacked.refuse(client, counter);
    effects.push(this.#nack(this.#joinedOf(client), counter, reason, expected, retryAfterMs));
    effects.push({ kind: "write-answered", client, outcome: { kind: "refused", reason, retryAfterMs } });
  }

  receiveNotFirst({ client, counter }: Answer & { kind: "not-first" }, effects: RoomEffect[]): void {
    this.#unacked.refuse(client, counter);
    effects.push({ kind: "write-answered", client, outcome: { kind: "refused", reason: "not-first", retryAfterMs: 0 } });
  }

  /** A repeat, answered. Its edits may still be on their way to the members: then delivering them acknowledges them. */
  receiveAcked(
    { client, counter, seq, epoch, exact }: Answer & { kind: "acked" },
    position: Position | undefined,
    now: Millis,
    effects: RoomEffect[],
  ): void {
    this.#unacked.settle(client, counter, now);
    effects.push({ kind: "write-answered", client, outcome: { kind: "committed", epoch, seq } });
    const channel = this.#channel;
    const live = this.#members.soleLive(client);
    if (exact && live !== undefined) {
      const delivered = position !== undefined && seq <= position.seq;
      if (delivered) effects.push({ kind: "send", to: [live], frame: { type: "ack", channel, epoch, counter, seq, count: 1 } });
      return;
    }
    const to = this.#joinedOf(client);
    if (to.length > 0) effects.push({ kind: "send", to, frame: { type: "acked-through", channel, epoch, counter, seq } });
  }

  #joinedOf(client: SubmittedEdit["author"]["client"]): ConnectionId[] {
    return this.#members
      .of(client)
      .filter(({ state }) => state.kind !== "waiting")
      .map(({ connection }) => connection);
  }

  #nack(to: readonly ConnectionId[], counter: number, reason: NackReason, expected: number, retryAfterMs: number): RoomEffect {
    return { kind: "send", to, frame: { type: "nack", channel: this.#channel, counter, reason, expected, retryAfterMs } };
  }

  #send(edits: readonly SubmittedEdit[], effects: RoomEffect[]): void {
    for (const edit of edits)
      if (edit.mustBeFirst) effects.push({ kind: "tell", message: { kind: "first-edit", gateway: this.#gateway, edit } });
    this.#sendTogether(
      edits.filter(({ mustBeFirst }) => !mustBeFirst),
      effects,
    );
  }

  #sendTogether(edits: readonly SubmittedEdit[], effects: RoomEffect[]): void {
    let start = 0;
    let bytes = 0;
    edits.forEach((edit, index) => {
      const editBytes = bytesOf(edit);
      if (index > start && bytes + editBytes > MESSAGE_BYTES_MAX) {
        this.#tell(edits.slice(start, index), effects);
        start = index;
        bytes = 0;
      }
      bytes += editBytes;
    });
    if (start < edits.length) this.#tell(edits.slice(start), effects);
  }

  #tell(edits: readonly SubmittedEdit[], effects: RoomEffect[]): void {
    effects.push({ kind: "tell", message: { kind: "edits", gateway: this.#gateway, edits } });
  }
}

/** At most: letters of a user's id take up to three bytes, and thousands of small edits may wait. */
function bytesOf({ author, payload }: SubmittedEdit): number {
  return payload.byteLength + 3 * author.user.length + EDIT_OVERHEAD_BYTES;
}
