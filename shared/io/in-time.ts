/** Throws when the work has not ended within `msMax`; it is then on its own. */
export function inTime<Value>(msMax: number, what: string, work: Promise<Value>): Promise<Value> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`${what} took longer than ${msMax} ms: is NATS reachable?`)), msMax);
    work.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
