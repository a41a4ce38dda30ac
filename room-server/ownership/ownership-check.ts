/**
 * Checks that this server is still the owner, by reading the log's end. A check answers only the requests that existed
 * when it began: a later owner may appear in between.
 *
 * After a catch-up answer the owner checks a moment later. A fenced owner without information would otherwise answer
 * from an old log until the next edit.
 *
 * A stale stream leader may answer a check with old data. So the owner answers that a position is not in this log only
 * if its own last record is so recent that no other leader can exist yet (docs/adr/0036-reads-may-be-stale.md).
 */

import { isAheadOfLog } from "../../shared/bus/checkpoint.ts";
import type { LogEnd } from "../../shared/bus/placement-messages.ts";
import type { Millis } from "../../shared/ids.ts";
import { NO_ITEMS } from "../../shared/collections/lazy-map.ts";
import type { KnownCheckpoint, LastRecord } from "../ports.ts";
import type { CatchUpRequest } from "../rooms/catch-ups.ts";

/** One check covers all catch-ups answered within this time. */
const LOOK_AFTER_MS = 1_000;
/** An owner that must check before it appends repeats the check after this time without an answer. */
const LOOK_AGAIN_MS = 1_000;
/** nats-server elects a new leader at the earliest 4 s after the last message of the old one. */
const SAME_LEADER_MS = 3_000;

/**
 * Minimum time between a claim and a further one that only proves the ownership. A client can invent an epoch, and each
 * claim loads the room again. While a stale leader answers, a claim would not succeed.
 */
const CLAIM_AGAIN_MS_MIN = 30_000;

/**
 * A check and its requests. `end`: the log's end as this owner knew it when the check began, with the time at which the
 * last record was sent (`sentAt`).
 */
type Look =
  | { readonly kind: "behind"; readonly requests: readonly CatchUpRequest[]; readonly begunAt: Millis }
  | {
      readonly kind: "end";
      readonly requests: readonly CatchUpRequest[];
      readonly begunAt: Millis;
      readonly end: LogEnd;
      readonly sentAt: Millis;
    };

export class OwnershipCheck {
  readonly #waitingMax: number;
  /** The check in progress. */
  #look: Look | undefined;
  /** Whether the log is known to have this owner's last record. After a connection loss this is unknown until the next check. */
  #end: "known" | "unknown" | "asked" = "known";
  #waiting: readonly CatchUpRequest[] = NO_ITEMS;
  /** Time since which an answer has been sent that no check has confirmed. */
  #answeredAt: Millis | undefined;
  /** Times at which the last stored record and the record in flight were sent. */
  #sentAt: Millis;
  #sendingAt: Millis;
  #isUnanswered = false;
  readonly #claimedAt: Millis;

  /** `sentAt`: the time at which the epoch record of this server's claim was sent. */
  constructor(options: { deferredCatchUpsMax: number }, sentAt: Millis) {
    this.#waitingMax = options.deferredCatchUpsMax;
    this.#sentAt = sentAt;
    this.#sendingAt = sentAt;
    this.#claimedAt = sentAt;
  }

  /**
   * A request that may know a later owner got no answer. Only a further record of this owner would prove that there is
   * none.
   */
  needsNewClaim(now: Millis): boolean {
    return this.#isUnanswered && now - this.#claimedAt >= CLAIM_AGAIN_MS_MIN;
  }

  /** Whether the next check must read the last record itself. */
  get isForEnd(): boolean {
    return this.#end === "unknown" || (this.#look !== undefined && this.#look.requests.length > 0);
  }

  /** False: the answer is for a check from before a lost connection, and may be older than the requests. */
  get awaitsLogEndCheck(): boolean {
    return this.#look?.kind === "behind";
  }

  get waiting(): boolean {
    return this.#waiting.length > 0;
  }

  /** Adds a request of a gateway that knows a later owner. False: too many requests wait. */
  add(request: CatchUpRequest): boolean {
    if (this.#waiting.length >= this.#waitingMax) return false;
    this.#waiting = [...this.#waiting, request];
    return true;
  }

  /** A catch-up was answered. */
  answered(now: Millis): void {
    this.#answeredAt ??= now;
  }

  /** A record is on its way to the log. */
  appending(now: Millis): void {
    this.#sendingAt = now;
  }

  /** The log stored the record after this owner's last one. */
  appended(): void {
    this.#sentAt = this.#sendingAt;
    this.#isUnanswered = false;
  }

  /**
   * The log may have lost this owner's last record, so the next check reads that record. A check over the lost
   * connection may never be answered. Gateways repeat its requests.
   */
  receiveReconnect(): void {
    this.#end = "unknown";
    this.#look = undefined;
  }

  /** Whether to begin a check because of answered catch-ups. */
  due(now: Millis): boolean {
    return this.#answeredAt !== undefined && now - this.#answeredAt >= LOOK_AFTER_MS && this.begin(now);
  }

  /** Whether to begin a check now: not while a check is in progress. */
  begin(now: Millis): boolean {
    const look = this.#look;
    const isOverdue = look !== undefined && this.#end === "asked" && now - look.begunAt >= LOOK_AGAIN_MS;
    if (look !== undefined && !isOverdue) return false;
    if (isOverdue) this.#end = "unknown";
    this.#look = { kind: "behind", requests: this.#waiting, begunAt: now };
    this.#waiting = NO_ITEMS;
    this.#answeredAt = undefined;
    return true;
  }

  /** The check in progress reads the last record. `end`: that record as this owner knows it. */
  askForEnd(end: LogEnd): void {
    if (this.#look === undefined) return; // Dropped in the meantime.
    const { requests, begunAt } = this.#look;
    this.#look = { kind: "end", requests, begunAt, end, sentAt: this.#sentAt };
    if (this.#end === "unknown") this.#end = "asked";
  }

  /** The answer is at least as new as the owner's knowledge when the check began. Later appends may be missing in it. */
  receiveEnd(): LogEnd | undefined {
    if (this.#look?.kind !== "end") return undefined;
    if (this.#end === "asked") this.#end = "known";
    return this.#look.end;
  }

  /** No later owner was found. Returns the requests for which this is proven. Gateways repeat the others. */
  settle(now: Millis): readonly CatchUpRequest[] {
    const look = this.#look;
    this.#look = undefined;
    if (look === undefined || look.requests.length === 0) return NO_ITEMS;
    if (look.kind === "end" && now - look.sentAt <= SAME_LEADER_MS) return look.requests;
    this.#isUnanswered = true;
    return NO_ITEMS;
  }

  /** The log did not answer. Gateways repeat the requests of the check. */
  drop(): void {
    if (this.#end === "asked") this.#end = "unknown";
    this.#look = undefined;
  }
}

/**
 * Whether the log ends before the record that the owner knows, has another record in its place, or lacks later records
 * that a checkpoint covers. In the last case a later owner wrote those records and thereby fenced this one, before the
 * log lost them.
 */
export function hasLostEnd(last: LastRecord, known: LogEnd, checkpoint: KnownCheckpoint): boolean {
  const isAnother = last.streamSeq === known.streamSeq && last.record.id !== known.id;
  return last.streamSeq < known.streamSeq || isAnother || isAheadOfLog(checkpoint, last);
}
