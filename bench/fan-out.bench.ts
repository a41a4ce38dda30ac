/**
 * The cost of large rooms for gateways, in three designs: the members of each room are spread over all gateways, they
 * meet by the routing key, or they are spread and workers encode the frames for them. In the first two designs, a gateway
 * receives all deltas of each of its rooms and encodes the frames for its own members. A worker does this for a part of
 * the recipients of each room and sends each gateway finished frames.
 *
 * Runs without sockets and NATS, and measures the CPU and the received bytes of each part at a tick. A gateway has all its
 * rooms at once, because their number decides its cost: 100 rooms with 100 members each cost it far more than 10 rooms
 * with 1,000 each.
 */

import * as decoding from "lib0/decoding";
import * as encoding from "lib0/encoding";

import type { PresenceMember } from "../shared/bus/presence-messages.ts";
import type { ClientId, Epoch, GatewayId, Millis, UserId } from "../shared/ids.ts";
import { oneOf, positiveInteger } from "../shared/settings/settings.ts";
import { encodePresenceDeltaFrame } from "../shared/wire/codec.ts";
import { encodePoint, encodeRectangle } from "../shared/wire/positions.ts";
import { CURSOR, encodeDelta, type ParticipantEntry, type PresenceDelta, VIEWPORT } from "../shared/wire/presence.ts";
import type { ConnectionId } from "../gateway/ports.ts";
import { Audience, type AudienceEffect } from "../gateway/presence/audience.ts";
import { PresenceMembers } from "../gateway/presence/presence-members.ts";
import { PresenceView } from "../gateway/presence/presence-view.ts";
import { BALANCE_FACTOR } from "./balancer-model.ts";
import { CanvasParticipants, type CanvasScene } from "./canvas-participants.ts";
import { defineExperiment, positiveIntegers } from "./experiment.ts";
import { LARGE_ROOM, type RoomSeats, routingFigures, seatRooms } from "./gateways-of-rooms.ts";

export type FanOutScene = CanvasScene & { readonly ticks: number };

/** Members of one room that a gateway has, or a worker serves, as numbers from 0. */
type RoomPart = { readonly room: number; readonly members: readonly number[] };
/** Per tick. `take`: a gateway's work with finished frames. */
type FanOutFigures = {
  readonly sortMicros: number;
  /** 99th percentile of the ticks: the presence of the last room waits this long for the other rooms. */
  readonly sortP99Micros: number;
  readonly takeMicros: number;
  readonly deltaBytes: number;
  readonly frameBytes: number;
};

type Part = { readonly view: PresenceView; readonly audience: Audience };

const TICK_MS = 50;
const EPOCH = 1 as Epoch;
/** Ticks before the measurement, because a new process runs slowly. */
const WARM_TICKS = 60;

/** One gateway or worker with its parts of rooms. `isHandedOver`: whether its frames are also sent on and taken over. */
export function benchFanOut(scene: FanOutScene, parts: readonly RoomPart[], isHandedOver: boolean): FanOutFigures {
  const rooms = parts.map(({ room, members }) => {
    const canvas = new CanvasParticipants({ ...scene, seed: scene.seed + room });
    const part = partOf(canvas, encodeDelta(snapshotOf(scene, canvas)), members);
    return { ...part, deltas: Array.from({ length: WARM_TICKS + scene.ticks }, () => encodeDelta(canvas.move())) };
  });
  const sorts: number[] = [];
  const spent = { take: 0, delta: 0, frames: 0 };
  for (let tick = 1; tick <= WARM_TICKS + scene.ticks; tick++) {
    const began = cpuMicros();
    const effects = rooms.map(({ view, audience, deltas }) => {
      const updates = view.receiveDelta({ number: tick, delta: deltas[tick - 1]! });
      const ofRoom = updates.flatMap((update) => audience.sendUpdate(update, (tick * TICK_MS) as Millis));
      framesOf(ofRoom);
      return ofRoom;
    });
    const sorted = cpuMicros();
    const handed = isHandedOver ? effects.map(handOver) : [];
    const handing = cpuMicros();
    for (const frames of handed) takeOver(frames);
    const taken = cpuMicros();
    if (tick <= WARM_TICKS) continue;
    sorts.push(sorted - began);
    spent.take += taken - handing;
    spent.delta += bytesOf(rooms.map(({ deltas }) => deltas[tick - 1]!));
    spent.frames += bytesOf(handed);
  }
  sorts.sort((a, b) => a - b);
  return {
    sortMicros: sorts.reduce((sum, micros) => sum + micros, 0) / scene.ticks,
    sortP99Micros: sorts[Math.ceil(0.99 * sorts.length) - 1]!,
    takeMicros: spent.take / scene.ticks,
    deltaBytes: spent.delta / scene.ticks,
    frameBytes: spent.frames / scene.ticks,
  };
}

