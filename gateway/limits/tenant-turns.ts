/**
 * Decides which waiting task gets the next free place: the oldest of the tenant with the fewest tasks. Tenants with
 * equally many take turns. The invariant: a tenant never has all places, and tenants with a place leave some of them for
 * tenants without one. So the slow tasks of a few tenants delay no first task of another. Places are the connections to
 * a service of another tier, or concurrent searches for room owners. Rules STN1 to STN6.
 */

import type { TenantId } from "../../shared/ids.ts";

/** Part of all places that one tenant may have. */
const TENANT_SHARE = 0.75;
/** Part of all places that only tenants without a place get. */
const FIRST_TASKS_SHARE = 0.125;

/** `eachMax`: the part of one tenant. `furtherMax`: the part of tenants that have one already. */
export function tenantShares(allMax: number): { readonly eachMax: number; readonly furtherMax: number } {
  return { eachMax: Math.ceil(TENANT_SHARE * allMax), furtherMax: Math.ceil((1 - FIRST_TASKS_SHARE) * allMax) };
}

type TenantTasks = { running: number; readonly waiting: Set<() => void> };

export class TenantTurns {
  readonly #allMax: number;
  readonly #eachMax: number;
  /** All places but those for first tasks. */
  readonly #furtherMax: number;
  #running = 0;
  #isStarting = false;
  /** Tenants with tasks that run or wait. A tenant is the last one when it comes, and after each start. */
  readonly #tenants = new Map<TenantId, TenantTasks>();

  constructor(placesMax: number) {
    this.#allMax = placesMax;
    const { eachMax, furtherMax } = tenantShares(placesMax);
    this.#eachMax = eachMax;
    this.#furtherMax = furtherMax;
  }

  get isIdle(): boolean {
    return this.#tenants.size === 0;
  }

  /** Calls `start` once there is a place for the task. The task ends with `release`, or with `leave` before its start. */
  take(tenant: TenantId, start: () => void): void {
    const tasks = this.#tenants.get(tenant) ?? { running: 0, waiting: new Set<() => void>() };
    this.#tenants.set(tenant, tasks);
    tasks.waiting.add(start);
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

  /** A task may end within its start. A nested start would then overflow the stack when thousands wait. */
  #startNext(): void {
    if (this.#isStarting) return;
    this.#isStarting = true;
    for (let start = this.#takeNext(); start !== undefined; start = this.#takeNext()) start();
    this.#isStarting = false;
  }

  #takeNext(): (() => void) | undefined {
    if (this.#running >= this.#allMax) return undefined;
    // A tenant needs less than this. Without further places, that is none.
    let [next, fewest]: [TenantId | undefined, number] = [undefined, this.#running < this.#furtherMax ? this.#eachMax : 1];
    for (const [tenant, { running, waiting }] of this.#tenants) {
      if (waiting.size > 0 && running < fewest) [next, fewest] = [tenant, running];
      if (fewest === 0) break; // Thousands of tenants may wait.
    }
    if (next === undefined) return undefined;
    const tasks = this.#tenants.get(next)!;
    this.#tenants.delete(next);
    this.#tenants.set(next, tasks);
    const [start] = tasks.waiting;
    tasks.waiting.delete(start!);
    tasks.running += 1;
    this.#running += 1;
    return start;
  }

  #forgetIfIdle(tenant: TenantId): void {
    const tasks = this.#tenants.get(tenant);
    if (tasks?.running === 0 && tasks.waiting.size === 0) this.#tenants.delete(tenant);
  }
}
