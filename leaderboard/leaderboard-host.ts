/** All partitions that this process counts or is on standby for, and its answers to readers. */

import { partitionOf } from "../shared/bus/subjects.ts";
import type { DisplayName, BoardWatch } from "../shared/bus/board-messages.ts";
import type { RoomKey } from "../shared/ids.ts";
import type { LiveOptions } from "./reading/live-boards.ts";
import { LiveHost } from "./reading/live-host.ts";
import type { Counted } from "./reading/watched-boards.ts";
import { BoardReader, NamesHost, type NamesOptions, type ReadsOptions, type ReadsPorts } from "./reading/reads-host.ts";
import { CountingHost, type CountingDeps, type CountingOptions, type CountingPorts } from "./counting/counting-host.ts";
import type { BoardPublisher, StoredNames } from "./ports.ts";

export type LeaderboardPorts = CountingPorts &
  ReadsPorts & {
    readonly shown: BoardPublisher;
    readonly names: StoredNames;
  };
type LeaderboardOptions = CountingOptions & ReadsOptions & LiveOptions & NamesOptions;

export class LeaderboardHost {
  readonly reader: BoardReader;
  readonly names: NamesHost;
  readonly #partitions: readonly CountingHost[];
  readonly #live: LiveHost;
  readonly #ended: Promise<unknown>;

  constructor(
    ports: LeaderboardPorts,
    options: LeaderboardOptions,
    deps: Omit<CountingDeps, "onCounted" | "watchedRooms" | "countedPartitions">,
  ) {
    this.reader = new BoardReader(ports, options, deps.clock);
    this.names = new NamesHost(ports.names, options, { ...deps, onNew: (room) => this.#live.receiveChange(room) });
    const count = options.logPartitions;
    const ofPartitions = {
      ...deps,
      onCounted: (room: RoomKey) => this.#live.receiveChange(room),
      watchedRooms: () => this.#live.watchedRooms,
      countedPartitions: () => this.#partitions.filter(({ isHeld }) => isHeld).length,
    };
    this.#partitions = Array.from({ length: count }, (_, partition) => new CountingHost(partition, ports, options, ofPartitions));
    const partitionWith = (room: RoomKey): CountingHost | undefined => this.#partitions[partitionOf(room, count)];
    const counted = (room: RoomKey): Counted => partitionWith(room)?.counted ?? "elsewhere";
    const countNow = async (room: RoomKey): Promise<void> => partitionWith(room)?.countNow(room);
    this.#live = new LiveHost({ reader: this.reader, names: this.names, shown: ports.shown }, options, { ...deps, counted, countNow });
    this.#ended = Promise.all(this.#partitions.map((partition) => partition.run()));
  }

  /** Whether a board that this process counts, or may count later, is watched. */
  get isWatched(): boolean {
    return this.#live.watchedRooms.next().done !== true;
  }

  receiveWatch(watch: BoardWatch): void {
    this.#live.receiveWatch(watch);
  }

  receiveName(name: DisplayName): void {
    void this.names.receiveName(name);
  }

  async stop(): Promise<void> {
    this.#live.stop();
    for (const partition of this.#partitions) partition.stop();
    await this.#ended;
  }
}
