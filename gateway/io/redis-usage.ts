/**
 * Usage by tenant and day in Redis: one hash for each day, `{env}:usage:{day}`. A field is a tenant with its sums, or
 * `batch {gateway}` with the number of the last batch of that gateway. One script adds a batch and writes its number,
 * so that a repeated batch adds nothing, and a Redis that lost its latest writes lost both.
 */

import type { GatewayId, TenantId } from "../../shared/ids.ts";
import { defineScripts, type RedisConnection } from "../../shared/io/redis.ts";
import type { UsageStore } from "../ports.ts";
import { noUsage, OTHER_TENANTS, USAGE_QUANTITIES, type UsageCounts } from "../usage/usage-counts.ts";
import { dayAfter, startOf, type UsageDay } from "../usage/usage-day.ts";

/** Days that Redis keeps usage after the day itself: a year and a month to bill it. */
export const USAGE_DAYS_KEPT = 400;
/** Fields of a day's hash. Further tenants count together as OTHER_TENANTS. About 100 bytes each. */
export const USAGE_FIELDS_MAX = 20_000;
/** No tenant id contains a space. */
const BATCH_PREFIX = "batch ";

type Scripts = { countUsage(keys: number, hash: string, ...args: (string | number)[]): Promise<number> };
export type RedisUsageOptions = { readonly fieldsMax: number };

export function redisUsage(
  { redis }: Pick<RedisConnection, "redis">,
  environment: string,
  gateway: GatewayId,
  { fieldsMax }: RedisUsageOptions = { fieldsMax: USAGE_FIELDS_MAX },
): UsageStore {
  const hashOf = (day: UsageDay): string => `${environment}:usage:${day}`;
  const scripts = defineScripts<Scripts>(redis, import.meta.url, { countUsage: ["count-usage.lua"] });
  return {
    add: async ({ day, number, tenants }) => {
      const forgetAt = startOf(dayAfter(day, USAGE_DAYS_KEPT + 1));
      const counts = [...tenants].flatMap(([tenant, usage]) => [tenant, textOf(usage)]);
      await scripts.countUsage(1, hashOf(day), `${BATCH_PREFIX}${gateway}`, number, forgetAt, fieldsMax, OTHER_TENANTS, ...counts);
    },
    read: async (day, tenant) => {
      if (tenant === undefined) return usageIn(Object.entries(await redis.hgetall(hashOf(day))));
      const kept = await redis.hget(hashOf(day), tenant);
      return usageIn(kept === null ? [] : [[tenant, kept]]);
    },
  };
}

function usageIn(fields: readonly (readonly [field: string, value: string])[]): ReadonlyMap<TenantId, UsageCounts> {
  const tenants = fields.filter(([field]) => !field.startsWith(BATCH_PREFIX));
  return new Map(tenants.map(([tenant, value]) => [tenant as TenantId, usageFrom(value)]));
}

function textOf(usage: Readonly<UsageCounts>): string {
  return USAGE_QUANTITIES.map((quantity) => usage[quantity]).join(" ");
}

/** A quantity that an earlier version did not count is missing at the end, and is 0. */
function usageFrom(value: string): UsageCounts {
  const sums = value.split(" ");
  const usage = noUsage();
  for (const [index, quantity] of USAGE_QUANTITIES.entries()) usage[quantity] = Number(sums[index] ?? 0);
  return usage;
}
