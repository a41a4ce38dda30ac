import { expect, test } from "vitest";

import type { Millis, ServerId, UnixMillis } from "../../shared/ids.ts";
import { LostRoomServers } from "./servers-lost.ts";

const [MINUTE, at] = [60_000, 5_000 as UnixMillis];
const heartbeat = (server: string, rooms: number, draining = false) => ({ server: server as ServerId, rooms, draining, time: at });

function lost() {
  const servers = new LostRoomServers({ keptMs: 10 * MINUTE, serversMax: 2 });
  return {
    beat: (...given: Parameters<typeof heartbeat>) => servers.receiveHeartbeat(heartbeat(...given)),
    miss: (server: string, now = 0) => servers.receiveSilence(server as ServerId, now as Millis, at),
    lately: (now = 0) => servers.lately(now as Millis).map(({ server, rooms }) => `${server} ${rooms}`),
  };
}

test("[SVL1] a silent server is lost with the rooms that it had, for ten minutes, unless it sends a heartbeat again", () => {
  const { beat, miss, lately } = lost();
  beat("rs-1", 500);
  beat("rs-2", 0);
  miss("rs-1");
  miss("rs-2", MINUTE);
  miss("rs-never");
  expect([lately(), lately(10 * MINUTE + 1), lately(12 * MINUTE)]).toEqual([["rs-2 0", "rs-1 500"], ["rs-2 0"], []]);
  miss("rs-1", 13 * MINUTE);
  expect(lately(13 * MINUTE)).toEqual([]);
  beat("rs-1", 400);
  miss("rs-1", 14 * MINUTE);
  beat("rs-1", 0);
  expect(lately(14 * MINUTE)).toEqual([]);
});

test("[SVL2] a draining server is lost only if it still had rooms, and only the newest losses are kept", () => {
  const { beat, miss, lately } = lost();
  for (const [server, rooms] of [
    ["rs-1", 0],
    ["rs-2", 3],
  ] as const) {
    beat(server, rooms, true);
    miss(server);
  }
  expect(lately()).toEqual(["rs-2 3"]);
  for (const server of ["rs-3", "rs-4"]) {
    beat(server, 1);
    miss(server);
  }
  expect(lately()).toEqual(["rs-4 1", "rs-3 1"]);
});
