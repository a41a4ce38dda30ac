/**
 * What fan-out workers would spare the gateways of a very large room, and what they would cost. As it is, every gateway
 * takes the room's whole news and makes the frames for its own members; a worker would do the same for one shard of
 * the recipients, and hand each gateway the frames ready to send. In one process, without sockets and without NATS:
 * CPU of what each would do at a tick, and the bytes that each would get.
 */

import * as decoding from "lib0/decoding";
import * as encoding from "lib0/encoding";

import type { ConnectionId } from "../gateway/ports.ts";
import { Reach, type ReachEffect } from "../gateway/presence/presence-reach.ts";
import { PresenceView } from "../gateway/presence/presence-view.ts";
import type { ClientId, Epoch, Millis, UserId } from "../shared/ids.ts";
import { encodePresenceNewsFrame } from "../shared/wire/codec.ts";
import { CURSOR, encodeNews, type Participant, type PresenceNews } from "../shared/wire/presence.ts";
import { encodePoint } from "../shared/wire/positions.ts";
import { CanvasCrowd, type CanvasScene } from "./canvas-crowd.ts";

export type FanOutScene = CanvasScene & { readonly ticks: number };

/** Of each part of the recipients, at a tick. `take`: what a gateway would still do with frames that come ready made. */
export type FanOutFigures = {
  readonly sortMicros: number;
  readonly takeMicros: number;
  readonly newsBytes: number;
  readonly frameBytes: number;
};

type Part = { readonly view: PresenceView; readonly reach: Reach };

const TICK_MS = 50;
const EPOCH = 1 as Epoch;
/** Ticks before any counts: what is young is slow. */
const WARM_TICKS = 60;

/** `parts`: gateways, or shards: as many as the recipients are spread over. */
export function benchFanOut(scene: FanOutScene, parts: number): FanOutFigures {
  const crowd = new CanvasCrowd(scene);
  const whole = encodeNews(wholeOf(scene, crowd));
  const all = Array.from({ length: parts }, (_, index) => partOf(scene, crowd, whole, { index, parts }));
  const spent = { sort: 0, take: 0, news: 0, frames: 0 };
  for (let tick = 1; tick <= WARM_TICKS + scene.ticks; tick++) {
    const news = encodeNews(crowd.move());
    if (tick === WARM_TICKS + 1) Object.assign(spent, { sort: 0, take: 0, news: 0, frames: 0 });
    for (const { view, reach } of all) {
      const began = cpuMicros();
      const effects = view
        .receiveNews({ number: tick, news })
        .flatMap((tidings) => reach.tell(tidings, undefined, (tick * TICK_MS) as Millis));
      framesOf(effects);
      const sorted = cpuMicros();
      const handed = handOver(effects);
      const handing = cpuMicros();
      takeOver(handed);
      spent.sort += sorted - began;
      spent.take += cpuMicros() - handing;
      spent.news += news.byteLength;
      spent.frames += handed.byteLength;
    }
  }
  const perTick = (sum: number): number => sum / scene.ticks / parts;
  return {
    sortMicros: perTick(spent.sort),
    takeMicros: perTick(spent.take),
    newsBytes: perTick(spent.news),
    frameBytes: perTick(spent.frames),
  };
}

/** Of this process: what else the machine does counts for nothing. */
function cpuMicros(): number {
  const { user, system } = process.cpuUsage();
  return user + system;
}

function wholeOf({ participants }: FanOutScene, crowd: CanvasCrowd): PresenceNews {
  const present = Array.from({ length: participants }, (_, index): Participant => ({
    number: index + 1,
    client: `client${String(index).padStart(10, "0")}` as ClientId,
    user: `user-${index}` as UserId,
    name: `User ${index}`,
    canWrite: true,
    spectator: false,
  }));
  const states = present.map(({ number }) => ({ number, fields: [{ name: CURSOR, value: encodePoint(crowd.pointOf(number - 1)) }] }));
  return { whole: true, present, gone: [], states };
}

function partOf(
  { participants }: FanOutScene,
  crowd: CanvasCrowd,
  whole: Uint8Array,
  { index, parts }: { index: number; parts: number },
): Part {
  const view = new PresenceView();
  view.receiveEpoch(EPOCH);
  view.receiveWhole({ number: 0, news: whole });
  const reach = new Reach(view);
  reach.changeRule({ mode: "hierarchical", shed: 0 }, 0 as Millis);
  for (let member = index; member < participants; member += parts)
    reach.enter(member as ConnectionId, "editors", crowd.viewAround(crowd.pointOf(member)));
  return { view, reach };
}

function published(effects: readonly ReachEffect[]): (ReachEffect & { kind: "publish" })[] {
  return effects.filter((effect) => effect.kind === "publish");
}

function framesOf(effects: readonly ReachEffect[]): Uint8Array[] {
  return published(effects).map(({ news }) => encodePresenceNewsFrame(1, news));
}

/** As a worker would send them to a gateway. */
function handOver(effects: readonly ReachEffect[]): Uint8Array {
  const told = published(effects);
  return encoding.encode((out) => {
    encoding.writeVarUint(out, told.length);
    for (const { topic, news } of told) {
      encoding.writeVarString(out, topic);
      encoding.writeVarUint8Array(out, news);
    }
  });
}

/** As a gateway would take them: it still puts its channel in front of each. */
function takeOver(handed: Uint8Array): void {
  const input = decoding.createDecoder(handed);
  for (let left = decoding.readVarUint(input); left > 0; left--) {
    decoding.readVarString(input);
    encodePresenceNewsFrame(1, decoding.readVarUint8Array(input));
  }
}
