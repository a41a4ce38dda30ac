/** Runs a limited number of tasks at a time. Further tasks wait. The number of waiting tasks is limited only by the number of callers. */

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
