/**
 * Takes edits from the members to the owner. It keeps each edit and sends it again until the log has it or the owner
 * refuses it. A room's waiting edits are sent together. Refusals and late acks go back to the author. `Unacked` holds
 * the edits that the log may not have.
 */

import type { OwnerReply, SubmittedEdit } from "../../shared/bus/envelope.ts";
import { isSameBytes } from "../../shared/collections/bytes.ts";
import { LazyMap } from "../../shared/collections/lazy-map.ts";
import { splitBySize } from "../../shared/collections/split-by-size.ts";
import type { ClientId, GatewayId, Millis, Position } from "../../shared/ids.ts";
import type { Channel, Counter, NackReason } from "../../shared/wire/frames.ts";
import type { ConnectionId } from "../ports.ts";
import type { MemberConnections } from "./members.ts";
import type { FollowedRoomEffect, UnackedLimit } from "./room-messages.ts";
import type { UnackedBudget } from "./unacked-budget.ts";

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

/** Limits of one room. */
export type UnackedOptions = {
  readonly forwardedEditsPerRoomMax: number;
  readonly forwardedBytesPerRoomMax: number;
  readonly forwardedKeptMs: number;
};

type Writer = {
  /** By counter, ascending. */
  edits: SubmittedEdit[];
  /** Time of the last progress: the first edit was sent, an edit was acknowledged, or all edits were sent again. */
  since: Millis;
  /** Number of repetitions without progress. */
  resends: number;
  /** The log has the edits up to this counter, so older answers about them are ignored. */
  settledThrough: Counter;
  goneSince: Millis | undefined;
};

const HELD_EDIT_OVERHEAD_BYTES = 100;
const RESEND_DOUBLINGS_MAX = 3;
const NONE: readonly never[] = [];

/**
 * The edits of a room that the owner has received and the log may not have, in order for each client. They are sent
 * again when the owner changes or is silent. They outlive their client's connection for some minutes, so that no
 * accepted edit is lost with a room server. Rules UNA1 to UNA10.
 */
export class Unacked {
  readonly #options: UnackedOptions;
  readonly #budget: UnackedBudget;
  readonly #writers = new LazyMap<ClientId, Writer>();
  #edits = 0;
  #bytes = 0;

  constructor(options: UnackedOptions, budget: UnackedBudget) {
    this.#options = options;
    this.#budget = budget;
  }

  get size(): number {
    return this.#edits;
  }

  get payloadBytes(): number {
    return this.#bytes - this.#edits * HELD_EDIT_OVERHEAD_BYTES;
  }

