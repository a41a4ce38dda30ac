/** The rooms of one load process: opens them, runs phases over them, and counts the content of each room at the end. */

import { setTimeout as sleep } from "node:timers/promises";

import { Prng } from "../../shared/collections/prng.ts";
import { Measured } from "./measured.ts";
import type { WritePattern, LoadPhase, PhaseCounts, RoomCounts, LoadRoomPlan } from "./plan.ts";
import { RoomLoad } from "./room-load.ts";

/** Times of all writers' keystrokes, drawn from the seed, so that every run of a phase sends the same edits. */
type Stroke<Writer> = { readonly dueMs: number; readonly writer: Writer };

/** Sorted by time. A writer's pauses are between half and one and a half times the mean. */
export function typingSchedule<Writer>(
  writers: readonly Writer[],
  options: { editsPerSecond: number; durationMs: number; seed: number },
): Stroke<Writer>[] {
  const prng = new Prng(options.seed);
  const meanMs = 1000 / options.editsPerSecond;
  const strokes: Stroke<Writer>[] = [];
  for (const writer of writers) {
    for (let dueMs = prng.unit() * meanMs; dueMs < options.durationMs; dueMs += meanMs * (0.5 + prng.unit()))
      strokes.push({ dueMs, writer });
  }
  return strokes.sort((a, b) => a.dueMs - b.dueMs);
}

const ROOMS_OPENED_AT_ONCE = 10;
/** Each room pings at its own moment, as real clients do. All pings in one turn would be an artificial load. */
const PING_MS = 20_000;
const PING_STEP_MS = 100;
const SETTLED_MS_MAX = 30_000;
const POLL_MS = 5;

export type PhaseEvents = { measuring(): void; measured(): void };

export class RoomsLoad {
  readonly #rooms: readonly RoomLoad[];
  readonly #pings: NodeJS.Timeout;

  private constructor(rooms: readonly RoomLoad[]) {
    this.#rooms = rooms;
    const steps = PING_MS / PING_STEP_MS;
    let step = 0;
    this.#pings = setInterval(() => {
      for (let index = step; index < rooms.length; index += steps) rooms[index]!.ping();
      step = (step + 1) % steps;
    }, PING_STEP_MS);
  }

  static async open(plans: readonly LoadRoomPlan[]): Promise<RoomsLoad> {
    const rooms: RoomLoad[] = [];
    for (let start = 0; start < plans.length; start += ROOMS_OPENED_AT_ONCE) {
      rooms.push(...(await Promise.all(plans.slice(start, start + ROOMS_OPENED_AT_ONCE).map((plan) => RoomLoad.open(plan)))));
    }
    return new RoomsLoad(rooms);
  }

  async run(phase: LoadPhase, events: PhaseEvents): Promise<PhaseCounts> {
    const measured = new Measured();
    for (const room of this.#rooms) room.measured = measured;
    const sending = this.#send(phase.pattern, phase.warmMs + phase.measureMs);

    await sleep(phase.warmMs);
    const [cpuBefore, everywhereBefore] = [process.cpuUsage(), this.#everywhere()];
    measured.begin(performance.now());
    events.measuring();

    await sleep(phase.measureMs);
    measured.end(performance.now());
    const [cpu, everywhere] = [process.cpuUsage(cpuBefore), this.#everywhere() - everywhereBefore];
    events.measured();

    await sending;
    await this.#settled();
    return {
      everywhere,
      delivered: measured.delivered,
      acked: measured.acked.toPairs(),
      seen: measured.seen.toPairs(),
      cpuSeconds: (cpu.user + cpu.system) / 1e6,
    };
  }

  close(): RoomCounts[] {
    clearInterval(this.#pings);
    for (const room of this.#rooms) room.close();
    return this.#rooms.map((room) => room.counts());
  }

  /** Resolves when the last edit of the phase has been sent. */
  #send(pattern: WritePattern, durationMs: number): Promise<void> {
    return pattern.kind === "typing" ? this.#type(pattern, durationMs) : this.#fillWindows(pattern, durationMs);
  }

  async #type(pattern: WritePattern & { kind: "typing" }, durationMs: number): Promise<void> {
    const writers = this.#rooms.flatMap((room) => room.writers.map((writer) => ({ room, writer })));
    const inFlightMax = pattern.inFlightMax ?? Number.POSITIVE_INFINITY;
    const start = performance.now();
    for (const { dueMs, writer } of typingSchedule(writers, { ...pattern, durationMs })) {
      const waitMs = start + dueMs - performance.now();
      if (waitMs > 0) await sleep(waitMs);
      if (writer.writer.sent - writer.writer.acked < inFlightMax) writer.room.send(writer.writer);
    }
  }

  async #fillWindows({ inFlight, editsEach }: WritePattern & { kind: "window" }, durationMs: number): Promise<void> {
    for (const room of this.#rooms) {
      const last = room.writers.map(({ sent }) => sent + (editsEach ?? Number.POSITIVE_INFINITY));
      room.onAcked = (writer) => {
        while (writer.sent - writer.acked < inFlight && writer.sent < last[writer.index]!) room.send(writer);
      };
      for (const writer of room.writers) room.onAcked(writer);
    }
    await sleep(durationMs);
    if (editsEach !== undefined) await this.#settled();
    for (const room of this.#rooms) room.onAcked = () => {};
  }

  #everywhere(): number {
    return this.#rooms.reduce((sum, room) => sum + room.everywhere(), 0);
  }

  async #settled(): Promise<void> {
    const deadline = performance.now() + SETTLED_MS_MAX;
    while (!this.#rooms.every((room) => room.isSettled())) {
      if (performance.now() > deadline)
        throw new Error(
          `edits are missing ${SETTLED_MS_MAX / 1000} s after the last was sent, in ${this.#rooms.filter((room) => !room.isSettled()).length} rooms`,
        );
      await sleep(POLL_MS);
    }
  }
}
