/**
 * Wraps a reader of the log. Each traced edit that it reads gets a span `process log`, which ends when the reader has
 * processed the record.
 */

import { runsOf, type StoredRecord } from "../../bus/record.ts";
import type { FollowPartition } from "../log-reader.ts";
import { appendSpanId, randomSpanId, type EditTraces } from "./edit-traces.ts";
import { SPAN_KIND, type UnixMicros } from "./span.ts";

/** A reader that starts again reads records that were already read and traced. */
const OLD_MS_MIN = 60_000;

/** `traces` undefined: returns the log unchanged. `readers`: the name of these readers in spans. */
export function tracedLog<Log extends { readonly follow: FollowPartition }>(
  log: Log,
  traces: EditTraces | undefined,
  readers: string,
): Log {
  if (traces === undefined) return log;
  return {
    ...log,
    follow: async function* (partition, after, signal) {
      for await (const stored of log.follow(partition, after, signal)) {
        const start = traces.now();
        yield stored;
        if (start / 1_000 - stored.time < OLD_MS_MIN) record(traces, stored, start, readers);
      }
    },
  };
}

function record(traces: EditTraces, { room, streamSeq, bytes }: StoredRecord, start: UnixMicros, readers: string): void {
  const committed = runsOf(bytes);
  if (committed === undefined) return;
  for (const [edit, seq] of traces.among(room, committed.runs)) {
    traces.record(edit, {
      name: "process log",
      kind: SPAN_KIND.consumer,
      spanId: randomSpanId(),
      parentSpanId: appendSpanId(edit, committed.epoch),
      start,
      end: traces.now(),
      attributes: {
        "messaging.system": "nats",
        "messaging.operation.type": "process",
        "messaging.operation.name": "process",
        "messaging.destination.template": "{env}.log.{partition}.{room}",
        "messaging.consumer.group.name": readers,
        "messaging.batch.message_count": committed.lastSeq - committed.firstSeq + 1,
        "coroom.edit.seq": seq,
        "coroom.stream_seq": streamSeq,
      },
    });
  }
}