function bytesOf(all: readonly Uint8Array[]): number {
  return all.reduce((sum, { byteLength }) => sum + byteLength, 0);
}

/** Numbers the members of each room gateway by gateway, and returns what each gateway has. */
export function gatewaysOf(seats: RoomSeats, gateways: number): readonly (readonly RoomPart[])[] {
  const all = Array.from({ length: gateways }, (): RoomPart[] => []);
  for (const [room, counts] of seats.entries()) {
    let first = 0;
    for (const [gateway, count] of counts) {
      all[gateway]!.push({ room, members: Array.from({ length: count }, (_, index) => first + index) });
      first += count;
    }
  }
  return all;
}

/** CPU time of this process only: other work on the machine does not count. */
function cpuMicros(): number {
  const { user, system } = process.cpuUsage();
  return user + system;
}

function memberOf(index: number): PresenceMember {
  const client = `client${String(index).padStart(10, "0")}` as ClientId;
  return { client, user: `user-${index}` as UserId, name: `User ${index}`, canWrite: true, spectator: false };
}

function snapshotOf({ participants }: FanOutScene, canvas: CanvasParticipants): PresenceDelta {
  const present = Array.from({ length: participants }, (_, index): ParticipantEntry => ({ number: index + 1, ...memberOf(index) }));
  const states = present.map(({ number }) => ({ number, fields: [{ name: CURSOR, value: encodePoint(canvas.pointOf(number - 1)) }] }));
  return { snapshot: true, present, gone: [], states };
}

function partOf(canvas: CanvasParticipants, snapshot: Uint8Array, numbers: readonly number[]): Part {
  const view = new PresenceView();
  view.receiveEpoch(EPOCH);
  view.receiveSnapshot({ number: 0, delta: snapshot });
  const members = new PresenceMembers({ gateway: "bench" as GatewayId, repeatMs: 0, keepaliveMs: 0, spectatorAfterMs: 0 }, 0);
  const audience = new Audience(members, view);
  audience.receiveStatus({ mode: "hierarchical", participants: canvas.count, presencePerSecond: 30, shed: 0 }, 0 as Millis);
  for (const number of numbers) {
    const member = memberOf(number);
    members.enter(number as ConnectionId, member, 0 as Millis);
    audience.receiveShown([
      { client: member.client, fields: [{ name: VIEWPORT, value: encodeRectangle(canvas.viewAround(canvas.pointOf(number))) }] },
    ]);
    audience.receiveEntry(number as ConnectionId, undefined);
  }
  audience.receiveTick(0 as Millis);
  return { view, audience };
}

function published(effects: readonly AudienceEffect[]): (AudienceEffect & { kind: "publish" })[] {
  return effects.filter((effect) => effect.kind === "publish");
}

function framesOf(effects: readonly AudienceEffect[]): Uint8Array[] {
  return published(effects).map(({ delta }) => encodePresenceDeltaFrame(1, delta));
}

