/**
 * The highest bytes that each tenant stored on a day (UTC), of the two latest days. All messages are sent again and again,
 * because NATS and Redis may lose any of them, and Redis keeps the highest value that it receives. So a lost message, a
 * repeated one, and one of another document service with less have no effect.
 */

import { PEAK_TENANTS_MAX, type StoragePeaks, USAGE_FIELDS_MAX } from "../../shared/bus/storage-messages.ts";
import type { TenantId } from "../../shared/ids.ts";
import type { UsageDay } from "../../shared/time/usage-day.ts";

/** The previous day is repeated, so that Redis receives it after an outage over midnight. */
const DAYS_HELD = 2;
/** Redis holds fewer tenants for a day, so that the gateways notice and count a day beyond the limit. */
const TENANTS_HELD = USAGE_FIELDS_MAX + 1;

export class TenantPeaks {
  /** The day that was measured last is the last one: a clock that is set back does not lose the day. */
  readonly #days = new Map<UsageDay, Map<TenantId, number>>();

  /** Measured at one moment of the day. Counts of a partition may be some bytes off, so a sum may be below 0. */
  receiveBytes(day: UsageDay, measured: ReadonlyMap<TenantId, number>): void {
    const peaks = this.#days.get(day) ?? new Map<TenantId, number>();
    this.#days.delete(day);
    this.#days.set(day, peaks);
    for (const [tenant, bytes] of measured) {
      const peak = peaks.get(tenant) ?? 0;
      if (bytes > peak && (peak > 0 || peaks.size < TENANTS_HELD)) peaks.set(tenant, Math.round(bytes));
    }
    for (const older of [...this.#days.keys()].slice(0, -DAYS_HELD)) this.#days.delete(older);
  }

  /** Tenants with the most bytes come first, so that Redis has space for them. */
  get messages(): readonly StoragePeaks[] {
    return [...this.#days].flatMap(([day, peaks]) => {
      const tenants = [...peaks].toSorted(([, one], [, other]) => other - one);
      const parts = Math.ceil(tenants.length / PEAK_TENANTS_MAX);
      return Array.from({ length: parts }, (_, part) => ({
        day,
        tenants: tenants.slice(part * PEAK_TENANTS_MAX, (part + 1) * PEAK_TENANTS_MAX),
      }));
    });
  }
}
