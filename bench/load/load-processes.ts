/** The load processes as the bench sees them: rooms dealt out among them, phases run by all at once, counts added up. */

import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { resolve } from "node:path";

import { Latencies } from "./latencies.ts";
import type { PhaseEvents } from "./load.ts";
import type { Command, Phase, Report, RoomCounts, RoomPlan } from "./plan.ts";

export type PhaseResult = {
  readonly everywhere: number;
  readonly delivered: number;
  readonly acked: Latencies;
  readonly seen: Latencies;
  readonly cpuSeconds: number;
};

export class LoadProcesses {
  readonly #children: readonly ChildProcess[];

  private constructor(children: readonly ChildProcess[]) {
    this.#children = children;
  }

  static async open(rooms: readonly RoomPlan[], count: number): Promise<LoadProcesses> {
    const loads = new LoadProcesses(
      Array.from({ length: count }, () => fork(resolve("dist/bench/load/main.js"), { stdio: ["ignore", "inherit", "inherit", "ipc"] })),
    );
    await Promise.all(
      loads.#children.map((child, index) =>
        ask(child, { kind: "open", rooms: rooms.filter((_, place) => place % count === index) }, "opened"),
      ),
    );
    return loads;
  }

  /** `events` are told when the last process has come so far. */
  async run(phase: Phase, events: PhaseEvents): Promise<PhaseResult> {
    const waiting = { measuring: this.#children.length, measured: this.#children.length };
    const hear = (said: Report): void => {
      if ((said.kind === "measuring" || said.kind === "measured") && --waiting[said.kind] === 0) events[said.kind]();
    };
    const reports = await Promise.all(this.#children.map((child) => ask(child, { kind: "run", phase }, "ran", hear)));
    const result = { everywhere: 0, delivered: 0, acked: new Latencies(), seen: new Latencies(), cpuSeconds: 0 };
    for (const { result: part } of reports) {
      result.everywhere += part.everywhere;
      result.delivered += part.delivered;
      result.acked.add(Latencies.fromPairs(part.acked));
      result.seen.add(Latencies.fromPairs(part.seen));
      result.cpuSeconds += part.cpuSeconds;
    }
    return result;
  }

  /** What every room held. The processes end. */
  async close(): Promise<RoomCounts[]> {
    const reports = await Promise.all(this.#children.map((child) => ask(child, { kind: "close" }, "closed")));
    await this.end();
    return reports.flatMap(({ rooms }) => rooms).sort((a, b) => (a.room < b.room ? -1 : 1));
  }

  /** Ends the processes whatever they are at. */
  async end(): Promise<void> {
    await Promise.all(
      this.#children.map(async (child) => {
        if (child.exitCode !== null || child.signalCode !== null) return;
        const exited = once(child, "exit");
        child.kill();
        await exited;
      }),
    );
  }
}

function ask<Kind extends Report["kind"]>(
  child: ChildProcess,
  command: Command,
  awaited: Kind,
  hear: (said: Report) => void = () => {},
): Promise<Report & { kind: Kind }> {
  return new Promise((resolve, reject) => {
    const receive = (said: Report): void => {
      hear(said);
      if (said.kind === awaited) settle(() => resolve(said as Report & { kind: Kind }));
      else if (said.kind === "failed") settle(() => reject(new Error(`the run failed: ${said.reason}`)));
    };
    const exited = (): void => settle(() => reject(new Error("a load process ended before its time")));
    const settle = (how: () => void): void => {
      child.off("message", receive);
      child.off("exit", exited);
      how();
    };
    child.on("message", receive);
    child.on("exit", exited);
    child.send(command);
  });
}
