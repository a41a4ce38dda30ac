/** A browser that keeps what its tabs have not saved, over their end: the real client's store, whose writes take time. */

import type { EditStore } from "../../client/persistence/edit-store.ts";
import { MemoryStore } from "../../client/testing/memory-store.ts";
import type { Prng } from "../../shared/collections/prng.ts";
import type { SimProcess } from "./sim-process.ts";

const WRITE_MS_MAX = 30;

export class Device {
  readonly user: string;
  /** Of authors whose tabs are gone: so many keystrokes were said to be kept. */
  readonly promised = new Map<number, number>();
  readonly #store = new MemoryStore();
  readonly #prng: Prng;

  constructor(user: string, prng: Prng) {
    this.user = user;
    this.#prng = prng;
  }

  /** As one tab has it: what is under way when its process dies is not kept. */
  storeOf({ clock }: SimProcess): EditStore & { die(): void } {
    const page = this.#store.forPage();
    const later = <Value>(run: () => Promise<Value>): Promise<Value> =>
      new Promise((resolve, reject) => void clock.after(this.#prng.unit() * WRITE_MS_MAX, () => run().then(resolve, reject)));
    return {
      open: async (room) => {
        const store = await page.open(room);
        return { ...store, keep: (change) => later(() => store.keep(change)) };
      },
      die: () => page.die(),
    };
  }
}
