/** The rooms of one load process: opens them, runs phases over them, and counts what each held in the end. */

import { setTimeout as sleep } from "node:timers/promises";

import { Measured } from "./measured.ts";
import type { Pace, Phase, PhaseCounts, RoomCounts, RoomPlan } from "./plan.ts";
import { RoomLoad } from "./room-load.ts";
import { typingSchedule } from "./schedule.ts";

const ROOMS_OPENED_AT_ONCE = 10;
/** Each at a moment of its own, as clients do: all in one turn would be a load that nobody asked for. */
const PING_MS = 20_000;
const PING_STEP_MS = 100;
const SETTLED_MS_MAX = 30_000;
const POLL_MS = 5;

export type PhaseEvents = { measuring(): void; measured(): void };

export class Load {
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

  static async open(plans: readonly RoomPlan[]): Promise<Load> {
    const rooms: RoomLoad[] = [];
    for (let start = 0; start < plans.length; start += ROOMS_OPENED_AT_ONCE) {
      rooms.push(...(await Promise.all(plans.slice(start, start + ROOMS_OPENED_AT_ONCE).map((plan) => RoomLoad.open(plan)))));
    }
    return new Load(rooms);
  }

  async run(phase: Phase, events: PhaseEvents): Promise<PhaseCounts> {
    const measured = new Measured();
    for (const room of this.#rooms) room.measured = measured;
    const sending = this.#send(phase.pace, phase.warmMs + phase.measureMs);

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
  #send(pace: Pace, durationMs: number): Promise<void> {
    return pace.kind === "typing" ? this.#type(pace, durationMs) : this.#fillWindows(pace, durationMs);
  }

  async #type(pace: Pace & { kind: "typing" }, durationMs: number): Promise<void> {
    const writers = this.#rooms.flatMap((room) => room.writers.map((writer) => ({ room, writer })));
    const inFlightMax = pace.inFlightMax ?? Number.POSITIVE_INFINITY;
    const start = performance.now();
    for (const { dueMs, writer } of typingSchedule(writers, { ...pace, durationMs })) {
      const waitMs = start + dueMs - performance.now();
      if (waitMs > 0) await sleep(waitMs);
      if (writer.writer.sent - writer.writer.acked < inFlightMax) writer.room.send(writer.writer);
    }
  }

  async #fillWindows({ inFlight, editsEach }: Pace & { kind: "window" }, durationMs: number): Promise<void> {
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
