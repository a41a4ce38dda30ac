/**
 * Decides at the end of each turn which rooms' edits are forwarded to their owners, so that a busy room does not slow
 * the others. Rooms that are active on this gateway have equal shares of its messages. A message costs one unit and its
 * bytes, because that is what it costs in CPU on every later hop. A room within its share is forwarded at once. A room
 * over its share waits, and all its edits of that time go in one message. For example, with a share of 25 units per
 * second, a room with 1,000 small edits per second sends 25 messages of 40 edits.
 *
 * The invariant: an edit waits at most `1000 / roomForwardsPerSecondMin` ms and one step, whatever its room or other
 * rooms send. Rules FWD1 to FWD8, ADR 63.
 */

import type { Millis } from "../../shared/ids.ts";

export type FairForwardingOptions = {
  /** Units per second that the active rooms share. */
  readonly forwardsPerSecond: number;
  /** Units per second of a room's smallest share, above 0. */
  readonly roomForwardsPerSecondMin: number;
};

/** `dueAt`: the time at which the next held room is due. `gathered`: the number of rooms in `rooms` that were held. */
type ForwardingTurn<Room> = { readonly rooms: readonly Room[]; readonly gathered: number; readonly dueAt: Millis | undefined };

/** Bytes that cost about as much CPU as the rest of a message, in gateways, room server and nats-server together. */
const BYTES_PER_UNIT = 16 * 1024;
/** Unused units that a room keeps. */
const CREDIT_MAX = 10;
/** Longer than a room needs for all its credit. A room without a message for this time is no longer active. */
const ACTIVE_MS = 1_000;
/** Held rooms are due in steps, so that their messages share writes and few turns look at them. */
const STEP_MS = 5;

export class FairForwarding<Room> {
  readonly #perSecond: number;
  readonly #perSecondMin: number;
  /** Payload bytes of the edits of this turn, by room. */
  readonly #fresh = new Map<Room, number>();
  /** Payload bytes of the edits of rooms over their share. */
  readonly #held = new Map<Room, number>();
  /** The time at which each active room has paid for its messages. In the past: the room has credit. */
  readonly #paidAt = new Map<Room, Millis>();
  /** Undefined: no room is held. */
  #dueAt: Millis | undefined;
  #sweptAt: Millis | undefined;

  constructor({ forwardsPerSecond, roomForwardsPerSecondMin }: FairForwardingOptions) {
    this.#perSecond = forwardsPerSecond;
    this.#perSecondMin = roomForwardsPerSecondMin;
  }

  receiveEdit(room: Room, bytes: number): void {
    const held = this.#held.get(room);
    if (held === undefined) this.#fresh.set(room, (this.#fresh.get(room) ?? 0) + bytes);
    else this.#held.set(room, held + bytes);
  }

  /** Call at the end of a turn with edits, and at `dueAt`. Removes and returns the rooms that are forwarded now. */
  takeDue(now: Millis): ForwardingTurn<Room> {
    this.#forgetInactive(now);
    const rooms: Room[] = [];
    if (this.#dueAt !== undefined && now >= this.#dueAt) this.#takeHeld(rooms, now);
    const gathered = rooms.length;
    for (const [room, bytes] of this.#fresh) {
      if (this.#isOverShare(room, now)) this.#hold(room, bytes);
      else this.#forward(room, bytes, rooms, now);
    }
    this.#fresh.clear();
    return { rooms, gathered, dueAt: this.#dueAt };
  }

  /** Removes and returns all waiting rooms. */
  takeAll(): readonly Room[] {
    const rooms = [...this.#held.keys(), ...this.#fresh.keys()];
    this.#held.clear();
    this.#fresh.clear();
    this.#dueAt = undefined;
    return rooms;
  }

  #takeHeld(rooms: Room[], now: Millis): void {
    this.#dueAt = undefined;
    for (const [room, bytes] of this.#held) {
      if (this.#isOverShare(room, now)) this.#hold(room, bytes);
      else {
        this.#held.delete(room);
        this.#forward(room, bytes, rooms, now);
      }
    }
  }

  #isOverShare(room: Room, now: Millis): boolean {
    const paidAt = this.#paidAt.get(room);
    return paidAt !== undefined && paidAt > now;
  }

  #hold(room: Room, bytes: number): void {
    this.#held.set(room, bytes);
    const dueAt = (Math.ceil(this.#paidAt.get(room)! / STEP_MS) * STEP_MS) as Millis;
    if (this.#dueAt === undefined || dueAt < this.#dueAt) this.#dueAt = dueAt;
  }

  /** Units per second of each room. */
  get #share(): number {
    return Math.max(this.#perSecondMin, this.#perSecond / Math.max(1, this.#paidAt.size));
  }

  /** However much a message costs, it is paid within the interval of the smallest share. */
  #forward(room: Room, bytes: number, rooms: Room[], now: Millis): void {
    const unitMs = 1_000 / this.#share;
    const from = Math.max(this.#paidAt.get(room) ?? Number.NEGATIVE_INFINITY, now - CREDIT_MAX * unitMs);
    const paidAt = Math.min(from + (1 + bytes / BYTES_PER_UNIT) * unitMs, now + 1_000 / this.#perSecondMin) as Millis;
    this.#paidAt.set(room, paidAt);
    rooms.push(room);
  }

  #forgetInactive(now: Millis): void {
    if (now - (this.#sweptAt ??= now) < ACTIVE_MS) return;
    this.#sweptAt = now;
    for (const [room, paidAt] of this.#paidAt) if (now - paidAt >= ACTIVE_MS) this.#paidAt.delete(room);
  }
}
