/**
 * The main thread's view of a thread that runs seeds. It terminates the thread if a step does not return (an endless
 * loop), or if a run takes too long. The next order starts a new thread.
 */

import { Worker } from "node:worker_threads";

import type { RunAnswer, RunnerData, RunOrder } from "./run-orders.ts";

/** `steps`: count of begun steps. */
export type Stuck = { readonly kind: "stuck"; readonly steps: number; readonly why: string };

const LOOK_MS = 1_000;
/** A thread may wait for long on a busy machine. So a step must also have used this much CPU time. */
const STEP_MS_MAX = 20_000;
const STEP_CPU_MS_MAX = 5_000;

export class RunThread {
  readonly #planted: string | undefined;
  readonly #runSecondsMax: number;
  #running: { readonly worker: Worker; readonly pulse: Int32Array } | undefined;

  constructor({ planted, runSecondsMax }: { planted: string | undefined; runSecondsMax: number }) {
    this.#planted = planted;
    this.#runSecondsMax = runSecondsMax;
  }

  async ask(order: RunOrder): Promise<RunAnswer | Stuck> {
    const { worker, pulse } = (this.#running ??= this.#start());
    pulse[0] = 0;
    return new Promise((resolve, reject) => {
      const settle = (take: () => void): void => {
        clearInterval(watch);
        worker.off("message", receiveAnswer).off("error", receiveEnd);
        take();
      };
      const receiveAnswer = (answer: RunAnswer): void => settle(() => resolve(answer));
      const receiveEnd = (cause: unknown): void =>
        settle(() => reject(new Error(`a thread ended while it was to ${order.kind}`, { cause })));
      const watch = this.#watch(pulse, (why) => {
        this.#running = undefined;
        settle(() => void worker.terminate().then(() => resolve({ kind: "stuck", steps: pulse[0]!, why })));
      });
      worker.on("message", receiveAnswer).on("error", receiveEnd);
      worker.postMessage(order);
    });
  }

  async end(): Promise<void> {
    await this.#running?.worker.terminate();
  }

  #start(): { worker: Worker; pulse: Int32Array } {
    const pulse = new Int32Array(new SharedArrayBuffer(4));
    const data: RunnerData = { planted: this.#planted, pulse };
    return { worker: new Worker(new URL("./runner.js", import.meta.url), { workerData: data }), pulse };
  }

  #watch(pulse: Int32Array, receiveStuck: (why: string) => void): NodeJS.Timeout {
    const begun = performance.now();
    let last = { steps: pulse[0], at: begun, cpu: process.cpuUsage() };
    return setInterval(() => {
      const now = performance.now();
      if (pulse[0] !== last.steps) last = { steps: pulse[0], at: now, cpu: process.cpuUsage() };
      const { user, system } = process.cpuUsage(last.cpu);
      if (now - last.at > STEP_MS_MAX && (user + system) / 1_000 > STEP_CPU_MS_MAX)
        receiveStuck(`step ${pulse[0]} does not come to its end`);
      else if (now - begun > this.#runSecondsMax * 1_000) receiveStuck(`longer than ${this.#runSecondsMax} s, at step ${pulse[0]}`);
    }, LOOK_MS);
  }
}
