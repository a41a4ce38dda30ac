/**
 * Whether Redis answers, asked of each of its servers every other second: a connection that stands says nothing of one that is
 * stuck, and whoever has nothing to ask would notice neither.
 */

import { Cluster, type Redis } from "ioredis";

import type { Clock } from "../clock.ts";

const EVERY_MS = 2_000;

/** `reaches`: undefined until it is known. `unreached`: set to 1 while it does not answer, and to 0. */
export type RedisReach = { readonly reaches: () => boolean | undefined; stop(): void };

export function watchRedis(redis: Redis | Cluster, clock: Clock, unreached: { set(value: number): void }): RedisReach {
  let reaches: boolean | undefined;
  let isStopped = false;
  const look = async (): Promise<void> => {
    const servers = redis instanceof Cluster ? redis.nodes("master") : [redis];
    const answers = await Promise.allSettled(servers.map((server) => server.ping()));
    reaches = answers.length > 0 && answers.every(({ status }) => status === "fulfilled");
    unreached.set(reaches ? 0 : 1);
    if (!isStopped) cancel = clock.after(EVERY_MS, () => void look());
  };
  let cancel = clock.after(EVERY_MS, () => void look()); // Before that it may still be connecting.
  return {
    reaches: () => reaches,
    stop: () => {
      isStopped = true;
      cancel();
    },
  };
}
