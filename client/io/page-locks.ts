/** Which pages of this browser live: each holds a Web Lock of its own name, and loses it when it ends, however that comes. */

export type PageId = string;

export function lockOf(name: string, page: PageId): string {
  return `${name} page ${page}`;
}

/** Resolves once the lock is held, with what gives it back. */
export function lock(name: string): Promise<() => Promise<void>> {
  return new Promise((held, failed) => {
    const until = new Promise<void>((letGo) => {
      const released = navigator.locks.request(name, () => {
        held(() => {
          letGo();
          return released;
        });
        return until;
      });
      released.catch(failed);
    });
  });
}

/** Nobody else in this browser runs anything of that name meanwhile. */
export async function alone<Result>(name: string, run: () => Promise<Result>): Promise<Result> {
  const letGo = await lock(name);
  try {
    return await run();
  } finally {
    void letGo();
  }
}

/** `closed`: known to be gone, though their locks go a moment later. */
export async function livePages(name: string, closed: ReadonlySet<PageId>): Promise<ReadonlySet<PageId>> {
  const prefix = lockOf(name, "");
  const { held = [] } = await navigator.locks.query();
  return new Set(
    held.flatMap(({ name: lock }) => (lock?.startsWith(prefix) ? [lock.slice(prefix.length)] : [])).filter((page) => !closed.has(page)),
  );
}
