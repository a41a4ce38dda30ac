import { expect, test } from "vitest";

import type { RoomKey, ServerId } from "../ids.ts";
import { rankServers } from "./rendezvous.ts";

const servers = ["a", "b", "c", "d"] as ServerId[];
const rooms = Array.from({ length: 4000 }, (_, index) => `acme.room-${index}` as RoomKey);

test("[RDV1] the answer does not depend on the order in which servers became known", () => {
  for (const room of rooms.slice(0, 50)) expect(rankServers(room, servers.toReversed())).toEqual(rankServers(room, servers));
});

test("[RDV2] rooms spread evenly: no server is over 10% off its share", () => {
  for (const server of servers) {
    const owned = rooms.filter((room) => rankServers(room, servers)[0] === server).length;
    expect(Math.abs(owned - 1000)).toBeLessThan(100);
  }
});

test("[RDV3] removing a server moves only its own rooms, each to its second choice", () => {
  const left = servers.filter((server) => server !== "b");
  for (const room of rooms) {
    const [first, second] = rankServers(room, servers);
    expect(rankServers(room, left)[0]).toBe(first === "b" ? second : first);
  }
});
