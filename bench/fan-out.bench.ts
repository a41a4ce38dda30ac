/**
 * Estimates the gain and the cost of fan-out workers for the gateways of a very large room. Today every gateway
 * receives all deltas of the room and encodes the frames for its own members. A worker would do this for a part of the
 * recipients and send each gateway finished frames. Runs without sockets and NATS, and measures the CPU and the
 * received bytes of each part at a tick.
 */

import * as decoding from "lib0/decoding";
import * as encoding from "lib0/encoding";

import type { ConnectionId } from "../gateway/ports.ts";
import { Audience, type AudienceEffect } from "../gateway/presence/audience.ts";
import { PresenceMembers } from "../gateway/presence/presence-members.ts";
import { PresenceView } from "../gateway/presence/presence-view.ts";
import type { PresenceMember } from "../shared/bus/presence-messages.ts";
import type { ClientId, Epoch, GatewayId, Millis, UserId } from "../shared/ids.ts";
import { encodePresenceDeltaFrame } from "../shared/wire/codec.ts";
import { CURSOR, encodeDelta, type ParticipantEntry, type PresenceDelta, VIEWPORT } from "../shared/wire/presence.ts";
import { encodePoint, encodeRectangle } from "../shared/wire/positions.ts";
import { CanvasParticipants, type CanvasScene } from "./canvas-participants.ts";
import { positiveInteger } from "../shared/settings/settings.ts";
import { defineExperiment, positiveIntegers, type Print } from "./experiment.ts";

export type FanOutScene = CanvasScene & { readonly ticks: number };

/** For each part of the recipients, per tick. `take`: a gateway's work with finished frames. */
export type FanOutFigures = {
  readonly sortMicros: number;
  readonly takeMicros: number;
  readonly deltaBytes: number;
  readonly frameBytes: number;
};

type Part = { readonly view: PresenceView; readonly audience: Audience };

const TICK_MS = 50;
const EPOCH = 1 as Epoch;
/** Ticks before the measurement, because a new process runs slowly. */
const WARM_TICKS = 60;

/** `parts`: number of gateways or shards that share the recipients. */
export function benchFanOut(scene: FanOutScene, parts: number): FanOutFigures {
  const canvas = new CanvasParticipants(scene);
  const snapshot = encodeDelta(snapshotOf(scene, canvas));
  const all = Array.from({ length: parts }, (_, index) => partOf(scene, canvas, snapshot, { index, parts }));
  const spent = { sort: 0, take: 0, delta: 0, frames: 0 };
  for (let tick = 1; tick <= WARM_TICKS + scene.ticks; tick++) {
    const delta = encodeDelta(canvas.move());
    if (tick === WARM_TICKS + 1) Object.assign(spent, { sort: 0, take: 0, delta: 0, frames: 0 });
    for (const { view, audience } of all) {
      const began = cpuMicros();
      const effects = view
        .receiveDelta({ number: tick, delta })
        .flatMap((update) => audience.sendUpdate(update, (tick * TICK_MS) as Millis));
      framesOf(effects);
      const sorted = cpuMicros();
      const handed = handOver(effects);
      const handing = cpuMicros();
      takeOver(handed);
      spent.sort += sorted - began;
      spent.take += cpuMicros() - handing;
      spent.delta += delta.byteLength;
      spent.frames += handed.byteLength;
    }
  }
  const perTick = (sum: number): number => sum / scene.ticks / parts;
  return {
    sortMicros: perTick(spent.sort),
    takeMicros: perTick(spent.take),
    deltaBytes: perTick(spent.delta),
    frameBytes: perTick(spent.frames),
  };
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

function partOf(
  { participants }: FanOutScene,
  canvas: CanvasParticipants,
  snapshot: Uint8Array,
  { index, parts }: { index: number; parts: number },
): Part {
  const view = new PresenceView();
  view.receiveEpoch(EPOCH);
  view.receiveSnapshot({ number: 0, delta: snapshot });
  const members = new PresenceMembers({ gateway: "bench" as GatewayId, repeatMs: 0, keepaliveMs: 0, spectatorAfterMs: 0 }, 0);
  const audience = new Audience(members, view);
  audience.receiveStatus({ mode: "hierarchical", participants, presencePerSecond: 30, shed: 0 }, 0 as Millis);
  for (let number = index; number < participants; number += parts) {
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
const TICKS_PER_SECOND = 1_000 / TICK_MS;
const CANVASES = { "a large canvas": { width: 40_000, height: 40_000 }, "one screen": { width: 1_920, height: 1_080 } };

export const fanOut = defineExperiment({
  name: "fan-out",
  summary: "what fan-out workers would save the gateways of a very large room; needs no server; one to three minutes",
  settings: {
    participants: {
      parse: positiveIntegers,
      fallback: [1_000, 5_000] as readonly number[],
      meaning: "participants of the room, one in ten moves",
    },
    gateways: { parse: positiveIntegers, fallback: [1, 3, 10] as readonly number[], meaning: "gateways" },
    workers: { parse: positiveInteger, fallback: 4, meaning: "workers" },
    ticks: { parse: positiveInteger, fallback: 200, meaning: "ticks of 50 ms that are measured" },
  },
  run: async ({ participants: sizes, gateways: gatewayCounts, workers, ticks }, print) => {
    for (const participants of sizes) {
      for (const [place, canvas] of Object.entries(CANVASES)) {
        const moving = Math.floor(participants * MOVING_SHARE);
        const scene: FanOutScene = { participants, moving, canvas, view: { width: 1_920, height: 1_080 }, ticks, seed: 1 };
        print(`\n${participants} participants on ${place}, ${moving} of them moving at ${TICKS_PER_SECOND} Hz`);
        const shard = benchFanOut(scene, workers);
        for (const gateways of gatewayCounts) compare({ gateways, workers }, benchFanOut(scene, gateways), shard, print);
      }
    }
  },
});

function compare(
  { gateways, workers }: { gateways: number; workers: number },
  each: FanOutFigures,
  shard: FanOutFigures,
  print: Print,
): void {
  const shareOfCore = (micros: number): string => `${((micros * TICKS_PER_SECOND) / 1e4).toFixed(2)}%`;
  const kilobytes = (bytes: number): string => `${((bytes * TICKS_PER_SECOND) / 1000).toFixed(0)} KB/s`;
  const [without, withWorkers] = [gateways * each.sortMicros, workers * shard.sortMicros + gateways * each.takeMicros];
  print(
    `  ${gateways} gateways without workers: ${shareOfCore(each.sortMicros)} of a core and ${kilobytes(each.deltaBytes)} each, ${shareOfCore(without)} together`,
  );
  print(
    `  ${gateways} gateways behind ${workers} workers: ${shareOfCore(each.takeMicros)} and ${kilobytes(each.frameBytes)} each, ${shareOfCore(shard.sortMicros)} a worker, ${shareOfCore(withWorkers)} together`,
  );
}
