/**
 * A simulated browser that keeps unsaved edits after its tabs are closed. It uses the real client's store, with writes
 * that take time.
 */

import type { Prng } from "../../shared/collections/prng.ts";
import type { EditStore } from "../../client/persistence/edit-store.ts";
import { MemoryStore } from "../../client/testing/memory-store.ts";
import type { SimProcess } from "./sim-process.ts";

const WRITE_MS_MAX = 30;

export class Device {
  readonly user: string;
  /** By author whose tab is closed: count of keystrokes that the store reported as kept. */
  readonly promised = new Map<number, number>();
  readonly #store = new MemoryStore();
  readonly #prng: Prng;

  constructor(user: string, prng: Prng) {
    this.user = user;
    this.#prng = prng;
  }

  /** The store as one tab sees it. A write that is under way when the tab's process dies is lost. */
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
