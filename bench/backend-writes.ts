/**
 * A backend that writes to ordinary rooms over HTTP, within the default limits of one user. At the end each room's text
 * must have a letter for every write that was answered with 200.
 */

import { setTimeout as sleep } from "node:timers/promises";

import { keystroke } from "../cli/bench/keystroke.ts";
import { Latencies } from "../cli/bench/latencies.ts";
import { paced } from "../cli/bench/paced.ts";
import type { MeasuredSystem } from "./systems/system.ts";

/** `statuses`: number of answers by status. */
type WriteFigures = { readonly latencies: Latencies; readonly statuses: Readonly<Record<number, number>> };

const ROOMS = 10;
/** A quarter of what two gateways accept from one user. */
const WRITES_PER_SECOND = 10;
const ANSWER_MS_MAX = 60_000;
const ASK_AGAIN_MS = 250;

export class BackendWrites {
  readonly #gateways: readonly string[];
  readonly #headers: Readonly<Record<string, string>>;
  /** Room, and number of its writes that were answered with 200. */
  readonly #written = new Map<string, number>();
  #writes = 0;

  private constructor({ gateways }: MeasuredSystem, token: string, name: string) {
    this.#gateways = gateways.map((url) => url.replace("ws:", "http:"));
    this.#headers = { "authorization": `Bearer ${token}`, "content-type": "application/octet-stream" };
    for (let room = 0; room < ROOMS; room++) this.#written.set(`${name}-${room}`, 0);
  }

  /** Resolves once the document service answers. `name`: of the rooms. */
  static async start(system: MeasuredSystem, name: string): Promise<BackendWrites> {
    const writes = new BackendWrites(system, await system.token(name), name);
    for (const room of writes.#written.keys()) await writes.#read(room);
    return writes;
  }

  async run(ms: number): Promise<WriteFigures> {
    const latencies = new Latencies();
    const statuses: Record<number, number> = {};
    const rooms = [...this.#written.keys()];
    const write = async (room: string): Promise<void> => {
      const from = performance.now();
      const { status } = await this.#ask("POST", room, "edits", keystroke(++this.#writes, 1)); // A Yjs client id for each write.
      latencies.record(performance.now() - from);
      statuses[status] = (statuses[status] ?? 0) + 1;
      if (status === 200) this.#written.set(room, this.#written.get(room)! + 1);
    };
    const writing: Promise<void>[] = [];
    await paced(WRITES_PER_SECOND, ms, (turn) => void writing.push(write(rooms[turn % rooms.length]!)));
    await Promise.all(writing);
    return { latencies, statuses };
  }

  /** Throws if a room lacks a letter. */
  async judge(): Promise<void> {
    for (const [room, written] of this.#written) {
      const { length } = await this.#read(room);
      if (length < written) throw new Error(`${room}: ${written} HTTP writes were answered with 200, and the text has ${length} letters`);
    }
  }

  /** Empty for a room without edits. */
  async #read(room: string): Promise<string> {
    for (const deadline = performance.now() + ANSWER_MS_MAX; ; await sleep(ASK_AGAIN_MS)) {
      const { status, text } = await this.#ask("GET", room, "text");
      if (status === 200) return text;
      if (status === 404) return "";
      if (performance.now() > deadline) throw new Error(`${room} is not answered within ${ANSWER_MS_MAX} ms: ${status} ${text}`);
    }
  }

  async #ask(method: string, room: string, place: string, body?: Uint8Array): Promise<{ readonly status: number; readonly text: string }> {
    const gateway = this.#gateways[this.#writes % this.#gateways.length]!;
    const answer = await fetch(`${gateway}/v1/rooms/${room}/${place}`, {
      method,
      headers: this.#headers,
      ...(body === undefined ? {} : { body: Buffer.from(body) }),
    });
    return { status: answer.status, text: await answer.text() };
  }
}
