/**
 * The load of the scenarios herd and rolling: many SDK clients in rooms, some of which type, while gateways and room
 * servers stop and start. New connections go to the gateways that `aim` names, in turn, as with a load balancer. Every
 * client is checked seq by seq. A lost, repeated or reordered edit and every error shown to a user are recorded.
 */

import { createHash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";

import { fetchSnapshot } from "../../client/io/fetch-snapshot.ts";
import { openSocket } from "../../client/io/node-socket.ts";
import { reportError, systemChance, systemClock } from "../../client/io/system.ts";
import type { ClientWorld } from "../../client/ports.ts";
import { RoomConnection } from "../../client/room/room-connection-host.ts";
import { keystroke } from "../../cli/bench/keystroke.ts";
import { Latencies, type LatencyPairs } from "../../cli/bench/latencies.ts";
import { serveCalls } from "./worker.ts";

export type SdkClientPlan = { readonly room: string; readonly token: string; readonly types: boolean };
export type SdkLoad = typeof functions;
type SdkLoadFigures = {
  /** Edits that are lost, repeated, out of order or not the same for all. Must be empty. */
  readonly faults: readonly string[];
  /** Errors that a user would have seen. */
  readonly shown: readonly string[];
  readonly edits: number;
  readonly snapshots: number;
  /** From typing to the ack. */
  readonly acked: LatencyPairs;
  /** Longest time in which a client received nothing while others in its room typed. */
  readonly longestGapMs: number;
};

/** A gateway's default rate of new connections is higher. */
const OPENED_PER_SECOND = 400;
const SETTLED_MS_MAX = 120_000;
/** Additional time for each client on a busy machine. */
const SETTLED_MS_EACH = 40;

let gateways: readonly string[] = [];
let turn = 0;
let clients: Client[] = [];
let typing: Promise<void> | undefined;
let stopTyping = (): void => {};

const world: ClientWorld = {
  clock: systemClock,
  chance: systemChance,
  // The SDK chooses the path, the load balancer the host.
  openSocket: (url, listener) => openSocket(new URL(new URL(url).pathname, gateways[turn++ % gateways.length]).href, listener),
  fetchSnapshot: (url, token, signal) =>
    fetchSnapshot(new URL(new URL(url).pathname, gateways[turn++ % gateways.length]!.replace("ws:", "http:")).href, token, signal),
  reportError,
};

const functions = {
  aim: (urls: readonly string[]): void => void (gateways = urls),
  open: async (places: readonly SdkClientPlan[]): Promise<void> => {
    const started = performance.now();
    for (const [index, place] of places.entries()) {
      const waitMs = started + (index * 1000) / OPENED_PER_SECOND - performance.now();
      if (waitMs > 0) await sleep(waitMs);
      clients.push(new Client(place, index));
    }
    await until("all clients are in their rooms", () => clients.every(({ synced }) => synced));
  },
  startTyping: ({ editsPerSecond }: { editsPerSecond: number }): void => {
    let stopped = false;
    stopTyping = () => (stopped = true);
    typing = (async () => {
      const typists = clients.filter(({ types }) => types);
      const started = performance.now();
      for (let edit = 0; !stopped; edit++) {
        const waitMs = started + (edit * 1000) / (editsPerSecond * typists.length) - performance.now();
        if (waitMs > 0) await sleep(waitMs);
        typists[edit % typists.length]!.type();
      }
    })();
  },
  /** All clients lose their gateway now. Resolves when each has caught up with its room. */
  backAfterLoss: async (): Promise<{ times: LatencyPairs; msToLast: number }> => {
    const lostAt = performance.now();
    const before = clients.map(({ connections }) => connections);
    const backAt = new Map<Client, number>();
    await until("all clients are back", () => {
      clients.forEach((client, index) => {
        if (!backAt.has(client) && client.connections > before[index]! && client.synced) backAt.set(client, performance.now());
      });
      return backAt.size === clients.length;
    });
    const times = new Latencies();
    for (const at of backAt.values()) times.record(at - lostAt);
    return { times: times.toPairs(), msToLast: Math.max(...backAt.values()) - lostAt };
  },
  finish: async (): Promise<SdkLoadFigures> => {
    stopTyping();
    await typing;
    await until("every edit is saved", () => clients.every(({ saved }) => saved));
    const typed = new Map<string, number>();
    for (const { room, typed: count } of clients) typed.set(room, (typed.get(room) ?? 0) + count);
    const head = (room: string): number => typed.get(room) ?? 0;
    await until("every client has every edit", () => clients.every(({ room, seq }) => seq >= head(room)));
    const faults = clients.flatMap((client) => client.faultsAt(head(client.room)));
    for (const room of typed.keys()) {
      const orders = new Set(clients.filter((client) => client.room === room && client.snapshots === 0).map(({ order }) => order));
      if (orders.size > 1) faults.push(`${room}: not the same order for all`);
    }
    const acked = new Latencies();
    for (const client of clients) acked.add(client.acked);
    const verdict = {
      faults: faults.slice(0, 20),
      shown: clients.flatMap(({ shown }) => shown).slice(0, 20),
      edits: [...typed.values()].reduce((sum, count) => sum + count, 0),
      snapshots: clients.reduce((sum, { snapshots }) => sum + snapshots, 0),
      acked: acked.toPairs(),
      longestGapMs: Math.max(...clients.map(({ longestGapMs }) => longestGapMs)),
    };
    for (const client of clients) client.leave();
    clients = [];
    return verdict;
  },
};

class Client {
  readonly room: string;
  readonly types: boolean;
  readonly acked = new Latencies();
  readonly shown: string[] = [];
  typed = 0;
  seq = 0;
  snapshots = 0;
  /** Number of opened connections. */
  connections = 0;
  longestGapMs = 0;
  readonly #host: RoomConnection;
  readonly #writer: number;
  readonly #faults: string[] = [];
  readonly #sentAt: number[] = [];
  readonly #order = createHash("sha256");
  readonly #distinct = new Set<string>();
  #receivedAt: number | undefined;

  constructor({ room, token, types }: SdkClientPlan, index: number) {
    this.room = room;
    this.types = types;
    this.#writer = index + 1;
    this.#host = new RoomConnection({ url: gateways[0]!, room, token, mergeUnsent: false, connect: false }, world);
    this.#host.on("edits", (edits) => {
      const now = performance.now();
      for (const { seq, client, counter, own } of edits) {
        if (seq !== this.seq + 1) this.#fault(`got seq ${seq} after ${this.seq}`);
        this.seq = seq;
        const edit = `${client}/${counter}`;
        if (this.#distinct.has(edit)) this.#fault(`got ${edit} twice`);
        this.#distinct.add(edit);
        this.#order.update(edit);
        if (own) this.acked.record(now - this.#sentAt[counter - 1]!);
        else this.#recordReceipt(now);
      }
    });
    this.#host.on("snapshot", ({ position }) => {
      this.seq = position.seq;
      this.snapshots += 1;
    });
    this.#host.on("status", ({ status }) => {
      if (status === "connected") this.connections += 1;
    });
    this.#host.on("rolled-back", () => this.#fault("received a rollback of edits"));
    this.#host.on("refused", (refusal) => void this.shown.push(`${room}/${index}: ${JSON.stringify(refusal)}`));
    this.#host.on("error", (problem) => void this.shown.push(`${room}/${index}: ${JSON.stringify(problem)}`));
    this.#host.connect();
  }

  get synced(): boolean {
    return this.#host.synced && this.#host.status === "connected";
  }

  get saved(): boolean {
    return this.#host.saved;
  }

  /** Hash of all received edits in their order. */
  get order(): string {
    return this.#order.copy().digest("hex");
  }

  type(): void {
    this.typed += 1;
    this.#sentAt.push(performance.now());
    this.#host.send(keystroke(this.#writer, this.typed));
  }

  /** `head`: number of edits typed in the room. */
  faultsAt(head: number): string[] {
    if (this.seq !== head) this.#fault(`is at seq ${this.seq} where ${head} edits were typed`);
    if (this.snapshots === 0 && this.#distinct.size !== head) this.#fault(`got ${this.#distinct.size} different edits of ${head}`);
    return this.#faults;
  }

  leave(): void {
    this.#host.destroy();
  }

  #recordReceipt(now: number): void {
    if (this.#receivedAt !== undefined) this.longestGapMs = Math.max(this.longestGapMs, now - this.#receivedAt);
    this.#receivedAt = now;
  }

  #fault(what: string): void {
    this.#faults.push(`${this.room}: a client ${what}`);
  }
}

async function until(what: string, isTrue: () => boolean): Promise<void> {
  const msMax = SETTLED_MS_MAX + clients.length * SETTLED_MS_EACH;
  const deadline = performance.now() + msMax;
  while (!isTrue()) {
    if (performance.now() > deadline)
      throw new Error(
        `timed out after ${msMax} ms: ${what}; ${clients.filter(({ synced }) => synced).length} of ${clients.length} are in their rooms`,
      );
    await sleep(10);
  }
}

serveCalls(functions);
