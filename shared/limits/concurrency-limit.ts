/** Does so many at a time; who comes later waits for its turn. As many wait as there are callers that do not give up. */

export function limitConcurrency<Args extends readonly unknown[], Result>(
  atOnce: number,
  run: (...args: Args) => Promise<Result>,
): (...args: Args) => Promise<Result> {
  const waiting: (() => void)[] = [];
  let underWay = 0;
  return async (...args) => {
    if (underWay >= atOnce) await new Promise<void>((resolve) => waiting.push(resolve));
    else underWay += 1;
    try {
      return await run(...args);
    } finally {
      const next = waiting.shift();
      if (next === undefined) underWay -= 1;
      else next();
    }
  };
}
