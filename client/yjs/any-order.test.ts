/**
 * Providers whose application calls any method at any moment, also in listeners of events, while connections, tokens and
 * rooms fail at random. Providers share connections and rooms. `saved` is never true without the log, events are emitted
 * for changes only, all documents end equal, and nothing runs on after `destroy()`.
 */

import { expect, test } from "vitest";
import * as Y from "yjs";

import { Prng } from "../../shared/collections/prng.ts";
import type { RoomId } from "../../shared/ids.ts";
import { CLOSE } from "../../shared/wire/close-codes.ts";
import type { ServerFrame } from "../../shared/wire/frames.ts";
import { ConnectionHost } from "../connection/connection-host.ts";
import type { ClientWorld, NetworkChange } from "../ports.ts";
import type { StatusChange } from "../room/room-events.ts";
import { ClientFakeClock } from "../testing/fake-clock.ts";
import { ModelServer } from "../testing/model-server.ts";
import type { ProviderEvents, ProviderOptions } from "./provider-events.ts";
import { YjsProvider } from "./yjs-provider.ts";

const ROOMS = ["notes", "tasks"] as readonly string[] as readonly RoomId[];
const STEPS = 100;
const PAGES_MAX = 7;
/** Each emits a value, and never the same value twice. */
const FACTS = [
  "synced",
  "sync",
  "saved",
  "stored",
  "status",
  "seq",
  "unsyncedChanges",
] as const satisfies readonly (keyof ProviderEvents)[];
const OTHER_EVENTS = ["participants", "presence", "connection-close", "error"] as const satisfies readonly (keyof ProviderEvents)[];

type Page = { readonly provider: YjsProvider; readonly doc: Y.Doc; readonly room: RoomId; readonly typed: string[]; isEnding: boolean };

class World {
  readonly clock = new ClientFakeClock();
  readonly server: ModelServer;
  readonly pages: Page[] = [];
  readonly watches = new Set<(change: NetworkChange) => void>();
  readonly faults: string[] = [];
  /** Listeners call methods, too. */
  areListenersActive = true;
  token: () => string | Promise<string> = () => "t.o.k";
  readonly #prng: Prng;
  readonly #shared: readonly ConnectionHost[];
  readonly #seed: number;