  /** `held`: this gateway already has the edit and has sent it. */
  add(edit: SubmittedEdit, now: Millis): "added" | "held" | UnackedLimit {
    const { client } = edit.author;
    const writer = this.#writers.get(client);
    const at = writer === undefined ? 0 : placeOf(edit.counter, writer.edits);
    if (writer?.edits[at]?.counter === edit.counter) return "held";

    const cost = costOf(edit);
    if (this.#edits >= this.#options.forwardedEditsPerRoomMax) return "room-unacked";
    if (this.#bytes + cost > this.#options.forwardedBytesPerRoomMax) return "room-unacked";
    if (!this.#budget.hasRoomFor(cost)) return "gateway-unacked";
    this.#count(1, cost);
    if (writer === undefined) this.#writers.set(client, { edits: [edit], since: now, resends: 0, settledThrough: 0, goneSince: undefined });
    else if (at === writer.edits.length) writer.edits.push(edit);
    else writer.edits.splice(at, 0, edit);
    return "added";
  }

  has(client: ClientId, counter: Counter): boolean {
    const edits = this.#writers.get(client)?.edits ?? [];
    return edits[placeOf(counter, edits)]?.counter === counter;
  }

  /** Whether this gateway holds the client's edits from that counter on, with these payloads. */
  holds(client: ClientId, counter: Counter, payloads: readonly Uint8Array[]): boolean {
    const edits = this.#writers.get(client)?.edits ?? [];
    const here = edits.slice(placeOf(counter, edits));
    return payloads.every((payload, index) => here[index]?.counter === counter + index && isSameBytes(here[index].payload, payload));
  }

  /** Whether the log is known to have the edit, while later edits of its client are not in it. */
  isSettled(client: ClientId, counter: Counter): boolean {
    return counter <= (this.#writers.get(client)?.settledThrough ?? 0);
  }

  /** The client's edits up to `through` are in the log. Returns those that this gateway held. */
  settle(client: ClientId, through: Counter, now: Millis): readonly SubmittedEdit[] {
    const writer = this.#writers.get(client);
    if (writer === undefined) return NONE;
    writer.settledThrough = Math.max(writer.settledThrough, through);
    const settled = placeOf(through + 1, writer.edits);
    if (settled === 0) return NONE;
    writer.since = now;
    writer.resends = 0;
    return this.#remove(client, writer, 0, settled);
  }

  /** Removes the refused edit, and all later ones of its client. */
  refuse(client: ClientId, from: Counter): void {
    const writer = this.#writers.get(client);
    if (writer !== undefined) this.#remove(client, writer, placeOf(from, writer.edits), writer.edits.length);
  }

  /** The client's edits from `from` on. Empty if `from` itself is not held. */
  sendAgainFrom(client: ClientId, from: Counter, now: Millis): SubmittedEdit[] {
    const writer = this.#writers.get(client);
    if (writer === undefined || !this.has(client, from)) return [];
    writer.since = now;
    return again(writer).slice(placeOf(from, writer.edits));
  }

  /** All edits, each client's in order. */
  sendAllAgain(now: Millis): SubmittedEdit[] {
    const all: SubmittedEdit[] = [];
    for (const writer of this.#writers.values()) {
      writer.since = now;
      for (const edit of again(writer)) all.push(edit);
    }
    return all;
  }

  /**
   * Edits of writers without progress for `silenceMsMax`, which doubles with each repetition. `fruitless`: some edits
   * were repeated before.
   */
  takeOverdue(silenceMsMax: number, now: Millis): { edits: SubmittedEdit[]; fruitless: boolean } {
    const edits: SubmittedEdit[] = [];
    let fruitless = false;
    for (const writer of this.#writers.values()) {
      if (now - writer.since < silenceMsMax * 2 ** Math.min(writer.resends, RESEND_DOUBLINGS_MAX)) continue;
      fruitless ||= writer.resends > 0;
      writer.since = now;
      writer.resends += 1;
      edits.push(...again(writer));
    }
    return { edits, fruitless };
  }

  clientGone(client: ClientId, now: Millis): void {
    const writer = this.#writers.get(client);
    if (writer !== undefined) writer.goneSince = now;
  }

  clientBack(client: ClientId): void {
    const writer = this.#writers.get(client);
    if (writer !== undefined) writer.goneSince = undefined;
  }

  /** Forgets the edits of clients that left too long ago. The clients may have kept them. */
  expire(now: Millis): void {
    for (const [client, writer] of this.#writers) {
      if (writer.goneSince !== undefined && now - writer.goneSince > this.#options.forwardedKeptMs)
        this.#remove(client, writer, 0, writer.edits.length);
    }
  }

  /** Returns the room's share of the gateway's budget. */
  clear(): void {
    this.#count(-this.#edits, -this.#bytes);
    this.#writers.clear();
  }

  #remove(client: ClientId, writer: Writer, start: number, end: number): readonly SubmittedEdit[] {
    const removed = writer.edits.splice(start, end - start);
    this.#count(-removed.length, -removed.reduce((sum, edit) => sum + costOf(edit), 0));
    if (writer.edits.length === 0) this.#writers.delete(client);
    return removed;
  }

  #count(edits: number, bytes: number): void {
    this.#edits += edits;
    this.#bytes += bytes;
    this.#budget.count(edits, bytes);
  }
}

/**
 * A repeated edit names all edits that have been settled since it was written. Otherwise an owner whose log has lost
 * them would wait for them forever.
 */
function again({ edits, settledThrough }: Writer): readonly SubmittedEdit[] {
  return edits.map((edit) => {
    const ackedThrough = Math.min(settledThrough, edit.counter - 1); // An edit never names itself as settled.
    return edit.ackedThrough >= ackedThrough ? edit : { ...edit, ackedThrough };
  });
}

/** The index of the counter's edit, or the index at which it would be inserted. The search starts at the end, where new edits arrive. */
function placeOf(counter: Counter, edits: readonly SubmittedEdit[]): number {
  let at = edits.length;
  while (at > 0 && edits[at - 1]!.counter >= counter) at -= 1;
  return at;
}

function costOf(edit: SubmittedEdit): number {
  return edit.payload.byteLength + HELD_EDIT_OVERHEAD_BYTES;
}
