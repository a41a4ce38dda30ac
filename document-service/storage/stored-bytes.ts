/**
 * The stored bytes of one partition, by room and by tenant: snapshots, history, and the log that is not trimmed yet.
 * Rooms in memory are measured; for all others, lists of the object stores count.
 *
 * The invariant: a room that has reached its limit stays listed after it leaves memory, until it is measured below it.
 */

import { partitionOf } from "../../shared/bus/subjects.ts";
import { parseRoomKey, type RoomKey, tenantOf, type TenantId } from "../../shared/ids.ts";

export type ObjectKind = "snapshots" | "history";
/** Undefined: not read yet. `historyFound`: what the history had when it was first read here, which a list counts too. */
export type RoomBytes = {
  readonly snapshots: number | undefined;
  readonly history: number | undefined;
  readonly historyFound?: number | undefined;
  readonly log: number;
};
export type StoredBytesOptions = { readonly logPartitions: number; readonly roomBytesMax: number };
/** `isReached` false: the room is below its limit again. */
export type RoomLimitChange = { readonly room: RoomKey; readonly bytes: number; readonly isReached: boolean };

/** Each room costs entries in buckets and a record of its log, even if it is empty. */
const ROOM_BYTES_MIN = 4_096;
/** A limit that was reached counts until this share of it. Otherwise a room at its limit would change its state all the time. */
const RELEASED_BELOW = 0.95;
/** Objects that were written during the list have no size. */
const UNKNOWN_SHARE_MAX = 0.01;
const KINDS: readonly ObjectKind[] = ["snapshots", "history"];

type Sums = Map<TenantId, number>;

export class StoredBytes {
  readonly #partition: number;
  readonly #options: StoredBytesOptions;
  readonly #rooms = new Map<RoomKey, RoomBytes>();
  /** By the last list, and what changed since it. */
  readonly #listed: Record<ObjectKind, Sums | undefined> = { snapshots: undefined, history: undefined };
  readonly #changed: Record<ObjectKind, Sums> = { snapshots: new Map(), history: new Map() };
  readonly #log: Sums = new Map();
  readonly #full = new Map<RoomKey, number>();

  constructor(partition: number, options: StoredBytesOptions) {
    this.#partition = partition;
    this.#options = options;
  }

  /** Rooms at their limit, with their bytes. */
  get full(): ReadonlyMap<RoomKey, number> {
    return this.#full;
  }

  /** Undefined: the stores were not listed yet. */
  get tenants(): ReadonlyMap<TenantId, number> | undefined {
    if (KINDS.some((kind) => this.#listed[kind] === undefined)) return undefined;
    const sums: Sums = new Map();
    for (const part of [...KINDS.flatMap((kind) => [this.#listed[kind]!, this.#changed[kind]]), this.#log])
      for (const [tenant, bytes] of part) add(sums, tenant, bytes);
    // A list may lack an object that was written during it. Its removal before the next list then subtracts too much.
    for (const [tenant, bytes] of sums) if (bytes < 0) sums.delete(tenant);
    return sums;
  }

  /** A measured room in memory. Returns whether its limit is reached, or no longer, if that changed. */
  receiveRoom(room: RoomKey, measured: RoomBytes): RoomLimitChange | undefined {
    const known = this.#rooms.get(room);
    const found = { ...measured, history: measured.history ?? known?.history }; // The size of the history is unknown again after another service wrote it.
    if (known !== undefined && known.snapshots === found.snapshots && known.history === found.history && known.log === found.log)
      return undefined;
    this.#rooms.set(room, found);
    const tenant = tenantOf(room);
    for (const kind of KINDS) {
      const [before, now] = [known?.[kind] ?? (kind === "history" ? found.historyFound : undefined), found[kind]];
      if (before !== undefined && now !== undefined) add(this.#changed[kind], tenant, now - before);
    }
    add(this.#log, tenant, found.log - (known?.log ?? 0));
    return this.#judge(room, (found.snapshots ?? 0) + (found.history ?? 0) + found.log);
  }

  /** The room leaves memory. Its log has been trimmed. */
  forgetRoom(room: RoomKey): void {
    const known = this.#rooms.get(room);
    if (known === undefined) return;
    this.#rooms.delete(room);
    add(this.#log, tenantOf(room), -known.log);
  }

  /** `sizes`: of all objects of a store, also of other partitions. A list without many sizes changes nothing. */
  receiveListed(kind: ObjectKind, sizes: ReadonlyMap<string, number | undefined>): void {
    const sums: Sums = new Map();
    let unknown = 0;
    for (const [name, bytes] of sizes) {
      const room = parseRoomKey(name.slice(0, name.indexOf("/")));
      if (room === undefined || partitionOf(room, this.#options.logPartitions) !== this.#partition) continue;
      if (bytes === undefined) {
        unknown += 1;
        continue;
      }
      add(sums, tenantOf(room), kind === "snapshots" ? Math.max(bytes, ROOM_BYTES_MIN) : bytes);
    }
    if (unknown > sizes.size * UNKNOWN_SHARE_MAX) return;
    this.#listed[kind] = sums;
    this.#changed[kind] = new Map();
  }

  /** Rooms that the previous reader of the partition reported. They count until they are measured here. */
  adoptFull(rooms: Iterable<readonly [RoomKey, number]>): void {
    for (const [room, bytes] of rooms) if (!this.#rooms.has(room)) this.#full.set(room, bytes);
  }

  /** Another service reads the partition. */
  clear(): void {
    this.#rooms.clear();
    this.#log.clear();
    this.#full.clear();
    for (const kind of KINDS) {
      this.#listed[kind] = undefined;
      this.#changed[kind] = new Map();
    }
  }

  #judge(room: RoomKey, bytes: number): RoomLimitChange | undefined {
    const { roomBytesMax } = this.#options;
    const wasReached = this.#full.has(room);
    const isReached = isLimitReached(bytes, roomBytesMax, wasReached);
    if (isReached) this.#full.set(room, bytes);
    else this.#full.delete(room);
    return isReached === wasReached ? undefined : { room, bytes, isReached };
  }
}

/** `max` 0: there is no limit. */
export function isLimitReached(bytes: number, max: number, wasReached: boolean): boolean {
  return max > 0 && bytes >= (wasReached ? max * RELEASED_BELOW : max);
}

function add(sums: Sums, tenant: TenantId, bytes: number): void {
  if (bytes !== 0) sums.set(tenant, (sums.get(tenant) ?? 0) + bytes);
}
