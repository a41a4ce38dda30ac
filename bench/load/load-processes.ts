/** Controls the load processes from the bench: divides the rooms among them, runs each phase in all of them, and adds their counts. */

import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { resolve } from "node:path";

import { Latencies } from "../../cli/bench/latencies.ts";
import type { PhaseEvents } from "./load.ts";
import type { LoadCommand, LoadPhase, LoadReport, RoomCounts, LoadRoomPlan } from "./plan.ts";

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

  static async open(rooms: readonly LoadRoomPlan[], count: number): Promise<LoadProcesses> {
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

  /** Calls each event when the last process has reached it. */
  async run(phase: LoadPhase, events: PhaseEvents): Promise<PhaseResult> {
    const waiting = { measuring: this.#children.length, measured: this.#children.length };
    const onReport = (report: LoadReport): void => {
      if ((report.kind === "measuring" || report.kind === "measured") && --waiting[report.kind] === 0) events[report.kind]();
    };
    const reports = await Promise.all(this.#children.map((child) => ask(child, { kind: "run", phase }, "ran", onReport)));
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

  /** Ends the processes and returns the counts of every room. */
  async close(): Promise<RoomCounts[]> {
    const reports = await Promise.all(this.#children.map((child) => ask(child, { kind: "close" }, "closed")));
    await this.end();
    return reports.flatMap(({ rooms }) => rooms).sort((a, b) => (a.room < b.room ? -1 : 1));
  }

  /** Ends the processes in any state. */
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

function ask<Kind extends LoadReport["kind"]>(
  child: ChildProcess,
  command: LoadCommand,
  awaited: Kind,
  onReport: (report: LoadReport) => void = () => {},
): Promise<LoadReport & { kind: Kind }> {
  return new Promise((resolve, reject) => {
    const receive = (report: LoadReport): void => {
      onReport(report);
      if (report.kind === awaited) settle(() => resolve(report as LoadReport & { kind: Kind }));
      else if (report.kind === "failed") settle(() => reject(new Error(`the run failed: ${report.reason}`)));
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