  constructor(seed: number) {
    this.#seed = seed;
    this.#prng = new Prng(seed);
    this.server = new ModelServer(this.clock, { seed, faults: { delayMsMax: this.#prng.unit() * 60, editTwice: 0.1, editRefused: 0.05 } });
    this.server.snapshotOf = (edits) => Y.mergeUpdates(edits.map(({ payload }) => payload));
    this.server.tokenExpiresInMs = 20_000;
    this.#shared = [0, 1].map((at) => new ConnectionHost({ url: "ws://h", token: () => this.token() }, this.#ports(900 + at)));
  }

  get open(): readonly Page[] {
    return this.pages.filter(({ isEnding }) => !isEnding);
  }

  textInLog(room: RoomId): string {
    const doc = new Y.Doc();
    for (const { payload } of this.server.room(room).log) Y.applyUpdate(doc, payload);
    return doc.getText("t").toString();
  }

  openPage(): void {
    const doc = new Y.Doc();
    doc.clientID = this.#seed * 100 + this.pages.length;
    const room = ROOMS[this.#prng.below(2)]!;
    const connection = this.#shared[this.#prng.below(4)]; // Undefined for half of the pages.
    const source = connection === undefined ? { url: "ws://h", token: () => this.token() } : { connection };
    const provider = new YjsProvider({ ...source, room, doc } as ProviderOptions, this.#ports(this.pages.length));
    const page: Page = { provider, doc, room, typed: [], isEnding: false };
    this.pages.push(page);
    const emitted = new Map<string, string>();
    for (const name of [...FACTS, ...OTHER_EVENTS])
      provider.on(name, (...[value]: readonly unknown[]) => {
        const { status, why, number, retryInMs } = (value ?? {}) as StatusChange & { readonly number?: number };
        const retryAt = retryInMs === undefined ? undefined : this.clock.now() + retryInMs; // Each wait is a fact of its own.
        const fact = JSON.stringify(typeof value === "object" ? [status, why, number, retryAt] : value);
        if (FACTS.some((one) => one === name) && emitted.get(name) === fact) this.faults.push(`${name} ${fact} twice`);
        emitted.set(name, fact);
        if (this.areListenersActive && this.#prng.chance(0.02)) this.act(page);
      });
  }

  act(page: Page): void {
    const { provider, doc } = page;
    const actions: readonly [share: number, () => void][] = [
      [20, () => this.#type(page)],
      [5, () => provider.disconnect()],
      [10, () => provider.connect()],
      [3, () => (provider.disconnect(), provider.connect())],
      [2, () => (provider.connect(), provider.disconnect(), this.#type(page), provider.connect())],
      [5, () => provider.presence.set({ cursor: { x: this.#prng.below(100), y: 1 } })],
      [3, () => provider.awareness.setLocalStateField("user", { name: String(this.#prng.below(5)) })],
      [1, () => this.end(page, this.#prng.chance(0.5) ? provider : doc)],
    ];
    this.#draw(actions.flatMap(([share, action]) => Array.from({ length: share }, () => action)))();
  }

  end(page: Page, what: { destroy(): void }): void {
    page.isEnding = true;
    what.destroy();
    page.provider.destroy();
    page.provider.connect(); // Without effect.
  }

  misfortune(): void {
    const { server } = this;
    const room = server.room(this.#draw(ROOMS));
    this.#draw<() => void>([
      () => server.cut(this.#draw([1006, CLOSE.goingAway.code, CLOSE.tooSlow.code, CLOSE.tokenExpired.code, "silently"] as const)),
      () => server.send({ type: "going-away", reconnectAfterMs: this.#prng.below(3_000) } as ServerFrame),
      () => server.send({ type: "degraded", backbone: this.#draw(["lost", "ok"]), reconnectAfterMs: 500 } as ServerFrame),
      () => room.failOver(),
      () => (room.trimmedThrough = Math.max(room.trimmedThrough, this.#prng.below(room.head + 1))),
      () => (server.reachable = !server.reachable),
      () => (server.refuseJoins = this.#prng.chance(0.5) ? { reason: "unavailable", retryAfterMs: 2_000 } : undefined),
      () => (this.token = this.#draw([() => "t.o.k", () => Promise.reject(new Error("no token")), () => new Promise<string>(() => {})])),
      () => this.watches.forEach((report) => report(this.#draw(["back", "doubtful"]))),
      () => this.#draw(this.#shared).disconnect(),
      () => this.#draw(this.#shared).connect(),
      () => this.open.length < PAGES_MAX && this.openPage(),
    ])();
  }

  heal(): void {
    this.areListenersActive = false;
    this.server.faults = { ...this.server.faults, editRefused: 0 };
    this.server.reachable = true;
    this.server.refuseJoins = undefined;
    this.token = () => "t.o.k";
  }

  /** Pages that end leave shared connections open, because others may use them. */
  endAll(): void {
    for (const page of this.open) this.end(page, page.provider);
    for (const connection of this.#shared) connection.disconnect();
  }

  async step(): Promise<void> {
    for (const page of this.open) if (this.#prng.chance(0.3)) this.act(page);
    if (this.#prng.chance(0.3)) this.misfortune();
    await this.clock.advance(this.#prng.unit() * (this.#prng.chance(0.05) ? 20_000 : 300));
    for (const { provider, room, typed } of this.open) {
      const text = provider.saved ? this.textInLog(room) : undefined;
      for (const word of typed) if (text?.includes(word) === false) this.faults.push(`${word} is saved, but not in the log`);
    }
  }

  #type({ provider, doc, typed, isEnding }: Page): void {
    if (isEnding) return;
    const word = `<${doc.clientID}.${typed.length}>`;
    const text = doc.getText("t");
    typed.push(word);
    text.insert(this.#prng.below(2) * text.length, word);
    if (provider.saved) this.faults.push("saved directly after a change");
  }

  #draw<One>(from: readonly One[]): One {
    return from[this.#prng.below(from.length)]!;
  }

  #ports(number: number): ClientWorld {
    const watchNetwork: ClientWorld["watchNetwork"] = (report) => {
      this.watches.add(report);
      return () => void this.watches.delete(report);
    };
    return { ...this.server.world(this.#seed * 1_000 + number), watchNetwork };
  }
}

test.each(Array.from({ length: 16 }, (_, index) => 40_000 + index))("[YAO1] any order of calls and failures (seed %i)", async (seed) => {
  const world = new World(seed);
  for (let page = 0; page < 4; page++) world.openPage();
  for (let step = 0; step < STEPS; step++) await world.step();
  world.heal();
  for (const { provider } of world.open) provider.connect();
  await world.clock.advance(120_000);
  for (const { provider, doc, room, typed } of world.open) {
    expect([provider.status, provider.saved, provider.synced]).toEqual(["connected", true, true]);
    const text = doc.getText("t").toString();
    expect(text).toBe(world.textInLog(room));
    for (const word of typed) expect(text.split(word), `${word} is there once`).toHaveLength(2);
  }
  world.endAll();
  await world.clock.advance(60_000);
  expect([world.clock.pending, world.server.connections.size, world.watches.size, world.faults]).toEqual([0, 0, 0, []]);
});
