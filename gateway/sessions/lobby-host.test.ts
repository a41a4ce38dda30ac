import { Registry } from "prom-client";
import { expect, test } from "vitest";

import type { Clock } from "../../shared/clock.ts";
import type { Millis, UnixMillis } from "../../shared/ids.ts";
import type { ClientAddress } from "../../shared/client-address.ts";
import { LobbyHost } from "./lobby-host.ts";
import { gatewayMetrics } from "../metrics.ts";
import type { ConnectionId } from "../ports.ts";

const [ann, bob, cid, dan] = [1, 2, 3, 4] as ConnectionId[] as [ConnectionId, ConnectionId, ConnectionId, ConnectionId];

const BANNED = "203.0.113.7" as ClientAddress;

/** Lets one in at once, and one a second after that; two may wait, with two frames of ten bytes between them. */
function lobby() {
  const seen: string[] = [];
  let now = 0;
  let due: (() => void)[] = [];
  const clock: Clock = { now: () => now as Millis, wallNow: () => now as UnixMillis, after: (_, run) => (due.push(run), () => {}) };
  const inside = {
    receiveKnock: (connection: ConnectionId, address: ClientAddress | undefined) =>
      address !== BANNED || (seen.push(`${connection} banned`), false),
    receiveConnection: (connection: ConnectionId) => void seen.push(`${connection} in`),
    receiveTurnedAway: (connection: ConnectionId) => void seen.push(`${connection} away`),
    receiveFrame: (connection: ConnectionId, bytes: Uint8Array) => void seen.push(`${connection} says ${bytes.join()}`),
    receivePace: () => {},
    receiveDisconnection: (connection: ConnectionId) => void seen.push(`${connection} gone`),
  };
  const host = new LobbyHost(
    inside,
    { connectsPerSecondMax: 1, connectQueueMax: 2, connectQueueBytesMax: 410 },
    { clock, metrics: gatewayMetrics(new Registry()) },
  );
  const pass = (ms: number): void => {
    now += ms;
    const running = due;
    due = [];
    for (const run of running) run();
  };
  return { host, seen, pass };
}

test("[LOB1] whoever waits is let in when its turn comes, with what it has said meanwhile, in that order", () => {
  const { host, seen, pass } = lobby();
  for (const connection of [ann, bob]) host.receiveConnection(connection, undefined);
  const lent = Uint8Array.of(1);
  host.receiveFrame(bob, lent);
  lent[0] = 9; // It was lent for the call.
  host.receiveFrame(bob, Uint8Array.of(2));
  pass(500);
  expect(seen).toEqual(["1 in"]);
  pass(500);
  expect(seen).toEqual(["1 in", "2 in", "2 says 1", "2 says 2"]);
  host.receiveFrame(bob, Uint8Array.of(3));
  host.receiveDisconnection(bob);
  expect(seen.slice(4)).toEqual(["2 says 3", "2 gone"]);
});

test("[LOB2] whoever does not wait to the end never comes in, and its turn is the next one's", () => {
  const { host, seen, pass } = lobby();
  for (const connection of [ann, bob, cid, dan]) host.receiveConnection(connection, undefined);
  expect(seen).toEqual(["1 in", "4 away"]);
  host.receiveDisconnection(bob);
  pass(1_000);
  expect(seen).toEqual(["1 in", "4 away", "2 gone", "3 in"]);
});

test("[LOB3] who waits may say so much and no more", () => {
  const { host, seen, pass } = lobby();
  for (const connection of [ann, bob, cid]) host.receiveConnection(connection, undefined);
  host.receiveFrame(bob, new Uint8Array(8));
  host.receiveFrame(cid, new Uint8Array(3));
  expect(seen).toEqual(["1 in", "3 away"]);
  pass(1_000);
  expect(seen.slice(2)).toEqual(["2 in", "2 says 0,0,0,0,0,0,0,0"]);
});

test("[LOB4] frames without a byte count as well, and who says many is turned away", () => {
  const { host, seen, pass } = lobby();
  for (const connection of [ann, bob]) host.receiveConnection(connection, undefined);
  for (let frame = 0; frame < 3; frame++) host.receiveFrame(bob, new Uint8Array(0));
  expect(seen).toEqual(["1 in", "2 away"]);
  host.receiveConnection(cid, undefined);
  for (let frame = 0; frame < 2; frame++) host.receiveFrame(cid, new Uint8Array(0)); // What was kept for another is free again.
  pass(1_000);
  expect(seen.slice(2)).toEqual(["3 in", "3 says ", "3 says "]);
});

test("[LOB5] whoever is banned takes nobody's turn and no place in the queue, however many come", () => {
  const { host, seen, pass } = lobby();
  for (const connection of [10, 11, 12, 13] as ConnectionId[]) host.receiveConnection(connection, BANNED);
  for (const connection of [ann, bob]) host.receiveConnection(connection, undefined);
  host.receiveConnection(14 as ConnectionId, BANNED);
  host.receiveConnection(cid, undefined);
  pass(1_000);
  expect(seen).toEqual(["10 banned", "11 banned", "12 banned", "13 banned", "1 in", "14 banned", "2 in"]);
});
