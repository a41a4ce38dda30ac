/**
 * Measures the bytes that viewports save in a large room. It compares two cases: the gateway sends each participant
 * only the moves near its viewport, or all moves. Also measures the gateway's CPU for the selection and the encoding of
 * frames. It runs in one process without sockets.
 */

import { createHash } from "node:crypto";

import type { Millis } from "../shared/ids.ts";
import { positiveInteger } from "../shared/settings/settings.ts";
import { encodePresenceDeltaFrame } from "../shared/wire/codec.ts";
import { encodeDelta, type PresenceDelta } from "../shared/wire/presence.ts";
import type { ConnectionId } from "../gateway/ports.ts";
import { Lanes } from "../gateway/presence/lanes.ts";
import { type LaneName, laneRatesOf } from "../gateway/presence/shed-ladder.ts";
import { CanvasParticipants, type CanvasScene } from "./canvas-participants.ts";
import { defineExperiment } from "./experiment.ts";

export type InterestScene = CanvasScene & {
  /** Participants that are spectators. */
  readonly spectators: number;
  readonly ticks: number;
};

/** Bytes of all frames to all clients together. `hash`: of the frames and their numbers of recipients. */
type InterestFigures = {
  readonly bytesToAll: number;
  readonly bytesByView: number;
  readonly frames: number;
  readonly microsPerTick: number;
  readonly hash: string;
};

const TICK_MS = 50;
/** Percentage of the views that move at a tick. */
const PANS = 2;

export function benchInterest(scene: InterestScene): InterestFigures {
  const canvas = new CanvasParticipants(scene);
  const listening = new Map<string, Set<ConnectionId>>();
  const sent = { bytes: 0, frames: 0 };
  const hash = createHash("sha256");
  const send = (delta: PresenceDelta, recipients: number): void => {
    const frame = encodePresenceDeltaFrame(1, encodeDelta(delta));
    hash.update(frame).update(String(recipients));
    sent.bytes += frame.byteLength * recipients;
    sent.frames += recipients;
  };
  const lanes = new Lanes({ snapshot: true, present: [], gone: [], states: [] }, { byView: true, rates: laneRatesOf(0) }, 0 as Millis);
  const carryOut = (effects: ReturnType<Lanes["changeView"]>): void => {
    for (const effect of effects) {
      if (effect.kind === "listen") listening.set(effect.topic, (listening.get(effect.topic) ?? new Set()).add(effect.connection));
      else if (effect.kind === "unlisten") listening.get(effect.topic)?.delete(effect.connection);
      else if (effect.kind === "send") send(effect.delta, 1);
      else if (effect.kind === "publish") {
        const recipients = listening.get(effect.topic)?.size ?? 0;
        if (recipients > 0) send(effect.delta, recipients);
      }
    }
  };

  for (let index = 0; index < scene.participants; index++)
    carryOut(lanes.add(index as ConnectionId, laneOf(index, scene), canvas.viewAround(canvas.pointOf(index))));
  let [bytesToAll, seconds] = [0, 0];
  for (let tick = 1; tick <= scene.ticks; tick++) {
    const delta = canvas.move();
    const panning = Array.from({ length: scene.participants }, (_, index) => index).filter(() => canvas.below(100) < PANS);
    bytesToAll += encodePresenceDeltaFrame(1, encodeDelta(delta)).byteLength * scene.participants;
    const before = performance.now();
    carryOut(lanes.receiveDelta(delta, (tick * TICK_MS) as Millis));
    for (const index of panning)
      carryOut(
        lanes.changeView(
          index as ConnectionId,
          canvas.viewAround({
            x: canvas.pointOf(index).x + canvas.below(scene.view.width),
            y: canvas.pointOf(index).y + canvas.below(scene.view.height),
          }),
        ),
      );
    seconds += (performance.now() - before) / 1000;
  }
  return {
    bytesToAll,
    bytesByView: sent.bytes,
    frames: sent.frames,
    microsPerTick: Math.round((seconds / scene.ticks) * 1e6),
    hash: hash.digest("hex").slice(0, 12),
  };
}

/** The last participants are spectators. Moving participants are the first ones. */
function laneOf(index: number, { participants, spectators }: InterestScene): LaneName {
  return index >= participants - spectators ? "spectators" : "editors";
}

const SECONDS_PER_TICK = TICK_MS / 1_000;
const LARGE_CANVAS = { width: 40_000, height: 40_000 };
const ONE_SCREEN = { width: 1_920, height: 1_080 };
const SPECTATORS_SHARE = 0.9;

export const interest = defineExperiment({
  name: "interest",
  summary: "what viewports save: presence by view against presence of everybody to everybody; needs no server; a minute",
  settings: {
    participants: { parse: positiveInteger, fallback: 1_000, meaning: "participants of the room" },
    moving: { parse: positiveInteger, fallback: 100, meaning: "participants that move at every tick" },
    rounds: { parse: positiveInteger, fallback: 3, meaning: "rounds of each scene" },
    ticks: { parse: positiveInteger, fallback: 400, meaning: "ticks of 50 ms in a round" },
  },
  run: async ({ participants, moving, rounds, ticks }, print) => {
    const base = { participants, moving, ticks, view: ONE_SCREEN, seed: 1 };
    const spectators = Math.floor(participants * SPECTATORS_SHARE);
    const scenes: Readonly<Record<string, InterestScene>> = {
      "large canvas, no spectators": { ...base, spectators: 0, canvas: LARGE_CANVAS },
      "large canvas, nine in ten are spectators": { ...base, spectators, canvas: LARGE_CANVAS },
      "one screen, no spectators": { ...base, spectators: 0, canvas: ONE_SCREEN },
      "one screen, nine in ten are spectators": { ...base, spectators, canvas: ONE_SCREEN },
    };
    for (const [name, scene] of Object.entries(scenes)) {
      print(`\n${name}: ${participants} participants, ${moving} moving at 20 Hz, ${ticks} ticks`);
      for (let round = 1; round <= rounds; round++) {
        const { bytesToAll, bytesByView, frames, microsPerTick, hash } = benchInterest(scene);
        const perSecond = (count: number): string => (count / participants / ticks / SECONDS_PER_TICK).toFixed(1);
        const saved = Math.round(100 * (1 - bytesByView / bytesToAll));
        print(
          `  ${round}  bytes/s a recipient: ${perSecond(bytesToAll)} of everything, ${perSecond(bytesByView)} by view (${saved}% saved); ${perSecond(frames)} frames/s each; ${microsPerTick} µs of CPU a tick; ${hash}`,
        );
      }
    }
  },
});
