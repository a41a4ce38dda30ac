/** Timers for the loads: even rates, waits for a condition, and the opening of sockets. */

import { setTimeout as sleep } from "node:timers/promises";

const POLL_MS = 5;

/** Calls `run` `perSecond` times a second, evenly, and catches up at once when late. */
export async function paced(perSecond: number, ms: number, run: (turn: number) => void): Promise<void> {
  const started = performance.now();
  const total = Math.round((perSecond * ms) / 1000);
  for (let turn = 0; turn < total; turn++) {
    const waitMs = started + (turn * 1000) / perSecond - performance.now();
    if (waitMs > 0) await sleep(waitMs);
    run(turn);
  }
  const leftMs = started + ms - performance.now();
  if (leftMs > 0) await sleep(leftMs);
}

export async function until(what: string, isTrue: () => boolean, msMax: number): Promise<void> {
  const deadline = performance.now() + msMax;
  while (!isTrue()) {
    if (performance.now() > deadline) throw new Error(`timed out after ${msMax} ms: ${what}`);
    await sleep(POLL_MS);
  }
}

/** Opens as many sockets at once as a gateway's accept queue holds. */
export async function openAll(many: readonly { open(): Promise<void> }[]): Promise<void> {
  let next = 0;
  const openNext = async (): Promise<void> => {
    while (next < many.length) await many[next++]!.open();
  };
  await Promise.all(Array.from({ length: OPENING_MAX }, openNext));
}

const OPENING_MAX = 128;
