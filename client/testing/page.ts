/** One page of a browser, on a model server and a device's store: everything of it ends at once when it is closed. */

import * as Y from "yjs";

import type { Clock, World } from "../ports.ts";
import { type ProviderOptions, YjsProvider } from "../yjs/yjs-provider.ts";
import type { MemoryStore } from "./memory-store.ts";
import type { ModelServer } from "./model-server.ts";

export class Page {
  readonly doc = new Y.Doc();
  readonly provider: YjsProvider;
  readonly told: string[] = [];
  readonly #end: () => void;

  constructor(server: ModelServer, device: MemoryStore | undefined, seed: number, options: Partial<ProviderOptions> = {}) {
    this.doc.clientID = seed; // So that a seed replays exactly.
    const { world, die } = mortal(server.world(seed));
    const store = device?.forPage();
    this.provider = new YjsProvider(
      { url: "ws://h", token: "t", room: "notes", doc: this.doc, ...(store && { store }), ...options } as ProviderOptions,
      world,
    );
    this.provider.on("restored", () => this.told.push("restored"));
    this.provider.on("error", ({ kind }) => this.told.push(kind));
    this.#end = () => {
      die();
      store?.die();
    };
  }

  get text(): string {
    return this.doc.getText("t").toString();
  }

  type(text: string): void {
    this.doc.getText("t").insert(this.doc.getText("t").length, text);
  }

  /** The browser tells the page nothing. */
  close(): void {
    this.#end();
  }
}

function mortal(world: World): { world: World; die: () => void } {
  let isDead = false;
  const sockets = new Set<{ close(): void }>();
  const clock: Clock = {
    now: () => world.clock.now(),
    after: (delayMs, run) => world.clock.after(delayMs, () => isDead || run()),
    soon: (run) => world.clock.soon(() => isDead || run()),
  };
  const openSocket: World["openSocket"] = (url, listener) => {
    const socket = world.openSocket(url, listener);
    sockets.add(socket);
    return socket;
  };
  const die = (): void => {
    isDead = true;
    for (const socket of sockets) socket.close();
  };
  return { world: { ...world, clock, openSocket }, die };
}
