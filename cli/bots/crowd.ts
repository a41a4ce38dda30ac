/**
 * The bots of one process: SDK clients that join a room one after the other, point about, and leave when they are
 * told. A few of them type. None hears of the others, which would cost hundreds of times hundreds of pointers.
 */

import * as Y from "yjs";

import { openSocket } from "../../client/io/node-socket.ts";
import { fetchSnapshot } from "../../client/io/fetch-snapshot.ts";
import { reportError, systemChance, systemClock } from "../../client/io/system.ts";
import type { OpenSocket, World } from "../../client/ports.ts";
import { RoomHost } from "../../client/room/room-host.ts";
import { YjsProvider } from "../../client/yjs/yjs-provider.ts";
import { caretOf } from "../../console/person.ts";
import { Prng } from "../../shared/prng.ts";
import { FrameType } from "../../shared/wire/frames.ts";
import { Typist } from "./typist.ts";
import { Wander } from "./wander.ts";

/** All the bots that are to be in the room, by what each is told. Those who are there already stay. */
export type CrowdOrder = {
  readonly url: string;
  readonly room: string;
  readonly bots: readonly { readonly name: string; readonly token: string }[];
};

type Bot = { step(now: number): void; leave(): void };

const STEP_MS = 100;
/** A crowd that comes at once would be turned away in part. */
const JOIN_EVERY_MS = 25;
const TYPISTS_MAX = 5;
const BOTS_PER_TYPIST = 20;
/** Pointers that move at one time; the rest of a crowd rests. */
const MOVING_MAX = 40;
/** Every so many only watch, and become spectators. */
const WATCHER_EVERY = 5;
/** How far a crowd spreads: a larger one further, so that a page sees a part of it. */
const REACH_OF_ONE = 60;
/** What was taken back is to reach the room before its writer leaves. */
const LEAVE_MS = 1_500;

export class Crowd {
  readonly #bots = new Map<string, Bot[]>();
  readonly #wanted = new Map<string, CrowdOrder>();
  #steppedAt = 0;

  constructor() {
    setInterval(() => this.#step(Date.now()), JOIN_EVERY_MS);
  }

  receive(order: CrowdOrder): void {
    this.#wanted.set(order.room, order);
    const bots = this.#bots.get(order.room) ?? [];
    this.#bots.set(order.room, bots);
    for (const bot of bots.splice(order.bots.length)) bot.leave();
  }

  /** One more of each room that is not complete, and everybody's next move in turn. */
  #step(now: number): void {
    for (const [room, order] of this.#wanted) {
      const bots = this.#bots.get(room)!;
      if (bots.length < order.bots.length) bots.push(botOf(order, bots.length, now));
    }
    if (now - this.#steppedAt < STEP_MS) return;
    this.#steppedAt = now;
    for (const bots of this.#bots.values()) for (const bot of bots) bot.step(now);
  }
}

function botOf(order: CrowdOrder, index: number, now: number): Bot {
  const count = order.bots.length;
  const prng = new Prng(index * 7_919 + count);
  const wander = new Wander({ reach: REACH_OF_ONE * Math.sqrt(count) + 150, activeShare: Math.min(0.8, MOVING_MAX / count) }, prng, now);
  const { name, token } = order.bots[index]!;
  const reach = { url: order.url, room: order.room, token };
  if (index < Math.min(TYPISTS_MAX, 1 + count / BOTS_PER_TYPIST)) return typingBot(reach, name, wander, prng, now);
  return pointingBot(reach, wander, index % WATCHER_EVERY === WATCHER_EVERY - 1);
}

function pointingBot(reach: { url: string; room: string; token: string }, wander: Wander, onlyWatches: boolean): Bot {
  const room = new RoomHost(reach, worldWithout("presence-news", "committed", "tentative", "resync-required"));
  let pointed = false;
  return {
    step: (now) => {
      const place = onlyWatches && pointed ? undefined : wander.step(now);
      if (place !== undefined) room.presence.set({ cursor: place });
      pointed ||= place !== undefined;
    },
    leave: () => room.destroy(),
  };
}

function typingBot(reach: { url: string; room: string; token: string }, name: string, wander: Wander, prng: Prng, now: number): Bot {
  const doc = new Y.Doc();
  const provider = new YjsProvider({ ...reach, doc }, worldWithout("presence-news"));
  const typist = new Typist(doc.getText("text"), prng, now);
  provider.awareness.setLocalStateField("user", caretOf(name));
  return {
    step: (at) => {
      if (!provider.synced) return;
      const caret = typist.step(at);
      if (caret !== undefined) provider.awareness.setLocalStateField("cursor", { anchor: caret, head: caret });
      const place = wander.step(at);
      if (place !== undefined) provider.presence.set({ cursor: place });
    },
    leave: () => {
      typist.takeBack();
      setTimeout(() => provider.destroy(), LEAVE_MS);
    },
  };
}

/** A client that is deaf to frames of these types. */
function worldWithout(...types: (keyof typeof FrameType)[]): World {
  const deafTo = new Set<number>(types.map((type) => FrameType[type]));
  const openDeaf: OpenSocket = (url, listener) =>
    openSocket(url, {
      opened: () => listener.opened(),
      received: (bytes) => deafTo.has(bytes[0] ?? -1) || listener.received(bytes),
      closed: (code) => listener.closed(code),
    });
  return { clock: systemClock, chance: systemChance, openSocket: openDeaf, fetchSnapshot, reportError };
}
