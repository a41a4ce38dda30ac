/**
 * Turns for long answers, so that a long document is encoded and queued for few clients at a time. A turn lasts until the
 * client has read its answer. A user has one turn at a time, on all sockets together: a user with 100 sockets that read
 * nothing holds one document in memory. All turns share a limit of bytes, above which one answer of any length still gets
 * a turn. The next turn goes to the tenant with the fewest bytes. Rules YAT1 to YAT5.
 */

import type { Millis } from "../shared/ids.ts";
import type { Clock } from "../shared/time/clock.ts";
import type { ReaderOwner } from "./unread-data.ts";

/** A client that needs an answer. */
export type AnswerReader = {
  readonly owner: ReaderOwner;
  readonly isOpen: boolean;
  readonly waitingBytes: number;
  /** The client does not read its answer, and others wait. */
  close(): void;
};
/** `bytes`: estimated until the answer is sent. `sentAt` undefined: it is being made. */
type Turn = {
  readonly reader: AnswerReader;
  bytes: number;
  readonly begin: (sent: (bytes: number) => void) => void;
  sentAt: Millis | undefined;
};

/** Shorter answers need no turn. */
const LONG_BYTES = 1024 ** 2;
/** How often waiting clients and unread answers are looked at. */
const LOOK_MS = 100;
/** While others wait. Clients of y-websocket and Hocuspocus themselves leave a connection that brings no message for 30 s. */
const UNREAD_MS_MAX = 30_000;

export class AnswerTurns {
  readonly #bytesMax: number;
  readonly #clock: Clock;
  #taken: Turn[] = [];
  /** The oldest first. */
  #waiting: Turn[] = [];
  #isLooking = false;
  #hasTimer = false;

  constructor(bytesMax: number, clock: Clock) {
    this.#bytesMax = bytesMax;
    this.#clock = clock;
  }

  /** Calls `begin` now or later, or never if the client leaves. `begin` calls `sent` with the bytes of the answer. */
  add(reader: AnswerReader, bytes: number, begin: (sent: (bytes: number) => void) => void): void {
    if (bytes < LONG_BYTES) return begin(() => {});
    this.#waiting.push({ reader, bytes, begin, sentAt: undefined });
    this.#look();
  }

  #look(): void {
    if (this.#isLooking) return; // An answer that is made at once must not make the stack grow.
    this.#isLooking = true;
    this.#waiting = this.#waiting.filter(({ reader }) => reader.isOpen);
    this.#dropRead();
    for (let next = this.#next(); next !== undefined; next = this.#next()) this.#begin(next);
    if (this.#waiting.length > 0) this.#closeSlow();
    this.#isLooking = false;
    if (this.#hasTimer || this.#taken.length === 0) return;
    this.#hasTimer = true;
    this.#clock.after(LOOK_MS, () => {
      this.#hasTimer = false;
      this.#look();
    });
  }

  #begin(turn: Turn): void {
    this.#waiting.splice(this.#waiting.indexOf(turn), 1);
    this.#taken.push(turn);
    turn.begin((bytes) => {
      turn.bytes = bytes;
      turn.sentAt = this.#clock.now();
      this.#dropRead();
      this.#look();
    });
  }

  /** A client that is closed while its answer is unread keeps the turn until its socket has released the answer. */
  #dropRead(): void {
    this.#taken = this.#taken.filter(({ reader, bytes, sentAt }) => (sentAt === undefined ? reader.isOpen : reader.waitingBytes >= bytes));
  }

  /** The longest answers would wait forever if shorter ones went first. */
  #next(): Turn | undefined {
    let [next, fewest, total] = [undefined as Turn | undefined, Infinity, 0];
    const users = new Map<string, Set<string>>();
    const bytesOf = new Map<string, number>();
    for (const { reader, bytes } of this.#taken) {
      const { tenant, user } = reader.owner;
      total += bytes;
      bytesOf.set(tenant, (bytesOf.get(tenant) ?? 0) + bytes);
      users.set(tenant, (users.get(tenant) ?? new Set()).add(user));
    }
    for (const turn of this.#waiting) {
      const { tenant, user } = turn.reader.owner;
      const bytes = bytesOf.get(tenant) ?? 0;
      if (bytes < fewest && users.get(tenant)?.has(user) !== true) [next, fewest] = [turn, bytes];
    }
    return next !== undefined && (total === 0 || total + next.bytes <= this.#bytesMax) ? next : undefined;
  }

  #closeSlow(): void {
    const until = this.#clock.now() - UNREAD_MS_MAX;
    for (const { reader, sentAt } of this.#taken) if (sentAt !== undefined && sentAt <= until && reader.isOpen) reader.close();
  }
}
