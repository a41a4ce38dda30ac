/**
 * A crowd of the SDK's own clients in rooms, some of whom type, while gateways and room servers come and go: for the
 * scenarios herd and rolling. New connections go to the gateways that it is told of, as by a balancer.
 *
 * Every client is followed seq by seq; where an edit is lost, repeated or out of order, or a user is shown an error, it is noted.
 */

import { createHash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";

import { fetchSnapshot } from "../../client/io/fetch-snapshot.ts";
import { openSocket } from "../../client/io/node-socket.ts";
import { reportError, systemChance, systemClock } from "../../client/io/system.ts";
import type { World } from "../../client/ports.ts";
import { RoomHost } from "../../client/room/room-host.ts";
import { keystroke } from "./keystroke.ts";
import { Latencies, type LatencyPairs } from "./latencies.ts";
import { serveCalls } from "./worker.ts";

export type Place = { readonly room: string; readonly token: string; readonly types: boolean };
export type CrowdLoad = typeof functions;
export type Verdict = {
  /** Lost, repeated, out of order, not the same for all. Must be empty. */
  readonly faults: readonly string[];
  /** What a user would have been shown. */
  readonly shown: readonly string[];
  readonly edits: number;
  readonly snapshots: number;
  /** From typing to its ack. */
  readonly acked: LatencyPairs;
  /** The longest that a client in a room where others typed heard nothing of them. */
  readonly longestGapMs: number;
};

/** No faster than a gateway takes connections by default. */
const OPENED_PER_SECOND = 400;
const SETTLED_MS_MAX = 120_000;
/** A busy machine needs longer for more of them. */
const SETTLED_MS_EACH = 40;

let gateways: readonly string[] = [];
let turn = 0;
let crowd: Client[] = [];
let typing: Promise<void> | undefined;
let stopTyping = (): void => {};

const world: World = {
  clock: systemClock,
  chance: systemChance,
  // The path is the SDK's; the host is whoever the balancer chooses.
  openSocket: (url, listener) => openSocket(new URL(new URL(url).pathname, gateways[turn++ % gateways.length]).href, listener),
  fetchSnapshot: (url, token, signal) =>
    fetchSnapshot(new URL(new URL(url).pathname, gateways[turn++ % gateways.length]!.replace("ws:", "http:")).href, token, signal),
  reportError,
};

const functions = {
  aim: (urls: readonly string[]): void => void (gateways = urls),
  open: async (places: readonly Place[]): Promise<void> => {
    const started = performance.now();
    for (const [index, place] of places.entries()) {
      const waitMs = started + (index * 1000) / OPENED_PER_SECOND - performance.now();
      if (waitMs > 0) await sleep(waitMs);
      crowd.push(new Client(place, index));
    }
    await until("all are in their rooms", () => crowd.every(({ synced }) => synced));
  },
  startTyping: ({ editsPerSecond }: { editsPerSecond: number }): void => {
    let stopped = false;
    stopTyping = () => (stopped = true);
    typing = (async () => {
      const typists = crowd.filter(({ types }) => types);
      const started = performance.now();
      for (let edit = 0; !stopped; edit++) {
        const waitMs = started + (edit * 1000) / (editsPerSecond * typists.length) - performance.now();
        if (waitMs > 0) await sleep(waitMs);
        typists[edit % typists.length]!.type();
      }
    })();
  },
  /** The crowd loses its gateway now. Answers once everybody is back and level with the room. */
  backAfterLoss: async (): Promise<{ times: LatencyPairs; msToLast: number }> => {
    const lostAt = performance.now();
    const before = crowd.map(({ lines }) => lines);
    const backAt = new Map<Client, number>();
    await until("all are back", () => {
      crowd.forEach((client, index) => {
        if (!backAt.has(client) && client.lines > before[index]! && client.synced) backAt.set(client, performance.now());
      });
      return backAt.size === crowd.length;
    });
    const times = new Latencies();
    for (const at of backAt.values()) times.record(at - lostAt);
    return { times: times.toPairs(), msToLast: Math.max(...backAt.values()) - lostAt };
  },
  finish: async (): Promise<Verdict> => {
    stopTyping();
    await typing;
    await until("everything is saved", () => crowd.every(({ saved }) => saved));
    const typed = new Map<string, number>();
    for (const { room, typed: count } of crowd) typed.set(room, (typed.get(room) ?? 0) + count);
    const head = (room: string): number => typed.get(room) ?? 0;
    await until("everybody has everything", () => crowd.every(({ room, seq }) => seq >= head(room)));
    const faults = crowd.flatMap((client) => client.faultsAt(head(client.room)));
    for (const room of typed.keys()) {
      const orders = new Set(crowd.filter((client) => client.room === room && client.snapshots === 0).map(({ order }) => order));
      if (orders.size > 1) faults.push(`${room}: not the same order for all`);
    }
    const acked = new Latencies();
    for (const client of crowd) acked.add(client.acked);
    const verdict = {
      faults: faults.slice(0, 20),
      shown: crowd.flatMap(({ shown }) => shown).slice(0, 20),
      edits: [...typed.values()].reduce((sum, count) => sum + count, 0),
      snapshots: crowd.reduce((sum, { snapshots }) => sum + snapshots, 0),
      acked: acked.toPairs(),
      longestGapMs: Math.max(...crowd.map(({ longestGapMs }) => longestGapMs)),
    };
    for (const client of crowd) client.leave();
    crowd = [];
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
  /** Connections that came to be. */
  lines = 0;
  longestGapMs = 0;
  readonly #host: RoomHost;
  readonly #writer: number;
  readonly #faults: string[] = [];
  readonly #sentAt: number[] = [];
  readonly #order = createHash("sha256");
  readonly #distinct = new Set<string>();
  #heardAt: number | undefined;

  constructor({ room, token, types }: Place, index: number) {
    this.room = room;
    this.types = types;
    this.#writer = index + 1;
    this.#host = new RoomHost({ url: gateways[0]!, room, token, mergeUnsent: false, connect: false }, world);
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
        else this.#heard(now);
      }
    });
    this.#host.on("snapshot", ({ position }) => {
      this.seq = position.seq;
      this.snapshots += 1;
    });
    this.#host.on("status", ({ status }) => {
      if (status === "connected") this.lines += 1;
    });
    this.#host.on("rolled-back", () => this.#fault("was told that edits were lost"));
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

  /** What it was given, and in which order. */
  get order(): string {
    return this.#order.copy().digest("hex");
  }

  type(): void {
    this.typed += 1;
    this.#sentAt.push(performance.now());
    this.#host.send(keystroke(this.#writer, this.typed));
  }

  /** `head`: how many edits were typed in the room. */
  faultsAt(head: number): string[] {
    if (this.seq !== head) this.#fault(`is at seq ${this.seq} where ${head} edits were typed`);
    if (this.snapshots === 0 && this.#distinct.size !== head) this.#fault(`got ${this.#distinct.size} different edits of ${head}`);
    return this.#faults;
  }

  leave(): void {
    this.#host.destroy();
  }

  #heard(now: number): void {
    if (this.#heardAt !== undefined) this.longestGapMs = Math.max(this.longestGapMs, now - this.#heardAt);
    this.#heardAt = now;
  }

  #fault(what: string): void {
    this.#faults.push(`${this.room}: a client ${what}`);
  }
}

async function until(what: string, isTrue: () => boolean): Promise<void> {
  const msMax = SETTLED_MS_MAX + crowd.length * SETTLED_MS_EACH;
  const deadline = performance.now() + msMax;
  while (!isTrue()) {
    if (performance.now() > deadline)
      throw new Error(
        `did not come true within ${msMax} ms: ${what}; ${crowd.filter(({ synced }) => synced).length} of ${crowd.length} are in their rooms`,
      );
    await sleep(10);
  }
}

serveCalls(functions);
