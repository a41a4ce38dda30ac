/**
 * Reports once a second which rooms and tenants are at their limits to the gateways, which refuse edits there. Reports are
 * repeated, because NATS may lose any of them. The service that reads the first partition also reports each tenant's bytes
 * for usage.
 */

import type { FullStorage, StorageAnswer } from "../../shared/bus/storage-messages.ts";
import type { Operations } from "../../shared/bus/operations-events.ts";
import { type RoomKey, tenantOf } from "../../shared/ids.ts";
import type { TenantBytesMax } from "../../shared/settings/tenant-bytes.ts";
import type { Clock } from "../../shared/time/clock.ts";
import { every } from "../../shared/time/every.ts";
import { dayOf } from "../../shared/time/usage-day.ts";
import type { DocumentServiceMetrics } from "../metrics.ts";
import type { StorageBus, StorageQuestions } from "../ports.ts";
import type { RoomBytes, RoomLimitChange, StoredBytes } from "./stored-bytes.ts";
import { TenantBytes } from "./tenant-bytes.ts";
import { TenantPeaks } from "./tenant-peaks.ts";

/** A partition of the log, as far as its storage is concerned. */
type MeasuredPartition = {
  readonly isHeld: boolean;
  readonly stored: StoredBytes;
  /** The rooms in memory that reached or left their limit since the last call. */
  takeLimitChanges(): readonly RoomLimitChange[];
  /** Opens the room. Undefined: it is deleted, or another service took over. */
  measure(room: RoomKey): Promise<RoomBytes | undefined>;
};
export type StoragePorts = { readonly storage: StorageBus; readonly storageQuestions: StorageQuestions };
export type StorageOptions = { readonly roomBytesMax: number; readonly tenantBytesMax: TenantBytesMax };
type StorageDeps = {
  readonly clock: Clock;
  readonly metrics: Pick<DocumentServiceMetrics, "storedBytes" | "fullRooms" | "fullTenants">;
  readonly operations: Operations;
  readonly partitionOf: (room: RoomKey) => number;
};

const REPORT_MS = 1_000;
/** Unchanged reports are repeated each time after so many reports. */
const REPEATED_AFTER = 3;
/** Reports of limits from one report of usage to the next. */
const PEAKS_AFTER = 60;
/**
 * Full rooms and tenants in one report, which is one NATS message of at most 1 MiB. One beyond them is not refused before
 * another one has space. A room's key has up to 1,217 bytes, an entry of a tenant up to 130.
 */
const REPORTED_ROOMS_MAX = 1_500;
const REPORTED_ROOM_KEYS_BYTES_MAX = 400 * 1024;
const REPORTED_FULL_TENANTS_MAX = 4_000;
/** Tenants whose bytes are reported: those that store most. */
const REPORTED_TENANTS_MAX = 5_000;

export class StorageHost {
  readonly #partitions: readonly MeasuredPartition[];
  readonly #bus: StorageBus;
  readonly #options: StorageOptions;
  readonly #deps: StorageDeps;
  readonly #tenants: TenantBytes;
  readonly #peaks = new TenantPeaks();
  #peaksDue = 0;
  /** By the last report of each partition, from whichever service. */
  readonly #reported = new Map<number, FullStorage["rooms"]>();
  readonly #wasHeld = new Set<number>();
  #reports = 0;
  #cancel: () => void = () => {};

