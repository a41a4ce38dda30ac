/**
 * Decides when the boards of a tenant are sent. A gateway writes a board's list once for each watcher, so a list costs
 * its bytes times watchers. Only the newest list counts: above the tenant's rate a board waits, and none is refused.
 * The invariant: while a board of the tenant waits, no other one overtakes it, so each is sent in the end. Rules BTU1 to
 * BTU3.
 */

import type { Millis, TenantId } from "../../shared/ids.ts";
import { type Rate, TokenBucket } from "../../shared/limits/token-bucket.ts";

const encoder = new TextEncoder();

export class BoardTurns<Board> {
  readonly #rate: Rate;
  /** A tenant with a full bucket has none: a full bucket equals a new one. */
  readonly #buckets = new Map<TenantId, TokenBucket>();
  /** In the order in which they began to wait. No set is empty. */
  readonly #waiting = new Map<TenantId, Set<Board>>();

  constructor(rate: Rate) {
    this.#rate = rate;
  }

  /** False: the board waits until `takeDue` returns it. */
  mayShow(tenant: TenantId, board: Board, now: Millis): boolean {
    const waiting = this.#waiting.get(tenant);
    if (waiting === undefined && this.#hasLeft(tenant, now)) return true;
    if (waiting === undefined) this.#waiting.set(tenant, new Set([board]));
    else waiting.add(board);
    return false;
  }

  /** `bytes`: of all that was written for the tenant's boards, once for each watcher. */
  spend(tenant: TenantId, bytes: number, now: Millis): void {
    const bucket = this.#buckets.get(tenant) ?? new TokenBucket(this.#rate, now);
    this.#buckets.set(tenant, bucket);
    bucket.spend(now, bytes);
  }

  spendFor(tenant: TenantId, list: string, watchers: number, now: Millis): void {
    this.spend(tenant, encoder.encode(list).byteLength * watchers, now);
  }

  /** Nobody watches the board any more. */
  forget(tenant: TenantId, board: Board): void {
    const waiting = this.#waiting.get(tenant);
    if (waiting?.delete(board) === true && waiting.size === 0) this.#waiting.delete(tenant);
  }

  /** Spend the bytes of each board before taking the next one. Call about every second. */
  *takeDue(now: Millis): Iterable<Board> {
    for (const [tenant, bucket] of this.#buckets) if (bucket.isFull(now)) this.#buckets.delete(tenant);
    for (const [tenant, waiting] of this.#waiting) {
      for (const board of waiting) {
        if (!this.#hasLeft(tenant, now)) break;
        this.forget(tenant, board);
        yield board;
      }
    }
  }

  #hasLeft(tenant: TenantId, now: Millis): boolean {
    return this.#buckets.get(tenant)?.take(now, 0) !== false;
  }
}
