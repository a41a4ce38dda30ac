/**
 * How many edits a tenant may send over this gateway in a second: what the other gateways leave of its limit, or,
 * when all of them together ask for more, the part that what was asked for here has in the whole.
 */

import type { TenantId } from "../../shared/ids.ts";

type Second = { asked: number; left: number };

export class TenantEdits {
  readonly #perSecondMax: number;
  readonly #elsewhere: (tenant: TenantId) => number;
  readonly #seconds = new Map<TenantId, Second>();

  /** `elsewhere`: edits that the tenant asked for at the other gateways in their last second. */
  constructor(perSecondMax: number, elsewhere: (tenant: TenantId) => number) {
    this.#perSecondMax = perSecondMax;
    this.#elsewhere = elsewhere;
  }

  take(tenant: TenantId): boolean {
    const second = this.#seconds.get(tenant) ?? this.#begin(tenant, 0);
    second.asked += 1;
    if (second.left < 1) return false;
    second.left -= 1;
    return true;
  }

  /** A second has passed: what each tenant asked for in it. Quiet tenants are told once as 0, then forgotten. */
  endSecond(): [TenantId, number][] {
    return [...this.#seconds].map(([tenant, { asked }]) => {
      if (asked === 0) this.#seconds.delete(tenant);
      else this.#begin(tenant, asked);
      return [tenant, asked];
    });
  }

  #begin(tenant: TenantId, asked: number): Second {
    const elsewhere = this.#elsewhere(tenant);
    const fair = asked === 0 ? 0 : (this.#perSecondMax * asked) / (asked + elsewhere);
    const second = { asked: 0, left: Math.max(this.#perSecondMax - elsewhere, fair) };
    this.#seconds.set(tenant, second);
    return second;
  }
}
