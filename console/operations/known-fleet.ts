/** What is known of all that runs: as it was told last, and of what a gateway without NATS does not hear as it was before. */

import type { Fleet } from "./answers.ts";

export function knownFleet(before: Fleet | undefined, told: Fleet): Fleet {
  if (told.reachesNats || before === undefined) return told;
  const toldOf = new Set(told.gateways.map(({ gateway }) => gateway));
  const others = before.gateways.filter(({ gateway }) => !toldOf.has(gateway));
  return { ...before, at: told.at, reachesNats: false, gateways: [...told.gateways, ...others] };
}
