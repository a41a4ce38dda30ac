/** What the document service counts. */

import { Counter, Gauge, Histogram, type Registry } from "prom-client";

export type DocumentServiceMetrics = ReturnType<typeof documentServiceMetrics>;

const SECONDS = [0.001, 0.005, 0.02, 0.1, 0.5, 2, 10];

export const documentServiceMetrics = (registry: Registry) => {
  const registers = [registry];
  return {
    records: new Counter({ name: "coroom_documents_records_total", help: "Records read from the log", registers }),
    gaps: new Counter({
      name: "coroom_documents_log_gaps_total",
      help: "Holes found in a room's log that no checkpoint explains",
      registers,
    }),
    unreadable: new Counter({
      name: "coroom_documents_unreadable_records_total",
      help: "Records of the log that do not decode",
      registers,
    }),
    refusedEdits: new Counter({
      name: "coroom_documents_refused_edits_total",
      help: "Edits that Yjs refuses: left out of the document, kept in the log",
      registers,
    }),
    merges: new Histogram({
      name: "coroom_documents_merge_seconds",
      help: "Time to merge a room's waiting edits",
      buckets: SECONDS,
      registers,
    }),
    mergesOverrun: new Counter({
      name: "coroom_documents_merges_overrun_total",
      help: "Merges given up because they took too long, or ended their thread",
      registers,
    }),
    forgottenWriters: new Counter({
      name: "coroom_documents_forgotten_writers_total",
      help: "Writers whom checkpoints forgot before their time because the list was full: of their edits a repeat may be ordered again",
      registers,
    }),
    stalledRooms: new Gauge({
      name: "coroom_documents_stalled_rooms",
      help: "Rooms whose last merge was given up, or whose snapshot is missing or damaged: their snapshots do not move on and their log stays whole, by partition",
      labelNames: ["partition"],
      registers,
    }),
    saves: new Histogram({
      name: "coroom_documents_save_seconds",
      help: "Time to write, verify and commit a snapshot, by outcome: saved, superseded, failed",
      buckets: SECONDS,
      labelNames: ["outcome"],
      registers,
    }),
    trims: new Counter({
      name: "coroom_documents_trims_total",
      help: "Trims of a room's log, by outcome: trimmed, failed",
      labelNames: ["outcome"],
      registers,
    }),
    trimPasses: new Counter({
      name: "coroom_documents_trim_passes_total",
      help: "Passes over a part of the log for all rooms to be trimmed, by outcome: whole, cut (COROOM_TRIM_READ_BYTES_MAX were read), failed (each room is read by itself)",
      labelNames: ["outcome"],
      registers,
    }),
    deletions: new Counter({ name: "coroom_documents_deletions_total", help: "Rooms deleted for good", registers }),
    wipes: new Counter({
      name: "coroom_documents_wipes_total",
      help: "Tries to remove what is left of a deleted room, by outcome: wiped, owned (a room server does not answer, and may still hold it), failed",
      labelNames: ["outcome"],
      registers,
    }),
    unwipedRooms: new Gauge({
      name: "coroom_documents_unwiped_rooms",
      help: "Deleted rooms of which something may be left still, by partition of the log",
      labelNames: ["partition"],
      registers,
    }),
    reads: new Counter({
      name: "coroom_documents_reads_total",
      help: "Questions over HTTP, by answer: snapshot, diff, json, text and other successes, unchanged, or the error's name",
      labelNames: ["answer"],
      registers,
    }),
    webhookSeconds: new Histogram({
      name: "coroom_documents_webhook_seconds",
      help: "Tries to deliver a webhook, by outcome: delivered, failed, refused",
      buckets: SECONDS,
      labelNames: ["outcome"],
      registers,
    }),
    webhooksGivenUp: new Counter({
      name: "coroom_documents_webhooks_given_up_total",
      help: "Events that were given up: refused by their endpoint, or tried as often as they may",
      registers,
    }),
    webhooksWaiting: new Gauge({
      name: "coroom_documents_webhooks_waiting",
      help: "Events that are not delivered yet, by endpoint of the settings",
      labelNames: ["endpoint"],
      registers,
    }),
    rooms: new Gauge({
      name: "coroom_documents_rooms",
      help: "Rooms known in memory, by partition of the log",
      labelNames: ["partition"],
      registers,
    }),
    heldBytes: new Gauge({
      name: "coroom_documents_held_bytes",
      help: "Documents and waiting edits in memory, by partition",
      labelNames: ["partition"],
      registers,
    }),
    isReading: new Gauge({
      name: "coroom_documents_reading",
      help: "1 while this service reads the partition, 0 while it stands by",
      labelNames: ["partition"],
      registers,
    }),
    uncoveredRecords: new Gauge({
      name: "coroom_documents_uncovered_records",
      help: "Records of the partition that a restart would read again",
      labelNames: ["partition"],
      registers,
    }),
    heldForBoards: new Gauge({
      name: "coroom_documents_held_for_boards_records",
      help: "Records of the partition that are not trimmed before the boards have them in checkpoints",
      labelNames: ["partition"],
      registers,
    }),
  };
};
