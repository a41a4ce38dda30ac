/**
 * Providers of several rooms on one connection, and on connections of their own, that are made, left, entered again and
 * destroyed in any order, also by listeners of their own events. Seeded: a failing seed replays exactly.
 */

import { expect, test } from "vitest";
import * as Y from "yjs";

import { Prng } from "../../shared/collections/prng.ts";
import { ConnectionHost } from "../connection/connection-host.ts";
import { DeviceStore } from "../persistence/device-store.ts";
import { ClientFakeClock } from "../testing/fake-clock.ts";
import { MemoryStore } from "../testing/memory-store.ts";
import { ModelServer } from "../testing/model-server.ts";
import { MINUTE } from "../testing/test-page.ts";
import type { ProviderEvents, ProviderOptions } from "./provider-events.ts";
import { YjsProvider } from "./yjs-provider.ts";

const SEEDS = Array.from({ length: 30 }, (_, index) => index + 1);
const STEPS = 60;
const PROVIDERS_MAX = 8;
const EVENTS = [
  "status",
  "synced",
  "saved",
  "stored",
  "seq",
  "participants",
  "presence",
  "restored",
] as const satisfies (keyof ProviderEvents)[];
/** Chance that a listener acts. */
const ACTS = 1 / 40;

class Crowd {
  readonly server = new ModelServer(new ClientFakeClock(), { faults: { delayMsMax: 50, editLost: 0.02 } });
  readonly connection: ConnectionHost;
  readonly providers = new Set<YjsProvider>();
  readonly errors: unknown[] = [];
  readonly #prng: Prng;
  readonly #device = new MemoryStore();
  #made = 0;
  #depth = 0;
  #isQuiet = false;

  constructor(seed: number) {
    this.#prng = new Prng(seed);
    this.server.snapshotOf = (edits) => Y.mergeUpdates(edits.map(({ payload }) => payload));
    this.connection = new ConnectionHost({ url: "ws://h", token: () => "t.o.k" }, this.server.world(0));
  }

  async act(): Promise<void> {
    const provider = [...this.providers][this.#prng.below(this.providers.size)];
    if (provider === undefined) this.#make();
    else this.#actOn(provider);
    if (this.#prng.chance(0.07)) this.server.cut(this.#prng.chance(0.5) ? 1006 : "silently");
    if (this.#prng.chance(0.04)) this.connection.disconnect();
    if (this.#prng.chance(0.04)) this.connection.connect();
    await this.server.clock.advance(this.#prng.chance(0.3) ? 0 : this.#prng.below(2_000));
  }

  /** From now on listeners do nothing. */
  async settle(): Promise<void> {
    this.#isQuiet = true;
    this.server.faults = { ...this.server.faults, editLost: 0 };
    this.connection.connect();
    for (const provider of this.providers) provider.connect();
    await this.server.clock.advance(5 * MINUTE);
  }

  #make(): void {
    if (this.providers.size === PROVIDERS_MAX) return;
    this.#made += 1;
    const doc = new Y.Doc();
    doc.clientID = this.#made;
    const provider = new YjsProvider(
      {
        ...(this.#prng.chance(0.25) ? { url: "ws://h", token: "t" } : { connection: this.connection }),
        room: `room-${this.#prng.below(3)}`,
        doc,
        store: this.#prng.chance(0.5) ? new DeviceStore(this.#device.forPage()) : undefined,
      } as ProviderOptions,
      { ...this.server.world(this.#made), reportError: (error) => this.errors.push(error) },
    );
    this.providers.add(provider);
    const mayAct = (): void => void (!this.#isQuiet && this.#prng.chance(ACTS) && this.#actOn(provider));
    for (const event of EVENTS) provider.on(event, mayAct);
    provider.awareness.on("change", mayAct);
    doc.on("update", mayAct);
  }

  #actOn(provider: YjsProvider): void {
    if (this.#depth > 3) return;
    this.#depth += 1;
    const text = provider.doc.getText("t");
    const destroy = (what: YjsProvider | Y.Doc): void => {
      this.providers.delete(provider);
      what.destroy();
    };
    const actions = [
      () => destroy(provider),
      () => destroy(provider.doc),
      () => provider.disconnect(),
      () => provider.connect(),
      () => text.insert(0, String(this.#prng.below(10))),
      () => text.length > 2 && text.delete(0, 1),
      () => provider.awareness.setLocalStateField("caret", this.#prng.below(100)),
      () => this.#make(),
    ];
    actions[this.#prng.below(actions.length)]!();
    this.#depth -= 1;
  }
}

test.each(SEEDS)(
  "[YJS38] providers that are destroyed in any order leave nothing running, and the others converge (seed %i)",
  async (seed) => {
    const crowd = new Crowd(seed);
    for (let step = 0; step < STEPS; step++) await crowd.act();
    await crowd.settle();

    expect(crowd.errors).toEqual([]);
    const contents = new Map<string, Set<string>>();
    for (const { room, doc, status, synced, saved } of crowd.providers) {
      expect({ room, status, synced, saved }).toEqual({ room, status: "connected", synced: true, saved: true });
      contents.set(room, (contents.get(room) ?? new Set()).add(doc.getText("t").toString()));
    }
    for (const [room, texts] of contents) expect([...texts], room).toHaveLength(1);

    for (const provider of crowd.providers) provider.destroy();
    crowd.connection.disconnect();
    await crowd.server.clock.advance(MINUTE);
    expect([crowd.server.connections.size, crowd.server.clock.pending]).toEqual([0, 0]);
  },
);
