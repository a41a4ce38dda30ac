/**
 * A connection that stalls for seconds without closing, as in mobile networks. Then it delivers at once all frames that
 * were sent meanwhile.
 */

import { setTimeout as sleep } from "node:timers/promises";

import { afterAll, beforeAll, expect, test } from "vitest";
import * as Y from "yjs";

import { CoroomConnection, CoroomProvider, RoomConnection } from "../../client/index.ts";
import { SystemCluster } from "./cluster.ts";
import { CuttableConnection } from "./cuttable-connection.ts";
import { eventually } from "./eventually.ts";

const TYPING_MS = 150;
const MOVING_MS = 16;
/** Longer than the time after which unanswered frames are resent. */
const STALL_MS = 14_000;

let cluster: SystemCluster;
let cuttable: CuttableConnection;

beforeAll(async () => {
  cluster = await SystemCluster.start({ gateways: 1, roomServers: 1 });
  cuttable = await CuttableConnection.start(cluster.gateways[0]!.url.replace("ws:", "nats:"));
});
afterAll(async () => {
  await cuttable.stop();
  await cluster.stop();
});

test("[STL1] a client that types and moves over a stalled connection is not closed for its rate, and everything is saved", async () => {
  const connection = new CoroomConnection({ url: cuttable.url.replace("nats:", "ws:"), token: () => cluster.token("*", "ann") });
  const lost: string[] = [];
  connection.on("status", ({ status, why }) => status === "waiting" && lost.push(why ?? ""));
  const notes = new RoomConnection({ connection, room: "notes" });
  const docs = ["a", "b"].map(() => new Y.Doc());
  const documents = docs.map((doc, index) => new CoroomProvider({ connection, room: `document-${index}`, doc }));
  const rooms = [notes, ...documents];
  await eventually("the rooms to be joined", () => rooms.every(({ synced }) => synced));

  let [typed, moved] = [0, 0];
  const type = (): void => {
    notes.send(new TextEncoder().encode(`edit ${typed}`));
    docs[typed++ % docs.length]!.getText("t").insert(0, "x");
  };
  const intervals = [setInterval(type, TYPING_MS), setInterval(() => notes.presence.set({ cursor: { x: ++moved, y: 0 } }), MOVING_MS)];
  await sleep(3_000);
  cuttable.cut("to");
  await sleep(STALL_MS);
  cuttable.repair();
  await sleep(3_000);
  for (const interval of intervals) clearInterval(interval);
  await eventually("all to be saved", () => rooms.every(({ saved }) => saved));
  expect(lost.filter((why) => why.includes("4006"))).toEqual([]);
  for (const room of rooms) room.destroy();
  connection.disconnect();
});
