/**
 * Runs what is to wait for the end of this turn of the event loop, all of it in a row. Given to `setImmediate` one by
 * one, each would be a turn of its own to Node: what a hundred rooms say to NATS would be a hundred writes.
 */

export function endOfTurn(): (run: () => void) => void {
  let waiting: (() => void)[] = [];
  const runAll = (): void => {
    const now = waiting;
    waiting = [];
    for (const run of now) run();
  };
  return (run) => {
    if (waiting.length === 0) setImmediate(runAll);
    waiting.push(run);
  };
}