/** Encodes the frames as a worker would send them to a gateway. */
function handOver(effects: readonly AudienceEffect[]): Uint8Array {
  const publishes = published(effects);
  return encoding.encode((out) => {
    encoding.writeVarUint(out, publishes.length);
    for (const { topic, delta } of publishes) {
      encoding.writeVarString(out, topic);
      encoding.writeVarUint8Array(out, delta);
    }
  });
}

/** Reads the frames as a gateway would: it adds its channel to each. */
function takeOver(handed: Uint8Array): void {
  const input = decoding.createDecoder(handed);
  for (let left = decoding.readVarUint(input); left > 0; left--) {
    decoding.readVarString(input);
    encodePresenceDeltaFrame(1, decoding.readVarUint8Array(input));
  }
}

const MOVING_SHARE = 0.1;
/** The default of COROOM_CONNECTIONS_MAX. Fewer gateways than this needs are left out. */
const CONNECTIONS_MAX = 50_000;
const TICKS_PER_SECOND = 1_000 / TICK_MS;
const CANVASES = { large: { width: 40_000, height: 40_000 }, screen: { width: 1_920, height: 1_080 } };

type CanvasName = keyof typeof CANVASES;

function canvasName(raw: string): CanvasName {
  return oneOf("large", "screen")(raw);
}

export const fanOut = defineExperiment({
  name: "fan-out",
  summary: "what large rooms cost gateways if their members are spread, meet by the key, or are behind workers; no server; five minutes",
  settings: {
    rooms: { parse: positiveIntegers, fallback: [1, 10, 100] as readonly number[], meaning: "rooms" },
    participants: { parse: positiveInteger, fallback: LARGE_ROOM, meaning: "participants of each room, one in ten moves" },
    gateways: { parse: positiveIntegers, fallback: [1, 3, 10] as readonly number[], meaning: "gateways" },
    workers: { parse: positiveIntegers, fallback: [1, 4] as readonly number[], meaning: "workers that share each room" },
    roomServers: { parse: positiveInteger, fallback: 4, meaning: "room servers, for the number of messages" },
    canvas: {
      parse: canvasName,
      fallback: "large" as CanvasName,
      meaning: "40,000 by 40,000, or one screen on which all see all",
    },
    ticks: { parse: positiveInteger, fallback: 100, meaning: "ticks of 50 ms that are measured" },
  },
  run: async ({ rooms: roomCounts, participants, gateways: gatewayCounts, workers, roomServers, canvas, ticks }, print) => {
    const moving = Math.floor(participants * MOVING_SHARE);
    const scene: FanOutScene = { participants, moving, canvas: CANVASES[canvas], view: { width: 1_920, height: 1_080 }, ticks, seed: 1 };
    for (const rooms of roomCounts) {
      for (const gateways of gatewayCounts.filter((count) => (rooms * participants) / count <= CONNECTIONS_MAX)) {
        print(`\n${rooms} rooms of ${participants} on ${gateways} gateways, ${moving} of each room move at ${TICKS_PER_SECOND} Hz`);
        print(`  ${["", ...COLUMNS].map((name, column) => (column === 0 ? name.padEnd(NAME_WIDTH) : name.padStart(WIDTH))).join("")}`);
        const sizes = Array.from({ length: rooms }, () => participants);
        const [spread, meeting] = (["by load", "by key"] as const).map((balancing) =>
          seatRooms(sizes, balancing, { gateways, balanceFactor: BALANCE_FACTOR }),
        );
        print(line("spread", inGateways(scene, spread!, { gateways, roomServers }, "first")));
        if (gateways > 1) print(line("by the key", inGateways(scene, meeting!, { gateways, roomServers }, "all")));
        for (const count of workers)
          print(
            line(
              `behind ${count} worker${count === 1 ? "" : "s"}`,
              behindWorkers(scene, spread!, { gateways, roomServers, workers: count }),
            ),
          );
      }
    }
  },
});

