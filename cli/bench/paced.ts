/** Timers of a load: even rates independent of the servers (open loop), and waits for a condition. */

import { setImmediate as endOfTurn, setTimeout as sleep } from "node:timers/promises";

const POLL_MS = 5;
/** Maximum wait until `isStopped` is noticed. */
const SLEEP_MS_MAX = 100;
/** A late loop yields after this time, so that answers are received while it catches up. */
const CATCHING_UP_MS_MAX = 5;

/**
 * Calls `run` `perSecond` times a second, evenly, and catches up when late. `lateMs`: how much later than due the call
 * is. Returns before `ms` are over once `isStopped` returns true.
 */
export async function paced(
  perSecond: number,
  ms: number,
  run: (turn: number, lateMs: number) => void,
  isStopped: () => boolean = () => false,
): Promise<void> {
  const started = performance.now();
  const total = Math.round((perSecond * ms) / 1000);
  let yieldedAt = started;
  for (let turn = 0; turn < total; turn++) {
    const dueAt = started + (turn * 1000) / perSecond;
    await sleepUntil(dueAt, isStopped);
    const now = performance.now();
    if (isStopped()) return;
    if (now - dueAt < POLL_MS) yieldedAt = now;
    else if (now - yieldedAt > CATCHING_UP_MS_MAX) {
      await endOfTurn();
      yieldedAt = performance.now();
    }
    run(turn, Math.max(0, performance.now() - dueAt));
  }
  await sleepUntil(started + ms, isStopped);
}

export async function until(what: string, isTrue: () => boolean, msMax: number): Promise<void> {
  const deadline = performance.now() + msMax;
  while (!isTrue()) {
    if (performance.now() > deadline) throw new Error(`timed out after ${msMax} ms: ${what}`);
    await sleep(POLL_MS);
  }
}

async function sleepUntil(time: number, isStopped: () => boolean): Promise<void> {
  for (let waitMs = time - performance.now(); waitMs > 0 && !isStopped(); waitMs = time - performance.now())
    await sleep(Math.min(waitMs, SLEEP_MS_MAX));
}
