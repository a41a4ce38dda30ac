/**
 * Sanctions in Redis, so that they outlive the gateways: one hash, `{env}:sanctions`, keyed by target. A gateway writes
 * the sanctions that it knows and that Redis lacks, at its start and after each lost connection. It never replaces a newer sanction. A reader deletes sanctions that
 * have ended.
 */

import { Sanction } from "../../shared/bus/admin-messages.ts";
import type { Clock } from "../../shared/time/clock.ts";
import { defineScripts, type RedisConnection } from "../../shared/io/redis.ts";
import { parseJson } from "../../shared/parse-json.ts";
import type { SanctionStore } from "../ports.ts";
import { keyOf } from "../limits/sanctions.ts";

type Scripts = { keepSanction(keys: number, hash: string, about: string, sanction: string): Promise<null> };

export function redisSanctions(
  { redis, breaks }: Pick<RedisConnection, "redis" | "breaks">,
  environment: string,
  clock: Clock,
): SanctionStore {
  const hash = `${environment}:sanctions`;
  const scripts = defineScripts<Scripts>(redis, import.meta.url, { keepSanction: ["keep-sanction.lua"] });
  return {
    breaks,
    load: async () => {
      const kept = Object.entries(await redis.hgetall(hash)).map(([key, json]) => ({
        key,
        sanction: Sanction.safeParse(parseJson(json)).data,
      }));
      const isOver = ({ sanction }: { sanction: Sanction | undefined }): boolean =>
        sanction === undefined || sanction.until <= clock.wallNow();
      const over = kept.filter(isOver).map(({ key }) => key);
      if (over.length > 0) await redis.hdel(hash, ...over);
      return kept.flatMap((entry) => (isOver(entry) ? [] : [entry.sanction!]));
    },
    save: async (sanction) => {
      await scripts.keepSanction(1, hash, keyOf(sanction), JSON.stringify(sanction));
    },
  };
}
