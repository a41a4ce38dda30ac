/**
 * Runs what is to wait for the end of this turn of the event loop, all of it in a row. Given to `setImmediate` one by
 * one, each would be a turn of its own to Node: what a hundred rooms say to NATS would be a hundred writes.
 */

type Later = (run: () => void) => void;

/** `lastOfTurn`: behind all else that waits for the end of the turn, and takes along what that leads to. */
export type TurnEnd = { readonly endOfTurn: Later; readonly lastOfTurn: Later };

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

/** For whoever awaits: at the end of the turn all who wait go on in a row, ahead of whatever that leads to. */
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
