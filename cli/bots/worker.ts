/**
 * The demo's bots run on their own thread, so that they take no time from the servers' event loop. Each bot is an SDK
 * client that joins a room, moves its pointer, and leaves on request. A few bots type. No bot receives the presence of
 * the others, because that would cost hundreds of times hundreds of pointer updates.
 */

import { parentPort } from "node:worker_threads";
import * as Y from "yjs";

import { Prng } from "../../shared/collections/prng.ts";
import { FrameType } from "../../shared/wire/frames.ts";
import { fetchSnapshot } from "../../client/io/fetch-snapshot.ts";
import { openSocket } from "../../client/io/node-socket.ts";
import { reportError, systemChance, systemClock } from "../../client/io/system.ts";
import type { OpenSocket, ClientWorld } from "../../client/ports.ts";
import { RoomConnection } from "../../client/room/room-connection-host.ts";
import { YjsProvider } from "../../client/yjs/yjs-provider.ts";
import { caretOf } from "../../console/person.ts";
import { Typist } from "./typist.ts";
import { Wander } from "./wander.ts";

/** All bots that the room should have. Bots that are already there stay. */
export type BotOrder = {
  readonly url: string;
  readonly room: string;
  readonly bots: readonly { readonly name: string; readonly token: string }[];
};

type Bot = { step(now: number): void; leave(): void };

const STEP_MS = 100;
/** Bots join one after the other, because gateways reject part of a large group that joins at once. */
const JOIN_EVERY_MS = 25;
const TYPISTS_MAX = 5;
const BOTS_PER_TYPIST = 20;
/** Maximum number of pointers that move at the same time. The other bots rest. */
const MOVING_MAX = 40;
/** Every fifth bot only watches and becomes a spectator. */
const WATCHER_EVERY = 5;
/** Distance that one bot covers. A larger group spreads further, so that a page sees only a part of it. */
const REACH_OF_ONE = 60;
/** Delay before a bot disconnects, so that its undo reaches the room first. */
const LEAVE_MS = 1_500;

class BotGroup {
  readonly #bots = new Map<string, Bot[]>();
  readonly #wanted = new Map<string, BotOrder>();
  #steppedAt = 0;

  constructor() {
    setInterval(() => this.#step(Date.now()), JOIN_EVERY_MS);
  }

  receiveOrder(order: BotOrder): void {
    this.#wanted.set(order.room, order);
    const bots = this.#bots.get(order.room) ?? [];
    this.#bots.set(order.room, bots);
    for (const bot of bots.splice(order.bots.length)) bot.leave();
  }

  /** Adds one bot to each incomplete room, and moves all bots when a step is due. */
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

function botOf(order: BotOrder, index: number, now: number): Bot {
  const count = order.bots.length;
  const prng = new Prng(index * 7_919 + count);
  const wander = new Wander({ reach: REACH_OF_ONE * Math.sqrt(count) + 150, activeShare: Math.min(0.8, MOVING_MAX / count) }, prng, now);
  const { name, token } = order.bots[index]!;
  const reach = { url: order.url, room: order.room, token };
  if (index < Math.min(TYPISTS_MAX, 1 + count / BOTS_PER_TYPIST)) return typingBot(reach, name, wander, prng, now);
  return pointingBot(reach, wander, index % WATCHER_EVERY === WATCHER_EVERY - 1);
}

function pointingBot(reach: { url: string; room: string; token: string }, wander: Wander, onlyWatches: boolean): Bot {
  const room = new RoomConnection(reach, worldWithout("presence-delta", "committed", "tentative", "resync-required"));
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
  const provider = new YjsProvider({ ...reach, doc }, worldWithout("presence-delta"));
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
      typist.undoAll();
      setTimeout(() => provider.destroy(), LEAVE_MS);
    },
  };
}

/** A client world that drops received frames of these types. */
function worldWithout(...types: (keyof typeof FrameType)[]): ClientWorld {
  const deafTo = new Set<number>(types.map((type) => FrameType[type]));
  const openDeaf: OpenSocket = (url, listener) =>
    openSocket(url, {
      opened: () => listener.opened(),
      received: (bytes) => deafTo.has(bytes[0] ?? -1) || listener.received(bytes),
      closed: (code) => listener.closed(code),
    });
  return { clock: systemClock, chance: systemChance, openSocket: openDeaf, fetchSnapshot, reportError };
}

const group = new BotGroup();
parentPort?.on("message", (order: BotOrder) => group.receiveOrder(order));
