/**
 * Takes edits from the members to the owner. It keeps each edit and sends it again until the log has it or the owner
 * refuses it. A room's waiting edits are sent together. Refusals and late acks go back to the author.
 */

import type { OwnerReply, SubmittedEdit } from "../../shared/bus/envelope.ts";
import { splitBySize } from "../../shared/collections/split-by-size.ts";
import type { GatewayId, Millis, Position } from "../../shared/ids.ts";
import type { Channel, NackReason } from "../../shared/wire/frames.ts";
import type { ConnectionId } from "../ports.ts";
import type { MemberConnections } from "./members.ts";
import type { FollowedRoomEffect } from "./room-messages.ts";
import type { Unacked } from "./unacked.ts";

/** Maximum size of a message to the owner, unless a single edit is larger. */
export const MESSAGE_BYTES_MAX = 262_144;
const EDIT_OVERHEAD_BYTES = 64;
const FULL_RETRY_MS = 1_000;

export class EditRelay {
  readonly #gateway: GatewayId;
  readonly #channel: Channel;
  readonly #members: MemberConnections;
  readonly #unacked: Unacked;
  /** Edits that are not sent yet: of this turn, or since the room went over its share (`fair-forwarding.ts`). */
  #fresh: SubmittedEdit[] = [];

  constructor(gateway: GatewayId, channel: Channel, members: MemberConnections, unacked: Unacked) {
    this.#gateway = gateway;
    this.#channel = channel;
    this.#members = members;
    this.#unacked = unacked;
  }

  /** `from`: undefined for an edit over HTTP, which is kept as long as an edit of a client that has left. */
  receiveEdit(from: ConnectionId | undefined, edit: SubmittedEdit, now: Millis, effects: FollowedRoomEffect[]): void {
    const { author, counter } = edit;
    const added = this.#unacked.add(edit, now);
    switch (added) {
      case "added":
        this.#fresh.push(edit);
        // A client may write although its join was rejected meanwhile.
        if (from === undefined || !this.#members.has(author.client)) this.#unacked.clientGone(author.client, now);
        return;
      case "held":
        return; // The edit is already on its way: the author repeats it, for example after a reconnect.
      default:
        effects.push(
          { kind: "limit-reached", limit: added },
          from === undefined
            ? { kind: "write-refused", client: author.client, reason: "write-backpressure" }
            : this.#nack([from], counter, "write-backpressure", counter, FULL_RETRY_MS),
        );
    }
  }

  endTurn(effects: FollowedRoomEffect[]): void {
    const fresh = this.#fresh;
    this.#fresh = [];
    this.#send(fresh, effects);
  }

  /** Drops all held edits. The authors receive an answer, and may send their edits again. */
  abandon(): void {
    this.#fresh = [];
    this.#unacked.clear();
  }

  sendAllAgain(now: Millis, effects: FollowedRoomEffect[]): void {
    this.#fresh = [];
    this.sendAgain(this.#unacked.sendAllAgain(now), effects);
  }

  sendAgain(edits: readonly SubmittedEdit[], effects: FollowedRoomEffect[]): void {
    if (edits.length === 0) return;
    effects.push({ kind: "edits-sent-again", count: edits.length });
    this.#send(edits, effects);
  }

  receiveRefusal(
    { client, counter, reason, expected, retryAfterMs }: OwnerReply & { kind: "refused" },
    now: Millis,
    effects: FollowedRoomEffect[],
  ): void {
    // The edit is not from this gateway, or is settled. A forged request names a client that never sent it.
    if (reason === "forged" || !this.#unacked.has(client, counter)) return;
    if (reason === "gap") {
      if (this.#unacked.isSettled(client, expected)) return; // The owner refused it before the missing edit arrived.
      const missed = this.#unacked.sendAgainFrom(client, expected, now);
      if (missed.length > 0) return this.sendAgain(missed, effects);
    }
    this.#unacked.refuse(client, counter);
    effects.push(this.#nack(this.#joinedOf(client), counter, reason, expected, retryAfterMs));
    effects.push({ kind: "write-answered", client, counter, outcome: { kind: "refused", reason, retryAfterMs } });
  }

  receiveWriteRefusal(
    { kind: reason, client, counter }: OwnerReply & { kind: "not-first" | "key-reused" },
    effects: FollowedRoomEffect[],
  ): void {
    this.#unacked.refuse(client, counter);
    effects.push({ kind: "write-answered", client, counter, outcome: { kind: "refused", reason, retryAfterMs: 0 } });
  }

  /**
   * The answer to a repeated edit. Edits that are still on their way to the members are acknowledged by their delivery.
   */
  receiveAck(
    { client, counter, seq, epoch, exact }: OwnerReply & { kind: "acked" },
    position: Position | undefined,
    now: Millis,
    effects: FollowedRoomEffect[],
  ): void {
    this.#unacked.settle(client, counter, now);
    effects.push({ kind: "write-answered", client, counter, outcome: { kind: "committed", epoch, seq } });
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

  #nack(to: readonly ConnectionId[], counter: number, reason: NackReason, expected: number, retryAfterMs: number): FollowedRoomEffect {
    return { kind: "send", to, frame: { type: "nack", channel: this.#channel, counter, reason, expected, retryAfterMs } };
  }

  #send(edits: readonly SubmittedEdit[], effects: FollowedRoomEffect[]): void {
    const gateway = this.#gateway;
    for (const edit of edits) if (edit.mustBeFirst) effects.push({ kind: "send-to-owner", message: { kind: "first-edit", gateway, edit } });
    const others = edits.filter(({ mustBeFirst }) => !mustBeFirst);
    for (const part of splitBySize(others, bytesOf, MESSAGE_BYTES_MAX))
      effects.push({ kind: "send-to-owner", message: { kind: "edits", gateway, edits: part } });
  }
}

/** An upper bound: a character of a user id takes up to three bytes. */
function bytesOf({ author, payload }: SubmittedEdit): number {
  return payload.byteLength + 3 * author.user.length + EDIT_OVERHEAD_BYTES;
}
