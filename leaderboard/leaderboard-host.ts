/** All partitions of the log that this process counts or stands by for, and what it tells those who look. */

import { partitionOf } from "../shared/bus/subjects.ts";
import type { BoardWatch } from "../shared/bus/board-messages.ts";
import type { RoomKey } from "../shared/ids.ts";
import { LiveHost, type LiveOptions } from "./live-host.ts";
import { PartitionHost, type PartitionDeps, type PartitionOptions, type PartitionPorts } from "./partition-host.ts";
import type { Shown } from "./ports.ts";
import { BoardReader, type ReadsOptions, type ReadsPorts } from "./reads-host.ts";

export type LeaderboardPorts = PartitionPorts & ReadsPorts & { readonly shown: Shown };
export type LeaderboardOptions = PartitionOptions & ReadsOptions & LiveOptions;

export class LeaderboardHost {
  readonly reader: BoardReader;
  readonly #partitions: readonly PartitionHost[];
  readonly #live: LiveHost;
  readonly #ended: Promise<unknown>;

  constructor(ports: LeaderboardPorts, options: LeaderboardOptions, deps: Omit<PartitionDeps, "onCounted">) {
    this.reader = new BoardReader(ports, options, deps.clock);
    const count = options.logPartitions;
    // Each has its share of the memory, so that one busy partition does not stop the others.
    const share = { ...options, boardPendingEditsMax: options.boardPendingEditsMax / count, boardRoomsMax: options.boardRoomsMax / count };
    this.#partitions = Array.from({ length: count }, (_, partition) => new PartitionHost(partition, ports, share, { ...deps, onCounted: (room) => this.#live.receiveChange(room) }));
    const counts = (room: RoomKey): boolean => this.#partitions[partitionOf(room, count)]?.isHeld ?? false;
    this.#live = new LiveHost(this.reader, ports.shown, options, { ...deps, counts });
    this.#ended = Promise.all(this.#partitions.map((partition) => partition.run()));
  }

  receiveWatch(watch: BoardWatch): void {
    this.#live.receiveWatch(watch);
  }

  async stop(): Promise<void> {
    this.#live.stop();
    for (const partition of this.#partitions) partition.stop();
    await this.#ended;
  }
}
