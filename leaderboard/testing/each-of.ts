/** Does something for each entry, `atATime` of them at a time. Throws the first failure once all under way have ended. */
export function eachOf<Entry>(entries: readonly Entry[], atATime: number, work: (entry: Entry) => Promise<unknown>): Promise<void> {
  return new Promise((resolve, reject) => {
    let next = 0;
    let underWay = 0;
    let failure: { readonly cause: unknown } | undefined;
    const advance = (): void => {
      while (failure === undefined && underWay < atATime && next < entries.length) {
        underWay += 1;
        work(entries[next++]!)
          .catch((cause: unknown) => (failure ??= { cause }))
          .finally(() => {
            underWay -= 1;
            advance();
          });
      }
      if (underWay > 0) return;
      if (failure !== undefined) reject(failure.cause);
      else if (next === entries.length) resolve();
    };
    advance();
  });
}
