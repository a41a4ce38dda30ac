/**
 * Usage by tenant and day in Redis: one hash for each day, `{env}:usage:{day}`. A field is a tenant with its sums, or
 * `batch {gateway}` with the number of the last batch of that gateway. One script adds a batch and writes its number,
 * so that a repeated batch adds nothing, and a Redis that lost its latest writes lost both. Stored bytes and the peak of
 * connections are no sums: a second script raises them to the highest value. For the peak, the gateways first add up
 * their open connections of a moment in `{env}:usage:connections:{moment}`, which Redis forgets after some minutes. The two
 * hashes may be in different slots of a Redis Cluster, so a sample takes two calls.
 */

import type { GatewayId, TenantId } from "../../shared/ids.ts";
import { USAGE_FIELDS_MAX } from "../../shared/bus/storage-messages.ts";
import { defineScripts, type RedisConnection } from "../../shared/io/redis.ts";
import type { UsageStore } from "../ports.ts";
import { noUsage, OTHER_TENANTS, type StoredUsage, USAGE_QUANTITIES, type UsageCounts } from "../usage/usage-counts.ts";
import { dayAfter, dayOf, startOf, type UsageDay } from "../../shared/time/usage-day.ts";

/** Days that Redis keeps usage after the day itself: a year and a month to bill it. */
export const USAGE_DAYS_KEPT = 400;
/** The values of a tenant's field, in order. Add new ones at the end: a field of an earlier version has fewer. */
const VALUES = [...USAGE_QUANTITIES, "storedBytes", "peakConnections"] as const;
/** Time after which no gateway adds a sample of a moment any more. */
const MOMENT_KEPT_MS = 300_000;
/** No tenant id contains a space. */
const BATCH_PREFIX = "batch ";

type Script<Answer> = (keys: number, hash: string, ...args: (string | number)[]) => Promise<Answer>;
type Scripts = { readonly countUsage: Script<number>; readonly raiseHighest: Script<number>; readonly addSample: Script<number[]> };
type RedisUsageOptions = { readonly fieldsMax: number };

export function redisUsage(
  { redis }: Pick<RedisConnection, "redis">,
  environment: string,
  gateway: GatewayId,
  { fieldsMax }: RedisUsageOptions = { fieldsMax: USAGE_FIELDS_MAX },
): UsageStore {
  const hashOf = (day: UsageDay): string => `${environment}:usage:${day}`;
  const scripts = defineScripts<Scripts>(redis, import.meta.url, {
    countUsage: ["usage-fields.lua", "count-usage.lua"],
    raiseHighest: ["usage-fields.lua", "raise-highest.lua"],
    addSample: ["add-sample.lua"],
  });
  /** Returns the number of tenants without space in the day. */
  const raise = (day: UsageDay, value: (typeof VALUES)[number], tenants: readonly (readonly [TenantId, number])[]): Promise<number> => {
    const place = VALUES.indexOf(value) + 1; // Lua counts from 1.
    return scripts.raiseHighest(1, hashOf(day), forgetAt(day), fieldsMax, place, ...tenants.flat());
  };
  const forgetAt = (day: UsageDay): number => startOf(dayAfter(day, USAGE_DAYS_KEPT + 1));
  return {
    add: async ({ day, number, tenants }) => {
      const counts = [...tenants].flatMap(([tenant, usage]) => [tenant, textOf(usage)]);
      await scripts.countUsage(1, hashOf(day), `${BATCH_PREFIX}${gateway}`, number, forgetAt(day), fieldsMax, OTHER_TENANTS, ...counts);
    },
    raise: ({ day, tenants }) => raise(day, "storedBytes", tenants),
    sample: async ({ moment, part, tenants }) => {
      const hash = `${environment}:usage:connections:${moment}`;
      const field = `${BATCH_PREFIX}${gateway} ${part}`;
      const sums = await scripts.addSample(1, hash, field, moment + MOMENT_KEPT_MS, fieldsMax, ...tenants.flat());
      const counted = tenants.flatMap(([tenant], index) => (sums[index]! > 0 ? [[tenant, sums[index]!] as const] : []));
      return tenants.length - counted.length + (await raise(dayOf(moment), "peakConnections", counted));
    },
    read: async (day, tenant) => {
      if (tenant === undefined) return usageIn(Object.entries(await redis.hgetall(hashOf(day))));
      const kept = await redis.hget(hashOf(day), tenant);
      return usageIn(kept === null ? [] : [[tenant, kept]]);
    },
  };
}

function usageIn(fields: readonly (readonly [field: string, value: string])[]): ReadonlyMap<TenantId, StoredUsage> {
  const tenants = fields.filter(([field]) => !field.startsWith(BATCH_PREFIX));
  return new Map(tenants.map(([tenant, value]) => [tenant as TenantId, usageFrom(value)]));
}

function textOf(usage: Readonly<UsageCounts>): string {
  return USAGE_QUANTITIES.map((quantity) => usage[quantity]).join(" ");
}

/** A value that an earlier version did not write is missing at the end, and is 0. */
function usageFrom(field: string): StoredUsage {
  const values = field.split(" ");
  const usage = { ...noUsage(), storedBytes: 0, peakConnections: 0 };
  for (const [index, name] of VALUES.entries()) usage[name] = Number(values[index] ?? 0);
  return usage;
}
