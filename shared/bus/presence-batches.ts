/**
 * Presence between one gateway and one room server. A message carries all rooms that the pair shares. An entry waits at
 * most BATCH_MS_MIN, and the number of messages does not depend on the number of rooms.
 */

import { splitBySize } from "../collections/split-by-size.ts";
import { type GatewayId, type Millis, parseRoomKey, type RoomKey } from "../ids.ts";
import type { SendTiming } from "../presence/send-timing.ts";
import { bytes, decodeAll, encode, fields, type Format, gatewayId, kinds, list, number, textOf } from "../wire/fields.ts";
import { PRESENCE_MESSAGE_BYTES_MAX } from "./presence-messages.ts";
import { Tag } from "./record.ts";

/** One room's message: a `PresenceToOwner` to a room server, a `PresenceFromServer` to a gateway. */
export type PresenceEntry = { readonly room: RoomKey; readonly message: Uint8Array };

/** gateway -> room server. `sentAtMs`: the gateway's steady clock in whole milliseconds. */
export type PresenceUp = {
  readonly kind: "up";
  readonly gateway: GatewayId;
  readonly sentAtMs: number;
  readonly entries: readonly PresenceEntry[];
};
/** room server -> gateway. `timing`: the times at which the gateway sends next. */
export type PresenceDown = { readonly kind: "down"; readonly timing: SendTiming; readonly entries: readonly PresenceEntry[] };

const ENTRY_BYTES_MIN = 5;
const entries: Format<readonly PresenceEntry[]> = list(ENTRY_BYTES_MIN, fields({ room: textOf(parseRoomKey, "room"), message: bytes }));
const UP = kinds<PresenceUp>({ up: [Tag.presenceUp, fields({ gateway: gatewayId, sentAtMs: number, entries })] });
const DOWN = kinds<PresenceDown>({
  down: [Tag.presenceDown, fields({ timing: fields<SendTiming>({ tickMs: number, slots: number, sendAtMs: number }), entries })],
});

export function encodePresenceUp(batch: Omit<PresenceUp, "kind">): Uint8Array {
  return encode((out) => UP.write(out, { ...batch, kind: "up" }));
}

/** Messages are views into `bytes`. */
export function decodePresenceUp(bytes: Uint8Array): PresenceUp | undefined {
  return decodeAll(bytes, UP.read);
}

export function encodePresenceDown(batch: Omit<PresenceDown, "kind">): Uint8Array {
  return encode((out) => DOWN.write(out, { ...batch, kind: "down" }));
}

/** Messages are views into `bytes`. */
export function decodePresenceDown(bytes: Uint8Array): PresenceDown | undefined {
  return decodeAll(bytes, DOWN.read);
}

/** Maximum bytes of an entry and of a batch in addition to rooms and messages. The id of a gateway has up to 64 bytes. */
const ENTRY_BYTES = 8;
const BATCH_BYTES = 96;

/** Splits entries into batches that fit a NATS message. `unsent`: number of entries that are too large for any batch. */
export function batchesOf(
  given: readonly PresenceEntry[],
  bytesMax: number,
): { readonly batches: readonly (readonly PresenceEntry[])[]; readonly unsent: number } {
  const bytesOf = ({ room, message }: PresenceEntry): number => ENTRY_BYTES + room.length + message.byteLength;
  const fitting = given.filter((entry) => BATCH_BYTES + bytesOf(entry) <= bytesMax);
  const batches = splitBySize(fitting, bytesOf, Math.min(bytesMax - BATCH_BYTES, PRESENCE_MESSAGE_BYTES_MAX));
  return { batches, unsent: given.length - fitting.length };
}

/** Minimum time between two batches to one peer, so that joins in many rooms share messages even if they happen at different moments. */
const BATCH_MS_MIN = 10;
const NEVER = Number.POSITIVE_INFINITY as Millis;

/** Entries that wait for the next batch to their peer. */
export class PairBatches<Peer> {
  readonly #waiting = new Map<Peer, PresenceEntry[]>();
  /** The time of the last batch to each peer that received one within BATCH_MS_MIN. */
  readonly #sentAt = new Map<Peer, Millis>();

  add(peer: Peer, entry: PresenceEntry): void {
    const waiting = this.#waiting.get(peer);
    if (waiting === undefined) this.#waiting.set(peer, [entry]);
    else waiting.push(entry);
  }

  /** The time at which the next batch may be sent. A time in the past means now. */
  get dueAt(): Millis {
    let dueAt = NEVER;
    for (const peer of this.#waiting.keys()) dueAt = Math.min(dueAt, this.#dueAtOf(peer)) as Millis;
    return dueAt;
  }

  takeDue(now: Millis): { readonly peer: Peer; readonly entries: readonly PresenceEntry[] }[] {
    const due = [...this.#waiting].filter(([peer]) => now >= this.#dueAtOf(peer)).map(([peer, waiting]) => ({ peer, entries: waiting }));
    for (const [peer, at] of this.#sentAt) if (now >= at + BATCH_MS_MIN) this.#sentAt.delete(peer);
    for (const { peer } of due) {
      this.#waiting.delete(peer);
      this.#sentAt.set(peer, now);
    }
    return due;
  }

  /** The peer or the connection to it is lost. */
  forget(peer: Peer): void {
    this.#waiting.delete(peer);
  }

  #dueAtOf(peer: Peer): Millis {
    const sentAt = this.#sentAt.get(peer);
    return (sentAt === undefined ? Number.NEGATIVE_INFINITY : sentAt + BATCH_MS_MIN) as Millis;
  }
}
