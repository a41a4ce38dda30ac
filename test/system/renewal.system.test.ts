/** Tokens that expire within seconds while a user types: the SDK renews them on the open connection. */

import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";

import { RoomConnection } from "../../client/index.ts";
import { SystemCluster } from "./cluster.ts";
import { eventually } from "./eventually.ts";

/** A token is valid for 20 s, including the tolerance. The SDK renews early; the last fifth is a reserve for a slow machine. */
const TOKEN_SECONDS = 16;
const TOLERANCE_SECONDS = 4;
const TYPING_MS = 22_000;

let cluster: SystemCluster;
beforeAll(async () => {
  cluster = await SystemCluster.start({
    gateways: 1,
    roomServers: 1,
    settings: { JWT_CLOCK_TOLERANCE_SECONDS: String(TOLERANCE_SECONDS) },
  });
});
afterAll(() => cluster?.stop());

test("[RENEW1] a user types beyond the expiry of the first token, on one connection", async () => {
  let tokens = 0;
  const token = (): Promise<string> => {
    tokens += 1;
    return cluster.token("renewed", "ann", { ttl: TOKEN_SECONDS });
  };
  const room = new RoomConnection({ url: cluster.gateways[0]!.url, room: "renewed", token });
  const events: unknown[] = [];
  for (const name of ["status", "error", "refused"] as const) room.on(name, (event: unknown) => events.push(event));
  let delivered = 0;
  room.on("edits", (edits) => (delivered += edits.length));
  await eventually("the room is joined", () => room.synced);

  const end = performance.now() + TYPING_MS;
  let typed = 0;
  for (; performance.now() < end; typed++) {
    room.send(new TextEncoder().encode(`edit ${typed}`));
    await sleep(150);
  }
  await eventually("everything is saved", () => room.saved);
  expect(delivered).toBe(typed);
  expect(events).toEqual([{ status: "connected" }]);
  expect(tokens).toBeGreaterThanOrEqual(2);
  const metrics = await (await fetch(`${cluster.gateways[0]!.httpUrl}/metrics`)).text();
  expect(metrics).toContain("coroom_gateway_connects_total 1\n");
  room.destroy();
});
