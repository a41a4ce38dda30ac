/** All partitions of the log that this process reads or stands by for, and the questions about rooms. */

import { partitionOf } from "../shared/bus/subjects.ts";
import type { Clock } from "../shared/clock.ts";
import type { RoomKey } from "../shared/ids.ts";
import type { Log } from "../shared/log.ts";
import type { DocumentServiceMetrics } from "./metrics.ts";
import type { News } from "./ports.ts";
import { PartitionHost, type PartitionOptions, type PartitionPorts } from "./rooms/partition-host.ts";
import type { PastHost } from "./past/past-host.ts";
import { unlessMistake, within } from "../shared/pause.ts";
import type { Freshness, Served } from "./rooms/serve-host.ts";

export type DocumentHostOptions = PartitionOptions & { readonly documentsAnswerMsMax: number };

/** Whoever deletes a room waits no longer for what follows by itself. */
const WIPED_MS_MAX = 5_000;

export class DocumentHost {
  readonly #partitions: readonly PartitionHost[];
  readonly #options: DocumentHostOptions;
  readonly #deps: { readonly clock: Clock; readonly log: Log; readonly metrics: DocumentServiceMetrics; readonly news: News };
  readonly #ended: Promise<unknown>;

  constructor(
    ports: PartitionPorts,
    options: DocumentHostOptions,
    deps: { clock: Clock; log: Log; metrics: DocumentServiceMetrics; news: News },
  ) {
    // Each has its share of the memory, so that one busy partition does not stop the others.
    const share = {
      ...options,
      documentsBytesMax: options.documentsBytesMax / options.logPartitions,
      documentsMax: options.documentsMax / options.logPartitions,
    };
    this.#partitions = Array.from({ length: options.logPartitions }, (_, partition) => new PartitionHost(partition, ports, share, deps));
    this.#options = options;
    this.#deps = deps;
    this.#ended = Promise.all(this.#partitions.map((partition) => partition.run()));
  }

  /** Whether any room would be answered for here. */
  get isServing(): boolean {
    return this.#partitions.some((partition) => partition.isHeld);
  }

  /** Whether the room is answered for here, and not by another service. */
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
      unlessMistake(cause);
      this.#deps.log.warn({ room, cause }, "a document could not be read; the client asks again");
      return { kind: "loading" };
    }
  }

  /** The room's past, if the room is answered for here; undefined as well while its checkpoint cannot be read. */
  async past(room: RoomKey): Promise<PastHost | "deleted" | undefined> {
    const partition = this.#partitions[partitionOf(room, this.#options.logPartitions)];
    return partition && within(this.#deps.clock, this.#options.documentsAnswerMsMax, partition.past(room), undefined);
  }

  /**
   * Deletes the room for good, and waits for a while until nothing is left of it. `unknown`: it is not known whether
   * it did; the same call again settles it.
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
      unlessMistake(cause);
      log.warn({ room, cause }, "it is not known whether a room is deleted; who asked asks again");
      return "unknown";
    }
  }

  async stop(): Promise<void> {
    for (const partition of this.#partitions) partition.stop();
    await this.#ended;
  }
}
