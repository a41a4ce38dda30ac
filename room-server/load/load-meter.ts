/**
 * Measures the used share of this server's budget, and which rooms use most of it: edits per second and bytes per
 * second over the last few seconds, and memory. The resource with the largest used share counts. Rules LOAD1 to LOAD4.
 */

import type { ServerLoad } from "../../shared/bus/placement-messages.ts";
import type { Millis, RoomKey } from "../../shared/ids.ts";

export type LoadMeterOptions = {
  readonly budgetEditsPerSecond: number;
  readonly budgetEgressBytesPerSecond: number;
  readonly budgetMemoryBytes: number;
};

type Rates = { edits: number; bytes: number; editsPerSecond: number; bytesPerSecond: number };

/** Age at which a count has a third of the weight of a new one. */
const MEMORY_MS = 5_000;
const SAMPLE_MS = 1_000;
/** Rooms below this share are not listed. */
const HOT_SHARE_MIN = 0.05;
const HOT_ROOMS_MAX = 16;
/** Rates below this value are removed. */
const FORGOTTEN = 0.01;

export class LoadMeter {
  readonly #options: LoadMeterOptions;
  readonly #rooms = new Map<RoomKey, Rates>();
  #sampledAt: Millis | undefined;
  #load: ServerLoad = { used: 0, hot: [] };

  constructor(options: LoadMeterOptions) {
    this.#options = options;
  }

  /** Adds a room's cost. */
  count(room: RoomKey, edits: number, bytes: number): void {
    const rates = this.#rooms.get(room);
    if (rates === undefined) this.#rooms.set(room, { edits, bytes, editsPerSecond: 0, bytesPerSecond: 0 });
    else {
      rates.edits += edits;
      rates.bytes += bytes;
    }
  }

  /** May be called at any time. Measures once a second. */
  read(memoryBytes: number, now: Millis): ServerLoad {
    this.#sampledAt ??= now;
    const ms = now - this.#sampledAt;
    if (ms < SAMPLE_MS) return this.#load;
    this.#sampledAt = now;
    this.#fade(ms);
    const { budgetEditsPerSecond, budgetEgressBytesPerSecond, budgetMemoryBytes } = this.#options;
    let [edits, bytes] = [0, 0];
    const hot: { room: RoomKey; share: number }[] = [];
    for (const [room, { editsPerSecond, bytesPerSecond }] of this.#rooms) {
      edits += editsPerSecond;
      bytes += bytesPerSecond;
      const share = Math.max(editsPerSecond / budgetEditsPerSecond, bytesPerSecond / budgetEgressBytesPerSecond);
      if (share >= HOT_SHARE_MIN) hot.push({ room, share });
    }
    hot.sort((a, b) => b.share - a.share);
    this.#load = {
      used: Math.max(edits / budgetEditsPerSecond, bytes / budgetEgressBytesPerSecond, memoryBytes / budgetMemoryBytes),
      hot: hot.slice(0, HOT_ROOMS_MAX),
    };
    return this.#load;
  }

  /** The value at the last measurement, over the last few seconds. */
  editsPerSecondOf(room: RoomKey): number {
    return this.#rooms.get(room)?.editsPerSecond ?? 0;
  }

  #fade(ms: number): void {
    const kept = Math.exp(-ms / MEMORY_MS);
    for (const [room, rates] of this.#rooms) {
      rates.editsPerSecond = rates.editsPerSecond * kept + ((rates.edits * 1_000) / ms) * (1 - kept);
      rates.bytesPerSecond = rates.bytesPerSecond * kept + ((rates.bytes * 1_000) / ms) * (1 - kept);
      [rates.edits, rates.bytes] = [0, 0];
      if (rates.editsPerSecond < FORGOTTEN && rates.bytesPerSecond < 1) this.#rooms.delete(room);
    }
  }
}
