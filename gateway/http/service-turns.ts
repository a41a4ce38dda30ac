/**
 * Decides which call to a service of another tier gets the next connection: the oldest of the tenant with the fewest.
 * Tenants with equally many take turns. The invariant: a tenant never has all connections, and tenants with a connection
 * leave some of them for tenants without one. So slow answers for a few tenants delay no first call of another. Searches
 * for room owners take turns in the same way. Rules STN1 to STN6.
 */

import type { TenantId } from "../../shared/ids.ts";

/** Part of all connections that one tenant may have. */
const TENANT_SHARE = 0.75;
/** Part of all connections that only tenants without a connection get. */
const FIRST_CALLS_SHARE = 0.125;

/** `eachMax`: the part of one tenant. `furtherMax`: the part of tenants that have one already. */
export function tenantShares(allMax: number): { readonly eachMax: number; readonly furtherMax: number } {
  return { eachMax: Math.ceil(TENANT_SHARE * allMax), furtherMax: Math.ceil((1 - FIRST_CALLS_SHARE) * allMax) };
}

type TenantCalls = { running: number; readonly waiting: Set<() => void> };

export class ServiceTurns {
  readonly #allMax: number;
  readonly #eachMax: number;
  /** All connections but those for first calls. */
  readonly #furtherMax: number;
  #running = 0;
  #isStarting = false;
  /** Tenants with calls that run or wait. A tenant is the last one when it comes, and after each start. */
  readonly #tenants = new Map<TenantId, TenantCalls>();

  constructor(connectionsMax: number) {
    this.#allMax = connectionsMax;
    const { eachMax, furtherMax } = tenantShares(connectionsMax);
    this.#eachMax = eachMax;
    this.#furtherMax = furtherMax;
  }

  get isIdle(): boolean {
    return this.#tenants.size === 0;
  }

  /** Calls `start` once there is a connection for the call. It ends with `release`, or with `leave` before its start. */
  take(tenant: TenantId, start: () => void): void {
    const calls = this.#tenants.get(tenant) ?? { running: 0, waiting: new Set<() => void>() };
    this.#tenants.set(tenant, calls);
    calls.waiting.add(start);
    this.#startNext();
  }

  leave(tenant: TenantId, start: () => void): void {
    this.#tenants.get(tenant)?.waiting.delete(start);
    this.#forgetIfIdle(tenant);
  }

  release(tenant: TenantId): void {
    this.#tenants.get(tenant)!.running -= 1;
    this.#running -= 1;
    this.#forgetIfIdle(tenant);
    this.#startNext();
  }

  /** A call may end within its start. A nested start would then overflow the stack when thousands wait. */
  #startNext(): void {
    if (this.#isStarting) return;
    this.#isStarting = true;
    for (let start = this.#takeNext(); start !== undefined; start = this.#takeNext()) start();
    this.#isStarting = false;
  }

  #takeNext(): (() => void) | undefined {
    if (this.#running >= this.#allMax) return undefined;
    // A tenant needs less than this. Without further connections, that is none.
    let [next, fewest]: [TenantId | undefined, number] = [undefined, this.#running < this.#furtherMax ? this.#eachMax : 1];
    for (const [tenant, { running, waiting }] of this.#tenants) {
      if (waiting.size > 0 && running < fewest) [next, fewest] = [tenant, running];
      if (fewest === 0) break; // Thousands of tenants may wait.
    }
    if (next === undefined) return undefined;
    const calls = this.#tenants.get(next)!;
    this.#tenants.delete(next);
    this.#tenants.set(next, calls);
    const [start] = calls.waiting;
    calls.waiting.delete(start!);
    calls.running += 1;
    this.#running += 1;
    return start;
  }

  #forgetIfIdle(tenant: TenantId): void {
    const calls = this.#tenants.get(tenant);
    if (calls?.running === 0 && calls.waiting.size === 0) this.#tenants.delete(tenant);
  }
}
