/** The document service's metrics. */

import { Counter, Gauge, Histogram, type Registry } from "prom-client";

export type DocumentServiceMetrics = ReturnType<typeof documentServiceMetrics>;

const SECONDS = [0.001, 0.005, 0.02, 0.1, 0.5, 2, 10];

export const documentServiceMetrics = (registry: Registry) => {
  const registers = [registry];
  return {
    records: new Counter({ name: "coroom_documents_records_total", help: "Records read from the log", registers }),
    gaps: new Counter({
      name: "coroom_documents_log_gaps_total",
      help: "Gaps in the log of a room whose edits no checkpoint covers",
      registers,
    }),
    unreadable: new Counter({
      name: "coroom_documents_unreadable_records_total",
      help: "Log records that do not decode",
      registers,
    }),
    storedBytes: new Gauge({
      name: "coroom_documents_stored_bytes",
      help: "Bytes of snapshots, history and log of all rooms, by partition",
      labelNames: ["partition"],
      registers,
    }),
    postgresStatements: new Gauge({
      name: "coroom_documents_postgres_statements",
      help: "Statements that PostgreSQL executes (running, at most 8) and that wait for one of the 8 connections (waiting)",
      labelNames: ["state"],
      registers,
    }),
    storeUnusable: new Gauge({
      name: "coroom_documents_store_unusable",
      help: "1 while the last check found that PostgreSQL, as the store of snapshots and history, cannot be used",
      registers,
    }),
    fullRooms: new Gauge({
      name: "coroom_documents_full_rooms",
      help: "Rooms that store COROOM_ROOM_BYTES_MAX and can only be read, by partition",
      labelNames: ["partition"],
      registers,
    }),
    fullTenants: new Gauge({
      name: "coroom_documents_full_tenants",
      help: "Tenants that store COROOM_TENANT_BYTES_MAX and whose rooms can only be read",
      registers,
    }),
    refusedEdits: new Counter({
      name: "coroom_documents_refused_edits_total",
      help: "Edits that Yjs rejects or that exceed a limit. They stay in the log and the history, and are not part of the document",
      registers,
    }),
    disputedYjsIds: new Counter({
      name: "coroom_documents_disputed_yjs_ids_total",
      help: "Yjs client ids that two users wrote with. Yjs may ignore edits of the first user",
      registers,
    }),
    merges: new Histogram({
      name: "coroom_documents_merge_seconds",
      help: "Seconds to merge a room's waiting edits",
      buckets: SECONDS,
      registers,
    }),
    mergesOverrun: new Counter({
      name: "coroom_documents_merges_overrun_total",
      help: "Merges aborted because they took too long or ended their thread",
      registers,
    }),
    forgottenWriters: new Counter({
      name: "coroom_documents_forgotten_writers_total",
      help: "Writers removed from checkpoints early because the list was full. A repeated edit of such a writer may be ordered again",
      registers,
    }),
    stalledRooms: countedWhenRead(
      registry,
      "coroom_documents_stalled_rooms",
      "Rooms whose last merge was aborted or whose snapshot is missing or damaged, by partition. Their log is not trimmed",
    ),
    quarantinedRooms: new Gauge({
      name: "coroom_documents_quarantined_rooms",
      help: "Rooms whose last merge took longer than one second. Their merges share one thread",
      registers,
    }),
    threadWaits: new Histogram({
      name: "coroom_documents_thread_wait_seconds",
      help: "Seconds that tasks waited for a thread, by lane (quick, writes, quarantine) and kind: write (content of an HTTP write), read (of a document or its history), awaited (merge that a client waits for), background (other merges)",
      buckets: SECONDS,
      labelNames: ["lane", "kind"],
      registers,
    }),
    saves: new Histogram({
      name: "coroom_documents_save_seconds",
      help: "Seconds to write, verify and commit a snapshot, by outcome: saved, superseded, failed",
      buckets: SECONDS,
      labelNames: ["outcome"],
      registers,
    }),
    trims: new Counter({
      name: "coroom_documents_trims_total",
      help: "Trims of a room's log, by outcome: trimmed, failed, refused (the log, the checkpoint or the snapshot is not what the trim relies on; the room is checked again)",
      labelNames: ["outcome"],
      registers,
    }),
    trimPasses: new Counter({
      name: "coroom_documents_trim_passes_total",
      help: "Passes over a partition of the log that archive all rooms before their trim, by outcome: whole (all rooms), cut (stopped at COROOM_TRIM_READ_BYTES_MAX), failed (each room is read separately instead)",
      labelNames: ["outcome"],
      registers,
    }),
    deletions: new Counter({ name: "coroom_documents_deletions_total", help: "Rooms deleted permanently", registers }),
    wipes: new Counter({
      name: "coroom_documents_wipes_total",
      help: "Attempts to remove the data of a deleted room, by outcome: wiped, owned (a room server may still hold the room), failed",
      labelNames: ["outcome"],
      registers,
    }),
    unwipedRooms: countedWhenRead(
      registry,
      "coroom_documents_unwiped_rooms",
      "Deleted rooms that may still have stored data, by partition",
    ),
    reads: new Counter({
      name: "coroom_documents_reads_total",
      help: "HTTP requests to the document service, by answer: snapshot, diff, json, text, rendered (a format), unchanged, edit (made for a write), the name of another result, or the name of the error",
      labelNames: ["answer"],
      registers,
    }),
    webhookSeconds: new Histogram({
      name: "coroom_documents_webhook_seconds",
      help: "Seconds of webhook delivery attempts, by outcome: delivered, failed, refused",
      buckets: SECONDS,
      labelNames: ["outcome"],
      registers,
    }),
    webhooksDropped: new Counter({
      name: "coroom_documents_webhooks_dropped_total",
      help: "Webhook events dropped because the endpoint refused them or the last attempt failed",
      registers,
    }),
    webhooksWaiting: new Gauge({
      name: "coroom_documents_webhooks_waiting",
      help: "Webhook events in the queue, by endpoint",
      labelNames: ["endpoint"],
      registers,
    }),
    firstContentSeconds: new Histogram({
      name: "coroom_documents_first_content_seconds",
      help: "Seconds until an application has given the first content of a room, with the wait for its turn, by outcome: content, none, failed",
      buckets: SECONDS,
      labelNames: ["outcome"],
      registers,
    }),
    firstContents: new Gauge({
      name: "coroom_documents_first_contents",
      help: "Rooms whose first content is requested from the application, or waits for its turn",
      registers,
    }),
    rooms: new Gauge({
      name: "coroom_documents_rooms",
      help: "Rooms in memory, by partition",
      labelNames: ["partition"],
      registers,
    }),
    heldBytes: new Gauge({
      name: "coroom_documents_held_bytes",
      help: "Bytes of documents and waiting edits in memory, by partition",
      labelNames: ["partition"],
      registers,
    }),
    isReading: new Gauge({
      name: "coroom_documents_reading",
      help: "1 while this process reads the partition, 0 while it is on standby",
      labelNames: ["partition"],
      registers,
    }),
    uncoveredRecords: countedWhenRead(
      registry,
      "coroom_documents_uncovered_records",
      "Records that no durable snapshot covers, so that a restart reads them again, by partition",
    ),
    heldForBoards: new Gauge({
      name: "coroom_documents_held_for_boards_records",
      help: "Records that are not trimmed yet because no checkpoint of the leaderboard covers them, by partition",
      labelNames: ["partition"],
      registers,
    }),
  };
};

/** A gauge by partition that is counted when it is read, because each count looks at every room of the partition. */
function countedWhenRead(registry: Registry, name: string, help: string) {
  const counts = new Map<string, () => number>();
  const gauge = new Gauge({
    name,
    help,
    labelNames: ["partition"],
    registers: [registry],
    collect: () => {
      for (const [partition, count] of counts) gauge.set({ partition }, count());
    },
  });
  return Object.assign(gauge, { countWith: (partition: string, count: () => number): void => void counts.set(partition, count) });
}
