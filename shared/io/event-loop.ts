/**
 * Batches work at the end of the current turn of the event loop, and measures how late the loop runs. Node takes a turn
 * for each function that is passed to `setImmediate`, so messages of a hundred rooms would be a hundred writes to NATS.
 */

import { monitorEventLoopDelay } from "node:perf_hooks";

type Later = (run: () => void) => void;

/** `lastOfTurn`: runs after all other work of the turn, including work that is added meanwhile. */
type TurnEnd = { readonly endOfTurn: Later; readonly lastOfTurn: Later };

export function turnEnd(): TurnEnd {
  let waiting: (() => void)[] = [];
  let last: (() => void)[] = [];
  let isSet = false;
  const set = (): void => {
    if (!isSet) setImmediate(runAll);
    isSet = true;
  };
  const runAll = (): void => {
    const now = waiting;
    waiting = [];
    for (const run of now) run();
    const nowLast = last;
    last = [];
    isSet = false;
    if (waiting.length > 0) set();
    for (const run of nowLast) run();
  };
  return {
    endOfTurn: (run) => {
      waiting.push(run);
      set();
    },
    lastOfTurn: (run) => {
      last.push(run);
      set();
    },
  };
}

export function endOfTurn(): Later {
  return turnEnd().endOfTurn;
}

/** For code that awaits. At the end of the turn all waiting callers continue one after the other, before any work that they cause. */
export function untilTurnEnds(endOfTurn: Later): () => Promise<void> {
  let end: Promise<void> | undefined;
  return () =>
    (end ??= new Promise((resolve) => {
      endOfTurn(() => {
        end = undefined;
        resolve();
      });
    }));
}

/** A finer resolution would wake an idle process more often than its work. */
const RESOLUTION_MS = 50;
const NANOS_PER_MS = 1e6;
/** The percentile of the delays since the last measurement. One long turn does not count as pressure, several do. */
const PERCENTILE = 90;

/**
 * How late this process's event loop runs, in milliseconds since the last call: the first sign of overload. Node records no
 * delay for the first turn after a reset. If each turn is longer than the interval of the calls, nothing is recorded at
 * all, and the loop is as late as the last call is ago.
 */
export function eventLoopDelay(): { measure(): number; stop(): void } {
  const delays = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  delays.enable();
  let measuredAt = performance.now();
  return {
    measure: () => {
      const now = performance.now();
      const turnMs = delays.count === 0 ? now - measuredAt : delays.percentile(PERCENTILE) / NANOS_PER_MS;
      measuredAt = now;
      delays.reset();
      return Math.max(0, turnMs - RESOLUTION_MS);
    },
    stop: () => delays.disable(),
  };
}