/** `each`: the busiest gateway. Shares of a core. */
type FanOutRow = {
  readonly gatewaysMean: number;
  readonly gatewaysP99: number;
  readonly eachShare: number;
  readonly tickP99Ms: number;
  readonly gatewayCores: number;
  readonly allCores: number;
  readonly bytesPerSecond: number;
  readonly messages: number;
  readonly deltas: number;
};

const COLUMNS = ["rooms on, mean", "p99", "busiest", "tick p99", "gateways", "in all", "in gateways", "messages", "deltas"];
const [NAME_WIDTH, WIDTH] = [18, 16];

function line(name: string, row: FanOutRow): string {
  const cells = [
    row.gatewaysMean.toFixed(2),
    String(row.gatewaysP99),
    `${(100 * row.eachShare).toFixed(2)}%`,
    `${row.tickP99Ms.toFixed(1)} ms`,
    `${row.gatewayCores.toFixed(3)} cores`,
    `${row.allCores.toFixed(3)} cores`,
    `${(row.bytesPerSecond / 1e6).toFixed(2)} MB/s`,
    String(row.messages),
    String(row.deltas),
  ];
  return `  ${name.padEnd(NAME_WIDTH)}${cells.map((cell) => cell.padStart(WIDTH)).join("")}`;
}

type Fleet = { readonly gateways: number; readonly roomServers: number };

const shareOf = (micros: number): number => (micros * TICKS_PER_SECOND) / 1e6;

/** `measured`: if the members are spread, all gateways are equally busy, and the first one stands for all. */
export function inGateways(scene: FanOutScene, seats: RoomSeats, { gateways, roomServers }: Fleet, measured: "first" | "all"): FanOutRow {
  const parts = gatewaysOf(seats, gateways);
  const each = (measured === "first" ? parts.slice(0, 1) : parts).map((ofGateway) => benchFanOut(scene, ofGateway, false));
  const total = (value: (one: FanOutFigures) => number): number =>
    (each.reduce((sum, one) => sum + value(one), 0) * gateways) / each.length;
  const cores = shareOf(total(({ sortMicros }) => sortMicros));
  return {
    ...routingFigures(seats, roomServers),
    eachShare: shareOf(Math.max(...each.map(({ sortMicros }) => sortMicros))),
    tickP99Ms: Math.max(...each.map(({ sortP99Micros }) => sortP99Micros)) / 1_000,
    gatewayCores: cores,
    allCores: cores,
    bytesPerSecond: total(({ deltaBytes }) => deltaBytes) * TICKS_PER_SECOND,
  };
}

/** Each worker serves its part of every room, so that all workers, and all gateways, are equally busy: one is measured. */
export function behindWorkers(
  scene: FanOutScene,
  seats: RoomSeats,
  { gateways, roomServers, workers }: Fleet & { readonly workers: number },
): FanOutRow {
  const shard = seats.map((_, room) => ({ room, members: everyNth(scene.participants, workers) }));
  const [worker, gateway] = [benchFanOut(scene, shard, false), benchFanOut(scene, gatewaysOf(seats, gateways)[0]!, true)];
  const gatewayCores = gateways * shareOf(gateway.takeMicros);
  const { gatewaysMean, gatewaysP99, deltas } = routingFigures(seats, roomServers);
  return {
    gatewaysMean,
    gatewaysP99,
    eachShare: shareOf(gateway.takeMicros),
    tickP99Ms: worker.sortP99Micros / 1_000,
    gatewayCores,
    allCores: gatewayCores + workers * shareOf(worker.sortMicros),
    bytesPerSecond: gateways * gateway.frameBytes * TICKS_PER_SECOND,
    messages: Math.min(roomServers, seats.length) * workers + workers * gateways,
    deltas: seats.length * workers + deltas * workers,
  };
}

function everyNth(participants: number, step: number): readonly number[] {
  return Array.from({ length: Math.ceil(participants / step) }, (_, index) => index * step);
}
