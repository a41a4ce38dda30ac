/**
 * What viewports save: the bytes that each participant of a large room is sent when it is told of what moves near its
 * view, against a room that tells everybody everything; and the CPU that a gateway takes to tell them apart. In one
 * process, without sockets: only the choice of what to send to whom is timed, with the encoding of it.
 */

import { createHash } from "node:crypto";

import { type LaneName, Lanes } from "../gateway/presence/lanes.ts";
import type { ConnectionId } from "../gateway/ports.ts";
import { pacesOf } from "../gateway/presence/paces.ts";
import type { Millis } from "../shared/ids.ts";
import { encodePresenceNewsFrame } from "../shared/wire/codec.ts";
import { encodeNews, type PresenceNews } from "../shared/wire/presence.ts";
import { CanvasCrowd, type CanvasScene } from "./canvas-crowd.ts";

export type InterestScene = CanvasScene & {
  /** Of the participants; the others take part. */
  readonly spectators: number;
  readonly ticks: number;
};

/** Bytes of all frames together, as they would leave for the clients; `hash`: of the frames and their recipients. */
export type InterestFigures = {
  readonly toldAll: number;
  readonly toldNear: number;
  readonly frames: number;
  readonly microsPerTick: number;
  readonly hash: string;
};

const TICK_MS = 50;
/** Of the views, so many in a hundred move on at a tick: people pan now and then. */
const PANS = 2;

export function benchInterest(scene: InterestScene): InterestFigures {
  const crowd = new CanvasCrowd(scene);
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

  for (let index = 0; index < scene.participants; index++)
    carryOut(lanes.enter(index as ConnectionId, laneOf(index, scene), crowd.viewAround(crowd.pointOf(index))));
  let [toldAll, seconds] = [0, 0];
  for (let tick = 1; tick <= scene.ticks; tick++) {
    const news = crowd.move();
    const panning = Array.from({ length: scene.participants }, (_, index) => index).filter(() => crowd.below(100) < PANS);
    toldAll += encodePresenceNewsFrame(1, encodeNews(news)).byteLength * scene.participants;
    const before = performance.now();
    carryOut(lanes.receiveNews(news, (tick * TICK_MS) as Millis));
    for (const index of panning)
      carryOut(
        lanes.look(
          index as ConnectionId,
          crowd.viewAround({
            x: crowd.pointOf(index).x + crowd.below(scene.view.width),
            y: crowd.pointOf(index).y + crowd.below(scene.view.height),
          }),
        ),
      );
    seconds += (performance.now() - before) / 1000;
  }
  return {
    toldAll,
    toldNear: sent.bytes,
    frames: sent.frames,
    microsPerTick: Math.round((seconds / scene.ticks) * 1e6),
    hash: hash.digest("hex").slice(0, 12),
  };
}

/** The last of them are spectators: those who move take part. */
function laneOf(index: number, { participants, spectators }: InterestScene): LaneName {
  return index >= participants - spectators ? "spectators" : "editors";
}
