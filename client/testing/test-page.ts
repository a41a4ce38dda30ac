/**
 * An application in a room on a model server, with all events that it received, and the frames that the server
 * received.
 */

import * as Y from "yjs";

import type { RoomId } from "../../shared/ids.ts";
import type { ClientFrame } from "../../shared/wire/frames.ts";
import { DeviceStore } from "../persistence/device-store.ts";
import type { ClientClock, ClientWorld } from "../ports.ts";
import type { Problem, Refusal } from "../room/problems.ts";
import { RoomConnection } from "../room/room-connection-host.ts";
import type { RoomConnectionOptions } from "../room/room-events.ts";
import type { ProviderOptions } from "../yjs/provider-events.ts";
import { YjsProvider } from "../yjs/yjs-provider.ts";
import { ClientFakeClock } from "./fake-clock.ts";
import type { MemoryStore } from "./memory-store.ts";
import { LIMITS } from "./model-connection.ts";
import { ModelServer } from "./model-server.ts";

export const NOTES = "notes" as RoomId;
export const MINUTE = 60_000;
export const bytes = (...values: number[]): Uint8Array => new Uint8Array(values);

/** The limits are so high that only tests about limits reach them. */
export function serverOn(): ModelServer {
  const server = new ModelServer(new ClientFakeClock(), { faults: { delayMsMax: 5 } });
  server.limits = { ...LIMITS, editBurst: 100, editsPerSecond: 1_000 };
  return server;
}

export class App {
  readonly host: RoomConnection;
  readonly edits: string[] = [];
  readonly tentative: string[] = [];
  readonly statuses: string[] = [];
  readonly problems: Problem[] = [];
  readonly refusals: Refusal[] = [];
  readonly facts: string[] = [];

  constructor(server: ModelServer, seed: number, options: Partial<RoomConnectionOptions> = {}) {
    this.host = new RoomConnection(
      { url: "ws://h", token: () => "t.o.k", room: NOTES, connect: false, ...options } as RoomConnectionOptions,
      server.world(seed),
    );
    this.host.on("edit", ({ seq, payload, own }) => this.edits.push(`${seq}:${payload}${own ? " own" : ""}`));
    this.host.on("tentative", (edits) => this.tentative.push(...edits.map(({ payload }) => `${payload}`)));
    this.host.on("status", ({ status }) => this.statuses.push(status));
    this.host.on("error", (problem) => this.problems.push(problem));
    this.host.on("refused", (refusal) => this.refusals.push(refusal));
    this.host.on("synced", (synced) => this.facts.push(synced ? "synced" : "not synced"));
    this.host.on("saved", (saved) => this.facts.push(saved ? "saved" : "unsaved"));
    this.host.on("saving", (saving) => this.facts.push(`log ${saving}`));
    this.host.connect();
  }
}

export function receivedFrames<Type extends ClientFrame["type"]>(server: ModelServer, type: Type): Extract<ClientFrame, { type: Type }>[] {
  return server.receivedFrames.filter((frame): frame is Extract<ClientFrame, { type: Type }> => frame.type === type);
}

/** One browser page on a model server and a device's store. Closing it ends everything at once. */
export class TestPage {
  readonly doc = new Y.Doc();
  readonly provider: YjsProvider;
  readonly events: string[] = [];
  readonly #end: () => void;

  constructor(server: ModelServer, device: MemoryStore | undefined, seed: number, options: Partial<ProviderOptions> = {}) {
    this.doc.clientID = seed; // A fixed seed, so that a failing seed replays exactly.
    const { world, die } = mortal(server.world(seed));
    const store = device?.forPage();
    this.provider = new YjsProvider(
      {
        url: "ws://h",
        token: "t",
        room: "notes",
        doc: this.doc,
        ...(store && { store: new DeviceStore(store) }),
        ...options,
      } as ProviderOptions,
      world,
    );
    this.provider.on("restored", () => this.events.push("restored"));
    this.provider.on("error", ({ kind }) => this.events.push(kind));
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

  /** The browser does not notify the page. */
  close(): void {
    this.#end();
  }
}

function mortal(world: ClientWorld): { world: ClientWorld; die: () => void } {
  let isDead = false;
  const sockets = new Set<{ close(): void }>();
  const clock: ClientClock = {
    now: () => world.clock.now(),
    after: (delayMs, run) => world.clock.after(delayMs, () => isDead || run()),
    soon: (run) => world.clock.soon(() => isDead || run()),
  };
  const openSocket: ClientWorld["openSocket"] = (url, listener) => {
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
