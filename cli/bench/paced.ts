/** Even rates of a load, independent of the servers (open loop). */

import { setImmediate as endOfTurn, setTimeout as sleep } from "node:timers/promises";

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
    const hasSlept = await sleepUntil(dueAt, isStopped);
    if (isStopped()) return;
    const isLongAgo = performance.now() - yieldedAt > CATCHING_UP_MS_MAX;
    if (!hasSlept && isLongAgo) await endOfTurn();
    if (hasSlept || isLongAgo) yieldedAt = performance.now();
    run(turn, Math.max(0, performance.now() - dueAt));
  }
  await sleepUntil(started + ms, isStopped);
}

/** Returns whether it slept. */
async function sleepUntil(time: number, isStopped: () => boolean): Promise<boolean> {
  let hasSlept = false;
  for (let waitMs = time - performance.now(); waitMs > 0 && !isStopped(); waitMs = time - performance.now()) {
    await sleep(Math.min(waitMs, SLEEP_MS_MAX));
    hasSlept = true;
  }
  return hasSlept;
}
