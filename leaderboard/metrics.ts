/** Metrics of the leaderboard. */

import { Counter, Gauge, Histogram, type Registry } from "prom-client";

export type LeaderboardMetrics = ReturnType<typeof leaderboardMetrics>;

const SECONDS = [0.0005, 0.001, 0.005, 0.02, 0.1, 0.5, 2, 10];

export const leaderboardMetrics = (registry: Registry) => {
  const registers = [registry];
  const observers: (() => void)[] = [];
  const collect = (): void => {
    for (const observe of observers) observe();
  };
  return {
    /** Calls `observe` at each scrape, so that gauges are current. */
    onAsked: (observe: () => void): void => void observers.push(observe),
    records: new Counter({ name: "coroom_boards_records_total", help: "Records read from the log", registers }),
    unreadable: new Counter({ name: "coroom_boards_unreadable_records_total", help: "Log records that do not decode", registers }),
    edits: new Counter({ name: "coroom_boards_edits_total", help: "Edits counted into boards", registers }),
    missing: new Counter({
      name: "coroom_boards_missing_edits_total",
      help: "Edits that the log lost before they were counted",
      registers,
    }),
    rolledBack: new Counter({
      name: "coroom_boards_rolled_back_activities_total",
      help: "Times that a stream of activities had lost activities that were already counted",
      registers,
    }),
    batches: new Histogram({ name: "coroom_boards_batch_seconds", help: "Seconds to count one room's batch", buckets: SECONDS, registers }),
    passes: new Counter({
      name: "coroom_boards_passes_total",
      help: "Times that a partition was read again from its checkpoint floor, by reason: lease (this process took the lease), stale (its counts are out of date), doubtful (Redis may have lost data), gap (a room may lack edits below the floor: the log is read from its first record), failed (an error)",
      labelNames: ["reason"],
      registers,
    }),
    restores: new Counter({ name: "coroom_boards_restores_total", help: "Rooms whose boards were restored from a checkpoint", registers }),
    aside: new Gauge({
      name: "coroom_boards_rooms_aside",
      help: "Rooms that are not counted because their checkpoint does not decode, by partition",
      labelNames: ["partition"],
      registers,
    }),
    checkpoints: new Histogram({
      name: "coroom_boards_checkpoint_seconds",
      help: "Seconds to write a room's checkpoint, by outcome: written, superseded",
      buckets: SECONDS,
      labelNames: ["outcome"],
      registers,
    }),
    removals: new Counter({
      name: "coroom_boards_removals_total",
      help: "Rooms whose boards were removed because the room was deleted",
      registers,
    }),
    archived: new Counter({
      name: "coroom_boards_archived_windows_total",
      help: "Attempts to archive the boards of an ended window, by outcome: written, there (an earlier attempt archived them), behind (Redis lost boards; they are restored from the checkpoint first)",
      labelNames: ["outcome"],
      registers,
    }),
    reads: new Counter({
      name: "coroom_boards_reads_total",
      help: "HTTP board requests, by answer",
      labelNames: ["answer"],
      registers,
    }),
    pushes: new Counter({ name: "coroom_boards_pushes_total", help: "Changed boards published to watchers", registers }),
    watches: new Gauge({ name: "coroom_boards_watches", help: "Watched boards", registers }),
    refusedWatches: new Counter({
      name: "coroom_boards_refused_watches_total",
      help: "Watch requests refused because the board is not configured or the maximum number of watched boards was reached",
      registers,
    }),
    refusedNames: new Counter({
      name: "coroom_boards_refused_names_total",
      help: "Display names not stored because the maximum number of a room or tenant was reached, by owner: room, tenant",
      labelNames: ["owner"],
      registers,
    }),
    rooms: new Gauge({
      name: "coroom_boards_rooms",
      help: "Rooms in memory, by partition",
      labelNames: ["partition"],
      registers,
      collect,
    }),
    pending: new Gauge({
      name: "coroom_boards_pending_edits",
      help: "Edits read and not yet counted, by partition",
      labelNames: ["partition"],
      registers,
      collect,
    }),
    redisUnreached: new Gauge({
      name: "coroom_boards_redis_unreached",
      help: "1 while Redis does not answer or cannot be written",
      registers,
    }),
    isCounting: new Gauge({
      name: "coroom_boards_counting",
      help: "1 while this process counts the partition, 0 while another process does",
      labelNames: ["partition"],
      registers,
    }),
    behind: new Gauge({
      name: "coroom_boards_behind_seconds",
      help: "Seconds by which the boards of a partition lag behind its log, by partition",
      labelNames: ["partition"],
      registers,
      collect,
    }),
  };
};
