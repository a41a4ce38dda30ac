/**
 * A room that all at once takes most of its server's budget: how long until placement has moved it to the server that is
 * kept for such rooms, and how long its neighbours' edits take before, while it is among them, and after. The control
 * loop goes at its own pace.
 */

import { setTimeout as sleep } from "node:timers/promises";

import { eventually } from "../test/system/eventually.ts";
import { Latencies } from "./load/latencies.ts";
import { Measured } from "./load/measured.ts";
import type { RoomLoad } from "./load/room-load.ts";
import { TypingCluster } from "./typing-cluster.ts";

export type HotRoomOptions = {
  readonly rooms: number;
  readonly editsPerSecond: number;
  readonly hotEditsPerSecond: number;
  readonly controlLoopMs: number;
  readonly seconds: number;
};

/** `movedAfterMs`: from the first of its many edits. Neighbours: those on the server where the room was. */
export type HotRoom = {
  readonly movedAfterMs: number;
  readonly neighbours: number;
  readonly before: Latencies;
  readonly beside: Latencies;
  readonly after: Latencies;
};

/** What a room server is meant for, so that the hot room takes half of it. */
const BUDGET_TIMES = 2;
const MOVED_MS_MAX = 60_000;
const SETTLED_MS_MAX = 10_000;
const TURN_MS = 5;

export async function measureHotRoom(options: HotRoomOptions): Promise<HotRoom> {
  const typing = await TypingCluster.start({
    rooms: options.rooms,
    editsPerSecond: options.editsPerSecond,
    roomServers: 3,
    settings: { CONTROL_LOOP_MS: String(options.controlLoopMs), BUDGET_EDITS_PER_SECOND: String(options.hotEditsPerSecond * BUDGET_TIMES) },
    roomServerSettings: [{}, {}, { SERVER_POOL: "dedicated" }],
  });
  let cool = (): void => {};
  try {
    const [server, [hot, ...neighbours]] = [...(await typing.roomsByOwner())].sort(([, a], [, b]) => b.length - a.length)[0]!;
    const during = (what: () => Promise<unknown>): Promise<Latencies> => ackedOf(neighbours, what);
    const before = await during(() => sleep(options.seconds * 1_000));

    const begun = performance.now();
    cool = heat(hot!, options.hotEditsPerSecond);
    const beside = await during(() =>
      eventually("the hot room is moved", async () => (await typing.ownerOf(hot!)) !== server, MOVED_MS_MAX),
    );
    const movedAfterMs = performance.now() - begun;
    const after = await during(() => sleep(options.seconds * 1_000));
    cool();
    await typing.stop();
    return { movedAfterMs, neighbours: neighbours.length, before, beside, after };
  } catch (error) {
    cool();
    await typing.abandon();
    throw error;
  }
}

function heat(room: RoomLoad, editsPerSecond: number): () => void {
  let due = performance.now();
  const timer = setInterval(() => {
    for (const now = performance.now(); due < now; due += 1_000 / editsPerSecond) room.writers.forEach((writer) => room.send(writer));
  }, TURN_MS);
  return () => clearInterval(timer);
}

/** How long their writers waited for acks of what they wrote meanwhile. */
async function ackedOf(rooms: readonly RoomLoad[], what: () => Promise<unknown>): Promise<Latencies> {
  const all = rooms.map((room) => {
    room.measured = new Measured();
    room.measured.begin(performance.now());
    return room.measured;
  });
  await what();
  for (const measured of all) measured.end(performance.now());
  await eventually(
    "the neighbours are settled",
    () => rooms.every(({ writers }) => writers.every(({ sent, acked }) => sent - acked <= 1)),
    SETTLED_MS_MAX,
  );
  const together = new Latencies();
  for (const { acked } of all) together.add(acked);
  return together;
}
