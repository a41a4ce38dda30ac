/**
 * A backend that writes to ordinary rooms and reads them over HTTP, within the default limits of users. At the end each
 * room's text must have a letter for every write that was answered with 200.
 */

import { setTimeout as sleep } from "node:timers/promises";

import { keystroke } from "../cli/bench/keystroke.ts";
import { Latencies } from "../cli/bench/latencies.ts";
import { paced } from "../cli/bench/paced.ts";
import type { MeasuredSystem } from "./systems/system.ts";

/** `statuses`: number of answers by status. */
export type RequestFigures = { readonly latencies: Latencies; readonly statuses: Readonly<Record<number, number>> };

const ROOMS = 10;
/** A quarter of what two gateways accept from one user. */
const WRITES_PER_SECOND = 10;
/** What one gateway accepts of five users. */
const READS_PER_SECOND = 10;
const READERS = 5;
const ANSWER_MS_MAX = 60_000;
const ASK_AGAIN_MS = 250;

/** Number of writes that were answered with 200, and the highest seq of these answers. */
type Written = { readonly writes: number; readonly seq: number };

export class BackendRequests {
  readonly #gateways: readonly string[];
  readonly #writer: string;
  readonly #readers: readonly string[];
  /** By room. */
  readonly #written = new Map<string, Written>();
  #writes = 0;
  #reads = 0;

  private constructor({ gateways }: MeasuredSystem, writer: string, readers: readonly string[], name: string) {
    this.#gateways = gateways.map((url) => url.replace("ws:", "http:"));
    this.#writer = writer;
    this.#readers = readers;
    for (let room = 0; room < ROOMS; room++) this.#written.set(`${name}-${room}`, { writes: 0, seq: 0 });
  }

  /** Resolves once the document service answers. `name`: of the rooms. */
  static async start(system: MeasuredSystem, name: string): Promise<BackendRequests> {
    const readers = await Promise.all(Array.from({ length: READERS }, (_, reader) => system.token(`${name}-reader-${reader}`)));
    const requests = new BackendRequests(system, await system.token(name), readers, name);
    for (const room of requests.#written.keys()) await requests.#text(room);
    return requests;
  }

  async run(ms: number): Promise<{ readonly writes: RequestFigures; readonly reads: RequestFigures }> {
    const rooms = [...this.#written.keys()];
    const roomOf = (turn: number): string => rooms[turn % rooms.length]!;
    const [writes, reads] = await Promise.all([
      timed(WRITES_PER_SECOND, ms, (turn) => this.#write(roomOf(turn))),
      timed(READS_PER_SECOND, ms, async (turn) => (await this.#read(roomOf(turn))).status),
    ]);
    return { writes, reads };
  }

  /** Throws if a room lacks a letter. */
  async judge(): Promise<void> {
    for (const [room, { writes, seq }] of this.#written) {
      const { length } = await this.#text(room, seq);
      if (length < writes) throw new Error(`${room}: ${writes} HTTP writes were answered with 200, and the text has ${length} letters`);
    }
  }

  /** Empty for a room without edits. */
  async #text(room: string, minSeq = 0): Promise<string> {
    for (const deadline = performance.now() + ANSWER_MS_MAX; ; await sleep(ASK_AGAIN_MS)) {
      const { status, text } = await this.#read(room, minSeq);
      if (status === 200) return text;
      if (status === 404) return "";
      if (performance.now() > deadline) throw new Error(`${room} is not answered within ${ANSWER_MS_MAX} ms: ${status} ${text}`);
    }
  }

  async #write(room: string): Promise<number> {
    const edit = keystroke(++this.#writes, 1); // A Yjs client id for each write.
    const headers = { "authorization": `Bearer ${this.#writer}`, "content-type": "application/octet-stream" };
    const answer = await fetch(this.#url(this.#writes, room, "edits"), { method: "POST", headers, body: Buffer.from(edit) });
    await answer.arrayBuffer();
    const { writes, seq } = this.#written.get(room)!;
    if (answer.status === 200)
      this.#written.set(room, { writes: writes + 1, seq: Math.max(seq, Number(answer.headers.get("x-coroom-seq"))) });
    return answer.status;
  }

  async #read(room: string, minSeq = 0): Promise<{ readonly status: number; readonly text: string }> {
    const reader = this.#readers[++this.#reads % READERS]!;
    const answer = await fetch(this.#url(this.#reads, room, `text?minSeq=${minSeq}`), { headers: { authorization: `Bearer ${reader}` } });
    return { status: answer.status, text: await answer.text() };
  }

  #url(turn: number, room: string, place: string): string {
    return `${this.#gateways[turn % this.#gateways.length]!}/v1/rooms/${room}/${place}`;
  }
}

async function timed(perSecond: number, ms: number, ask: (turn: number) => Promise<number>): Promise<RequestFigures> {
  const latencies = new Latencies();
  const statuses: Record<number, number> = {};
  const asked: Promise<void>[] = [];
  const answer = async (turn: number): Promise<void> => {
    const from = performance.now();
    const status = await ask(turn);
    latencies.record(performance.now() - from);
    statuses[status] = (statuses[status] ?? 0) + 1;
  };
  await paced(perSecond, ms, (turn) => void asked.push(answer(turn)));
  await Promise.all(asked);
  return { latencies, statuses };
}
