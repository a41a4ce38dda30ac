/**
 * What viewports save: the bytes that each participant of a large room is sent when it is told of what moves near its
 * view, against a room that tells everybody everything; and the CPU that a gateway takes to tell them apart. In one
 * process, without sockets: only the choice of what to send to whom is timed, with the encoding of it.
 */

import { createHash } from "node:crypto";

import { type LaneName, Lanes } from "../gateway/lanes.ts";
import type { ConnectionId } from "../gateway/ports.ts";
import { pacesOf } from "../gateway/shed.ts";
import type { Millis } from "../shared/ids.ts";
import { Prng } from "../shared/prng.ts";
import { encodePresenceNewsFrame } from "../shared/wire/codec.ts";
import { encodePoint, type Point, type Rectangle } from "../shared/wire/positions.ts";
import { CURSOR, encodeNews, type PresenceNews } from "../shared/wire/presence.ts";

export type InterestScene = {
  readonly participants: number;
  /** So many of them move, at every tick. */
  readonly moving: number;
  /** Of the participants; the others take part. */
  readonly spectators: number;
  readonly canvas: Pick<Rectangle, "width" | "height">;
  readonly view: Pick<Rectangle, "width" | "height">;
  readonly ticks: number;
  readonly seed: number;
};

/** Bytes of all frames together, as they would leave for the clients; `hash`: of the frames and their recipients. */
export type InterestFigures = { readonly toldAll: number; readonly toldNear: number; readonly frames: number; readonly microsPerTick: number; readonly hash: string };

const TICK_MS = 50;
const STEP = 25;
/** Of the views, so many in a hundred move on at a tick: people pan now and then. */
const PANS = 2;

export function benchInterest(scene: InterestScene): InterestFigures {
  const random = new Prng(scene.seed);
  const within = (limit: number): number => random.below(Math.max(1, limit));
  const points: Point[] = Array.from({ length: scene.participants }, () => ({ x: within(scene.canvas.width), y: within(scene.canvas.height) }));
  const listening = new Map<string, Set<ConnectionId>>();
  const sent = { bytes: 0, frames: 0 };
  const hash = createHash("sha256");
  const send = (news: PresenceNews, recipients: number): void => {
    const frame = encodePresenceNewsFrame(1, encodeNews(news));
    hash.update(frame).update(String(recipients));
    sent.bytes += frame.byteLength * recipients;
    sent.frames += recipients;
  };
  const lanes = new Lanes({ whole: true, present: [], gone: [], states: [] }, { byView: true, paces: pacesOf(0) }, 0 as Millis);
  const carryOut = (effects: ReturnType<Lanes["look"]>): void => {
    for (const effect of effects) {
      if (effect.kind === "listen") listening.set(effect.topic, (listening.get(effect.topic) ?? new Set()).add(effect.connection));
      else if (effect.kind === "unlisten") listening.get(effect.topic)?.delete(effect.connection);
      else if (effect.kind === "send") send(effect.news, 1);
      else if (effect.kind === "publish") {
        const recipients = listening.get(effect.topic)?.size ?? 0;
        if (recipients > 0) send(effect.news, recipients);
      }
    }
  };
  const viewAround = ({ x, y }: Point): Rectangle => ({ x: x - Math.floor(scene.view.width / 2), y: y - Math.floor(scene.view.height / 2), ...scene.view });

  points.forEach((point, index) => carryOut(lanes.enter(index as ConnectionId, laneOf(index, scene), viewAround(point))));
  let [toldAll, seconds] = [0, 0];
  for (let tick = 1; tick <= scene.ticks; tick++) {
    const states = Array.from({ length: scene.moving }, (_, index) => {
      const from = points[index]!;
      const to = { x: from.x + within(2 * STEP) - STEP, y: from.y + within(2 * STEP) - STEP };
      points[index] = to;
      return { number: index + 1, fields: [{ name: CURSOR, value: encodePoint(to) }] };
    });
    const news: PresenceNews = { whole: false, present: [], gone: [], states };
    const panning = points.map((_, index) => index).filter(() => random.below(100) < PANS);
    toldAll += encodePresenceNewsFrame(1, encodeNews(news)).byteLength * scene.participants;
    const before = performance.now();
    carryOut(lanes.receiveNews(news, (tick * TICK_MS) as Millis));
    for (const index of panning) carryOut(lanes.look(index as ConnectionId, viewAround({ x: points[index]!.x + within(scene.view.width), y: points[index]!.y + within(scene.view.height) })));
    seconds += (performance.now() - before) / 1000;
  }
  return { toldAll, toldNear: sent.bytes, frames: sent.frames, microsPerTick: Math.round((seconds / scene.ticks) * 1e6), hash: hash.digest("hex").slice(0, 12) };
}

/** The last of them are spectators: those who move take part. */
function laneOf(index: number, { participants, spectators }: InterestScene): LaneName {
  return index >= participants - spectators ? "spectators" : "editors";
}
