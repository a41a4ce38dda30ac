/** A simulated KV bucket. Each write names the revision that it replaces. While the bucket lags, a read may return an old entry. */

import type { RoomKey } from "../../shared/ids.ts";
import type { Scheduler } from "./scheduler.ts";

export class SimBucket<Entry> {
  readonly #scheduler: Scheduler;
  readonly #entries = new Map<RoomKey, { revision: number; at: number; entry: Entry | undefined }[]>();
  readonly #followers: (() => void)[] = [];
  #revision = 0;
  #lateEver = 0;
  #unansweredEver = 0;
  #lossesEver = 0;
  #isThere = true;
  lagMs = 0;

  constructor(scheduler: Scheduler) {
    this.#scheduler = scheduler;
  }

  /** Count of reads and writes while entries were old. */
  get lateEver(): number {
    return this.#lateEver;
  }

  get unansweredEver(): number {
    return this.#unansweredEver;
  }

  /** Count of losses of the end. */
  get lossesEver(): number {
    return this.#lossesEver;
  }

  /** Called once for each request. */
  answers(): boolean {
    if (!this.#isThere) this.#unansweredEver += 1;
    return this.#isThere;
  }

  goAway(): void {
    this.#isThere = false;
  }

  comeBack(): void {
    this.#isThere = true;
    this.#tellFollowers();
  }

  read(room: RoomKey): { revision: number; entry: Entry | undefined } {
    const history = this.#entries.get(room);
    const visible = history?.findLast(({ at }) => at + this.lagMs <= this.#scheduler.now);
    if (visible !== history?.at(-1)) this.#lateEver += 1;
    return visible ?? { revision: 0, entry: undefined };
  }

  /** The entry at an earlier time, as a former leader returns it. */
  entryAsOf(room: RoomKey, asOf: number): { revision: number; entry: Entry | undefined } {
    return this.#entries.get(room)?.findLast(({ at }) => at <= asOf) ?? { revision: 0, entry: undefined };
  }

  all(): Map<RoomKey, Entry> {
    const entries = [...this.#entries.keys()].map((room) => [room, this.read(room).entry] as const);
    return new Map(entries.filter((pair): pair is [RoomKey, NonNullable<Entry>] => pair[1] !== undefined));
  }

  /** False: another write replaced the revision. */
  write(room: RoomKey, entry: Entry | undefined, revision: number): boolean {
    const history = this.#entries.get(room) ?? [];
    if ((history.at(-1)?.revision ?? 0) !== revision) return false;
    if (this.lagMs > 0) this.#lateEver += 1;
    history.push({ revision: ++this.#revision, at: this.#scheduler.now, entry });
    this.#entries.set(room, history);
    this.#scheduler.after(this.lagMs, () => this.#tellFollowers());
    return true;
  }

  /** `tell` is called when an entry has changed. */
  onChange(tell: () => void): void {
    this.#followers.push(tell);
  }

  /** The server lost power: it drops the writes since the last sync, and assigns their revisions again. */
  loseSince(syncedAt: number): void {
    this.#lossesEver += 1;
    this.#revision = 0;
    for (const [room, history] of this.#entries) {
      const synced = history.filter(({ at }) => at <= syncedAt);
      if (synced.length > 0) this.#entries.set(room, synced);
      else this.#entries.delete(room);
      this.#revision = Math.max(this.#revision, synced.at(-1)?.revision ?? 0);
    }
  }

  #tellFollowers(): void {
    if (this.#isThere) for (const tell of this.#followers) tell();
  }
}
