/**
 * Spans of traced edits on this gateway: `edit`, from receipt until the log has the edit, and `process edits.out`, on
 * every gateway that delivers it.
 */

import type { SubmittedEdit } from "../../shared/bus/envelope.ts";
import type { GatewayId, RoomKey } from "../../shared/ids.ts";
import { appendSpanId, randomSpanId, type EditTraces, editSpanId, type TracedEdit } from "../../shared/io/traces/edit-traces.ts";
import { OpenHops } from "../../shared/io/traces/open-hops.ts";
import { SPAN_FAILED, SPAN_KIND } from "../../shared/io/traces/span.ts";
import type { EditHops } from "../ports.ts";

export function tracedEdits(gateway: GatewayId, traces: EditTraces): EditHops {
  const open = new OpenHops(traces);
  const tracedOf = (room: RoomKey, { author, counter }: SubmittedEdit): TracedEdit | undefined => traces.of(room, author.client, counter);
  /** A repetition of an edit that is already in the log. The trace began at the gateway that first received the edit. */
  const asRepeat = (edit: TracedEdit) => ({ name: "edit repeated", spanId: randomSpanId(), parentSpanId: editSpanId(edit, gateway) });

  return {
    received: (room, submitted) => {
      const edit = tracedOf(room, submitted);
      if (edit === undefined) return;
      if (open.get(edit) !== undefined) return open.note(edit, "taken again");
      const attributes = { "coroom.edit.bytes": submitted.payload.byteLength };
      open.begin(edit, {
        name: "edit",
        kind: SPAN_KIND.server,
        spanId: editSpanId(edit, gateway),
        parentSpanId: undefined,
        start: traces.now(),
        attributes,
        events: [],
      });
    },
    forwarded: (room, message) => {
      if (message.kind !== "edits" && message.kind !== "first-edit") return;
      for (const submitted of message.kind === "edits" ? message.edits : [message.edit]) {
        const edit = tracedOf(room, submitted);
        if (edit !== undefined) open.note(edit, "sent to the owner");
      }
    },
    answered: (room, answer) => {
      if (answer.kind === "catch-up") return;
      const edit = traces.of(room, answer.client, answer.counter);
      if (edit === undefined) return;
      switch (answer.kind) {
        case "acked":
          return open.end(edit, { ...asRepeat(edit), attributes: { "coroom.edit.seq": answer.seq } });
        case "refused":
          return open.note(edit, "refused", { "coroom.reason": answer.reason }); // The edit is sent again, by the gateway or by its client, or it is dropped.
        case "not-first":
          return open.end(edit, { status: { code: SPAN_FAILED, message: "the room had edits already" } });
        case "key-reused":
          return open.end(edit, { status: { code: SPAN_FAILED, message: "another edit has the key" } });
      }
    },
    committed: (room, batch) => {
      if (open.size === 0) return;
      for (const [edit, seq] of traces.among(room, batch.runs)) open.end(edit, { attributes: { "coroom.edit.seq": seq } });
    },
    delivering: (room, batch, deliver) => {
      const start = traces.now();
      deliver();
      for (const [edit, seq] of traces.among(room, batch.runs)) {
        traces.record(edit, {
          name: "process edits.out",
          kind: SPAN_KIND.consumer,
          spanId: randomSpanId(),
          parentSpanId: appendSpanId(edit, batch.epoch),
          start,
          end: traces.now(),
          attributes: {
            "messaging.system": "nats",
            "messaging.operation.type": "process",
            "messaging.operation.name": "process",
            "messaging.destination.template": "{env}.edits.out.{room}",
            "messaging.batch.message_count": batch.lastSeq - batch.firstSeq + 1,
            "coroom.edit.seq": seq,
          },
        });
      }
    },
  };
}
