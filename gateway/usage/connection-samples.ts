/**
 * The open connections of each tenant at the start of each minute. All gateways take their samples at the same moments, and
 * the store adds them up. So a day's highest sum is one of connections that were open at one time. A sample is offered
 * until the store has it, or until the next one: a gateway that lost a sample makes the sum too low, never too high.
 */

import type { TenantId, UnixMillis } from "../../shared/ids.ts";

/** A part of the sample of a gateway. `moment` is a multiple of the interval. `part` counts from 1. */
export type ConnectionSample = {
  readonly moment: UnixMillis;
  readonly part: number;
  readonly tenants: readonly (readonly [tenant: TenantId, connections: number])[];
};

type ConnectionSamplesOptions = {
  readonly everyMs: number;
  /** Tenants of one sample. Tenants with the fewest connections are left out. */
  readonly tenantsMax: number;
  readonly tenantsPerPartMax: number;
};

export class ConnectionSamples {
  readonly #options: ConnectionSamplesOptions;
  #lastMoment: number;
  #parts: ConnectionSample[] = [];

  /** The first sample is that of the next moment. */
  constructor(options: ConnectionSamplesOptions, wallNow: UnixMillis) {
    this.#options = options;
    this.#lastMoment = this.#momentOf(wallNow);
  }

  /** Call every second. Returns the number of tenants that are left out. */
  receiveTick(open: ReadonlyMap<TenantId, { readonly count: number }>, wallNow: UnixMillis): number {
    const moment = this.#momentOf(wallNow);
    if (moment <= this.#lastMoment) return 0; // The clock may have been set back.
    this.#lastMoment = moment;
    const { tenantsMax, tenantsPerPartMax } = this.#options;
    const counts = [...open].map(([tenant, { count }]) => [tenant, count] as const);
    const taken = counts.length <= tenantsMax ? counts : counts.sort(([, one], [, other]) => other - one).slice(0, tenantsMax);
    this.#parts = [];
    for (let first = 0; first < taken.length; first += tenantsPerPartMax) {
      const tenants = taken.slice(first, first + tenantsPerPartMax);
      this.#parts.push({ moment: moment as UnixMillis, part: this.#parts.length + 1, tenants });
    }
    return counts.length - taken.length;
  }

  /** The same part until the store has it. Undefined: it has the whole sample. */
  get next(): ConnectionSample | undefined {
    return this.#parts[0];
  }

  /** The store has the part. Without effect if another sample was taken in the meantime. */
  receiveStored(part: ConnectionSample): void {
    if (this.#parts[0] === part) this.#parts.shift();
  }

  #momentOf(wallNow: UnixMillis): number {
    return Math.floor(wallNow / this.#options.everyMs) * this.#options.everyMs;
  }
}
