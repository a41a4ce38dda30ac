/**
 * An owner's doubts whether it is one still, settled by a look at the log's end. A look answers only for the
 * requests that were there when it began: a later owner may have come in between.
 *
 * Whoever catches somebody up doubts a moment later: deposed while its line was bad, and with nobody there who heard
 * of its successor, it would answer from an old log for as long as nobody writes.
 *
 * A look may be answered by a leader of the stream that has another beside it already, and shows what that one took over.
 * So nobody is told by its word alone that what they hold is not of the log: this owner's last record must be so young
 * that no other leader can have come since the log took it (docs/adr/0036-what-is-read-may-be-old.md).
 */

import type { LogEnd } from "../../shared/bus/placement-messages.ts";
import type { Millis } from "../../shared/ids.ts";
import { NO_ITEMS } from "../../shared/seldom.ts";
import type { CatchUpRequest } from "../rooms/catch-ups.ts";

/** One look answers for all who were caught up in so long. */
const LOOK_AFTER_MS = 1_000;
/** An owner that may not append before it has looked asks again, should nobody answer. */
const LOOK_AGAIN_MS = 1_000;
/** nats-server chooses another leader 4 s after one was last heard, at the earliest. */
const SAME_LEADER_MS = 3_000;

/** For those requests. `end`: where the log ended for this owner as it asked, with a record that it had sent at `sentAt`. */
type Look =
  | { readonly kind: "behind"; readonly requests: readonly CatchUpRequest[]; readonly begunAt: Millis }
  | {
      readonly kind: "end";
      readonly requests: readonly CatchUpRequest[];
      readonly begunAt: Millis;
      readonly end: LogEnd;
      readonly sentAt: Millis;
    };

export class Doubts {
  readonly #waitingMax: number;
  /** The one under way. */
  #look: Look | undefined;
  /** Whether the log is known to have this owner's last record: not since the line was lost, unless that was asked since. */
  #end: "known" | "unknown" | "asked" = "known";
  #waiting: readonly CatchUpRequest[] = NO_ITEMS;
  /** Since when somebody believes what no look has confirmed. */
  #answeredAt: Millis | undefined;
  /** When the last record was sent that the log has taken, and that which is on its way. */
  #sentAt: Millis;
  #sendingAt: Millis;
  #isUnanswered = false;

  /** `sentAt`: the record by which it became the owner. */
  constructor(options: { deferredCatchUpsMax: number }, sentAt: Millis) {
    this.#waitingMax = options.deferredCatchUpsMax;
    this.#sentAt = sentAt;
    this.#sendingAt = sentAt;
  }

  /** Somebody asked who may have heard of a later owner, and has no answer: only another record of this owner would be proof. */
  get isUnanswered(): boolean {
    return this.#isUnanswered;
  }

  /** Whether the look that begins is for the last record itself. */
  get isForEnd(): boolean {
    return this.#end === "unknown" || (this.#look !== undefined && this.#look.requests.length > 0);
  }

  /** Whether the last record is known to be in the log since the line was last lost. Of what is asked it is not yet. */
  get isEndProven(): boolean {
    return this.#end === "known";
  }

  get waiting(): boolean {
    return this.#waiting.length > 0;
  }

  /** A request from a gateway that has heard of a later owner. False when too many wait. */
  add(request: CatchUpRequest): boolean {
    if (this.#waiting.length >= this.#waitingMax) return false;
    this.#waiting = [...this.#waiting, request];
    return true;
  }

  /** Somebody was told where the room stands. */
  answered(now: Millis): void {
    this.#answeredAt ??= now;
  }

  /** A record is on its way. */
  appending(now: Millis): void {
    this.#sendingAt = now;
  }

  /** The log has taken it, behind this owner's last. */
  appended(): void {
    this.#sentAt = this.#sendingAt;
    this.#isUnanswered = false;
  }

  /** The log may end before this owner's last record: the next look is for that record itself. One over the lost line may never be answered. */
  lineBack(): void {
    this.#end = "unknown";
    if (this.#look !== undefined) this.#waiting = [...this.#look.requests, ...this.#waiting];
    this.#look = undefined;
  }

  /** Whether to look at the log for the sake of those who were answered. */
  due(now: Millis): boolean {
    return this.#answeredAt !== undefined && now - this.#answeredAt >= LOOK_AFTER_MS && this.begin(now);
  }

  /** Whether to look at the log now: not while a look is under way. */
  begin(now: Millis): boolean {
    const look = this.#look;
    const isOverdue = look !== undefined && this.#end === "asked" && now - look.begunAt >= LOOK_AGAIN_MS;
    if (look !== undefined && !isOverdue) return false;
    if (isOverdue) this.#end = "unknown";
    this.#look = { kind: "behind", requests: [...(look?.requests ?? NO_ITEMS), ...this.#waiting], begunAt: now };
    this.#waiting = NO_ITEMS;
    this.#answeredAt = undefined;
    return true;
  }

  /** The look under way is for the last record itself; `end`: the one that this owner knows. */
  askForEnd(end: LogEnd): void {
    if (this.#look === undefined) return; // It was given up meanwhile.
    const { requests, begunAt } = this.#look;
    this.#look = { kind: "end", requests, begunAt, end, sentAt: this.#sentAt };
    if (this.#end === "unknown") this.#end = "asked";
  }

  /** What is read is not older than what it knew when it asked; what it has appended since may be missing. */
  receiveEnd(): LogEnd | undefined {
    if (this.#look?.kind !== "end") return undefined;
    if (this.#end === "asked") this.#end = "known";
    return this.#look.end;
  }

  /** The look found no later owner: for these requests that holds. The others are asked again by their gateways. */
  settle(now: Millis): readonly CatchUpRequest[] {
    const look = this.#look;
    this.#look = undefined;
    if (look === undefined || look.requests.length === 0) return NO_ITEMS;
    if (look.kind === "end" && now - look.sentAt <= SAME_LEADER_MS) return look.requests;
    this.#isUnanswered = true;
    return NO_ITEMS;
  }

  /** The log could not be asked. Gateways send again what they want to know. */
  drop(): void {
    if (this.#end === "asked") this.#end = "unknown";
    this.#look = undefined;
    this.#waiting = NO_ITEMS;
  }
}