  constructor(
    partitions: readonly MeasuredPartition[],
    { storage: bus, storageQuestions }: StoragePorts,
    options: StorageOptions,
    deps: StorageDeps,
  ) {
    this.#partitions = partitions;
    this.#bus = bus;
    this.#options = options;
    this.#deps = deps;
    this.#tenants = new TenantBytes(partitions.length, options.tenantBytesMax);
    bus.onCounts(({ partition, tenants }) => this.#tenants.receiveCounts(partition, new Map(tenants)));
    bus.onFull(({ partition, rooms }) => void this.#reported.set(partition, rooms));
    storageQuestions.onQuestion((room) => this.#answer(room));
    this.#reportAll();
    this.#cancel = every(deps.clock, REPORT_MS, () => this.#reportAll());
  }

  stop(): void {
    this.#cancel();
  }

  #reportAll(): void {
    this.#reports += 1;
    const isRepeated = this.#reports % REPEATED_AFTER === 0;
    this.#partitions.forEach((partition, number) => {
      if (partition.isHeld) this.#report(partition, number, isRepeated);
      else this.#wasHeld.delete(number);
    });
    if (this.#partitions[0]?.isHeld === true && this.#reports >= this.#peaksDue) this.#reportPeaks();
  }

  #report(partition: MeasuredPartition, number: number, isRepeated: boolean): void {
    const { stored } = partition;
    if (!this.#wasHeld.has(number)) stored.adoptFull(this.#reported.get(number) ?? []);
    this.#wasHeld.add(number);
    const rooms = partition.takeLimitChanges();
    const { operations } = this.#deps;
    for (const { room, bytes, isReached } of rooms)
      operations.report({ kind: "room_storage", room, state: stateOf(isReached), bytes, max: this.#options.roomBytesMax });
    const counts = stored.tenants;
    if (counts !== undefined && isRepeated) {
      const tenants = [...counts].sort(([, a], [, b]) => b - a).slice(0, REPORTED_TENANTS_MAX);
      this.#tenants.receiveCounts(number, new Map(tenants)); // The message may be lost.
      this.#bus.publishCounts({ partition: number, tenants });
      this.#deps.metrics.storedBytes.set(
        { partition: String(number) },
        tenants.reduce((sum, [, bytes]) => sum + bytes, 0),
      );
    }
    const changes = number === 0 ? this.#tenants.decide() : [];
    for (const { tenant, bytes, max, isReached } of changes)
      operations.report({ kind: "tenant_storage", tenant, state: stateOf(isReached), bytes, max });
    this.#deps.metrics.fullRooms.set({ partition: String(number) }, stored.full.size);
    if (isRepeated || rooms.length > 0 || changes.length > 0) this.#bus.publishFull(this.#fullOf(stored, number));
  }

  #reportPeaks(): void {
    const tenants = this.#tenants.all;
    if (tenants === undefined) return;
    this.#peaksDue = this.#reports + PEAKS_AFTER;
    this.#peaks.receiveBytes(dayOf(this.#deps.clock.wallNow()), tenants);
    for (const message of this.#peaks.messages) this.#bus.publishPeaks(message);
  }

  #fullOf({ full }: StoredBytes, partition: number): FullStorage {
    const { roomBytesMax, tenantBytesMax } = this.#options;
    const rooms = reportedRooms(full);
    const tenants = partition === 0 ? this.#tenants.full : undefined;
    if (tenants === undefined) return { partition, roomBytesMax, rooms };
    this.#deps.metrics.fullTenants.set(tenants.size);
    return {
      partition,
      roomBytesMax,
      rooms,
      tenants: [...tenants]
        .slice(0, REPORTED_FULL_TENANTS_MAX)
        .map(([tenant, bytes]) => ({ tenant, bytes, max: tenantBytesMax.of(tenant) })),
    };
  }

  async #answer(room: RoomKey): Promise<StorageAnswer | undefined> {
    const partition = this.#partitions[this.#deps.partitionOf(room)];
    const found = partition?.isHeld === true ? await partition.measure(room) : undefined;
    if (found === undefined) return undefined;
    const { roomBytesMax, tenantBytesMax } = this.#options;
    const tenant = tenantOf(room);
    return {
      snapshots: found.snapshots ?? 0,
      history: found.history ?? 0,
      log: found.log,
      roomBytesMax,
      tenantBytes: this.#tenants.bytesOf(tenant),
      tenantBytesMax: tenantBytesMax.of(tenant),
    };
  }
}

function reportedRooms(full: ReadonlyMap<RoomKey, number>): [RoomKey, number][] {
  const rooms: [RoomKey, number][] = [];
  let keysBytes = 0;
  for (const [room, bytes] of full) {
    keysBytes += room.length; // A key is ASCII.
    if (rooms.length === REPORTED_ROOMS_MAX || keysBytes > REPORTED_ROOM_KEYS_BYTES_MAX) break;
    rooms.push([room, bytes]);
  }
  return rooms;
}

function stateOf(isReached: boolean): "reached" | "released" {
  return isReached ? "reached" : "released";
}
