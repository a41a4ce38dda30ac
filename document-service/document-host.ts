/** All partitions of the log that this process reads or is on standby for, and the requests about their rooms. */

import type { Operations } from "../shared/bus/operations-events.ts";
import { partitionOf } from "../shared/bus/subjects.ts";
import type { Clock } from "../shared/time/clock.ts";
import type { RoomKey } from "../shared/ids.ts";
import type { Log } from "../shared/process/log.ts";
import type { DocumentServiceMetrics } from "./metrics.ts";
import type { ChangeNotifications, StoredRoomLog } from "./ports.ts";
import { StorageHost, type StorageOptions, type StoragePorts } from "./storage/storage-host.ts";
import { LeftOutEdits } from "./rooms/left-out-edits.ts";
import { DocumentPartitionHost, type DocumentPartitionOptions, type DocumentPartitionPorts } from "./rooms/partition-host.ts";
import type { HistoryReadsHost } from "./history/history-reads-host.ts";
import { rethrowMistake, within } from "../shared/time/pause.ts";
import type { Freshness, Served } from "./rooms/room-messages.ts";

export type DocumentPorts = DocumentPartitionPorts & StoragePorts;
export type DocumentHostOptions = DocumentPartitionOptions & StorageOptions;

/** Maximum wait of a delete request for the removal. The removal continues afterwards. */
const WIPED_MS_MAX = 5_000;

export class DocumentHost {
  readonly #partitions: readonly DocumentPartitionHost[];
  readonly #options: DocumentHostOptions;
  readonly #deps: {
    readonly clock: Clock;
    readonly log: Log;
    readonly metrics: DocumentServiceMetrics;
    readonly notifications: ChangeNotifications;
    readonly operations: Operations;
  };
  readonly #edits: Pick<StoredRoomLog, "end">;
  readonly #storage: StorageHost;
  readonly #ended: Promise<unknown>;

  constructor(
    ports: DocumentPorts,
    options: DocumentHostOptions,
    deps: { clock: Clock; log: Log; metrics: DocumentServiceMetrics; notifications: ChangeNotifications; operations: Operations },
  ) {
    // Each partition has a share of the memory, so that one busy partition does not stop the others.
    const share = {
      ...options,
      documentsBytesMax: options.documentsBytesMax / options.logPartitions,
      documentsMax: options.documentsMax / options.logPartitions,
    };
    const leftOut = new LeftOutEdits();
    this.#partitions = Array.from(
      { length: options.logPartitions },
      (_, partition) => new DocumentPartitionHost(partition, ports, share, { ...deps, leftOut }),
    );
    this.#options = options;
    this.#deps = deps;
    this.#edits = ports.log;
    this.#storage = new StorageHost(this.#partitions, ports, options, {
      ...deps,
      partitionOf: (room) => partitionOf(room, options.logPartitions),
    });
    this.#ended = Promise.all(this.#partitions.map((partition) => partition.run()));
  }

  /** Whether this service holds at least one partition. */
  get isServing(): boolean {
    return this.#partitions.some((partition) => partition.isHeld);
  }

  /** Whether this service serves the room, and no other service does. */
  holds(room: RoomKey): boolean {
    return this.#partitions[partitionOf(room, this.#options.logPartitions)]?.isHeld === true;
  }

  async serve(room: RoomKey, freshness: Freshness, minSeq = 0): Promise<Served> {
    const partition = this.#partitions[partitionOf(room, this.#options.logPartitions)];
    if (partition === undefined) return { kind: "loading" };
    try {
      return await within(this.#deps.clock, this.#options.documentsAnswerMsMax, partition.serve(room, freshness, minSeq), {
        kind: "loading",
      });
    } catch (cause) {
      rethrowMistake(cause);
      this.#deps.log.warn({ room, cause }, "a document could not be read; the client asks again");
      return { kind: "loading" };
    }
  }

  /** Whether the room's log has an edit with this seq, or a later one. False too if the log does not answer. */
  async hasEdit(room: RoomKey, seq: number): Promise<boolean> {
    try {
      const end = await this.#edits.end(room);
      return end.kind === "at" && end.seq >= seq;
    } catch (cause) {
      rethrowMistake(cause);
      this.#deps.log.warn({ room, cause }, "the end of a room's log could not be read; the client asks again");
      return false;
    }
  }

  /** The room's history; undefined if another service serves the room, or its checkpoint cannot be read. */
  async historyReads(room: RoomKey): Promise<HistoryReadsHost | "deleted" | undefined> {
    const partition = this.#partitions[partitionOf(room, this.#options.logPartitions)];
    return partition && within(this.#deps.clock, this.#options.documentsAnswerMsMax, partition.historyReads(room), undefined);
  }

  /**
   * Deletes the room permanently, and waits a limited time until all its data is removed. `unknown`: the deletion may
   * or may not have happened; repeat the call to find out.
   */
  async delete(room: RoomKey): Promise<"elsewhere" | "no-room" | "unknown" | "wiped" | "wiping"> {
    const { clock, log } = this.#deps;
    const partition = this.#partitions[partitionOf(room, this.#options.logPartitions)];
    if (partition === undefined) return "elsewhere";
    try {
      const deletion = await within(clock, this.#options.documentsAnswerMsMax, partition.delete(room), { kind: "unknown" as const });
      if (deletion.kind !== "deleted") return deletion.kind;
      return await within(
        clock,
        WIPED_MS_MAX,
        deletion.wiped.then(() => "wiped" as const),
        "wiping" as const,
      );
    } catch (cause) {
      rethrowMistake(cause);
      log.warn({ room, cause }, "it is not known whether a room is deleted; the caller asks again");
      return "unknown";
    }
  }

  async stop(): Promise<void> {
    for (const partition of this.#partitions) partition.stop();
    this.#storage.stop();
    await this.#ended;
  }
}
