/** All partitions of the log that this process counts or stands by for, and what it tells those who look. */

import { partitionOf } from "../shared/bus/subjects.ts";
import type { BoardName, BoardWatch } from "../shared/bus/board-messages.ts";
import type { RoomKey } from "../shared/ids.ts";
import { LiveHost, type LiveOptions } from "./reading/live-host.ts";
import type { Counted } from "./reading/watched-boards.ts";
import { TenantReader } from "./reading/tenant-reads-host.ts";
import { NamesHost, type NamesOptions } from "./reading/names-host.ts";
import { PartitionHost, type PartitionDeps, type PartitionOptions, type PartitionPorts } from "./counting/partition-host.ts";
import type { Shown, StoredNames, TenantArchive, TenantBoards } from "./ports.ts";
import { BoardReader, type ReadsOptions, type ReadsPorts } from "./reading/reads-host.ts";

export type LeaderboardPorts = PartitionPorts &
  ReadsPorts & {
    readonly shown: Shown;
    readonly names: StoredNames;
    readonly tenants: TenantBoards;
    readonly tenantArchive: TenantArchive;
  };
export type LeaderboardOptions = PartitionOptions & ReadsOptions & LiveOptions & NamesOptions;

export class LeaderboardHost {
  readonly reader: BoardReader;
  readonly names: NamesHost;
  readonly tenants: TenantReader;
  readonly #partitions: readonly PartitionHost[];
  readonly #live: LiveHost;
  readonly #ended: Promise<unknown>;

  constructor(
    ports: LeaderboardPorts,
    options: LeaderboardOptions,
    deps: Omit<PartitionDeps, "onCounted" | "watchedRooms" | "countedPartitions">,
  ) {
    this.reader = new BoardReader(ports, options, deps.clock);
    this.names = new NamesHost(ports.names, options, { ...deps, onNew: (room) => this.#live.receiveChange(room) });
    this.tenants = new TenantReader(ports, options, deps.clock);
    const count = options.logPartitions;
    const ofPartitions = {
      ...deps,
      onCounted: (room: RoomKey) => this.#live.receiveChange(room),
      watchedRooms: () => this.#live.watchedRooms,
      countedPartitions: () => this.#partitions.filter(({ isHeld }) => isHeld).length,
    };
    this.#partitions = Array.from({ length: count }, (_, partition) => new PartitionHost(partition, ports, options, ofPartitions));
    const partitionWith = (room: RoomKey): PartitionHost | undefined => this.#partitions[partitionOf(room, count)];
    const counted = (room: RoomKey): Counted => partitionWith(room)?.counted ?? "elsewhere";
    const countNow = async (room: RoomKey): Promise<void> => partitionWith(room)?.countNow(room);
    this.#live = new LiveHost({ reader: this.reader, names: this.names, shown: ports.shown }, options, { ...deps, counted, countNow });
    this.#ended = Promise.all(this.#partitions.map((partition) => partition.run()));
  }

  /** Somebody looks at a board that is counted here or may come to be. */
  get isWatched(): boolean {
    return this.#live.watchedRooms.next().done !== true;
  }

  receiveWatch(watch: BoardWatch): void {
    this.#live.receiveWatch(watch);
  }

  receiveName(name: BoardName): void {
    void this.names.receiveName(name);
  }

  async stop(): Promise<void> {
    this.#live.stop();
    for (const partition of this.#partitions) partition.stop();
    await this.#ended;
  }
}
