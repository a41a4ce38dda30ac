/**
 * Wraps a room server's ports to record spans of traced edits. `process owner` lasts from receipt until the record is
 * in the log, and contains `send log`, the append. Used only when tracing is on.
 */

import type { OwnerReply, ToOwner } from "../../shared/bus/envelope.ts";
import { runsOf } from "../../shared/bus/record.ts";
import type { ClientId, RoomKey } from "../../shared/ids.ts";
import { appendSpanId, randomSpanId, type EditTraces, editSpanId } from "../../shared/io/traces/edit-traces.ts";
import { OpenHops } from "../../shared/io/traces/open-hops.ts";
import { SPAN_FAILED, SPAN_KIND, type SpanAttributes, type UnixMicros } from "../../shared/io/traces/span.ts";
import type { Counter } from "../../shared/wire/frames.ts";
import type { AppendOutcome, Gateways, ReleaseReason, RoomInbox, OutgoingRecord, RoomLog } from "../ports.ts";

type Ports = { readonly inbox: RoomInbox; readonly log: RoomLog; readonly gateways: Gateways };
type Outcome = AppendOutcome["kind"] | `abandoned: ${ReleaseReason}`;

const ON_NATS = { "messaging.system": "nats" };

export function tracedPorts<P extends Ports>(ports: P, traces: EditTraces): P {
  const open = new OpenHops(traces);

  const receive = (room: RoomKey, message: ToOwner): void => {
    if (message.kind === "catch-up-request" || message.kind === "check-ownership") return;
    const begin = (client: ClientId, counter: Counter, attributes: SpanAttributes = {}): void => {
      const edit = traces.of(room, client, counter);
      if (edit === undefined) return;
      if (open.get(edit) !== undefined) return open.note(edit, "received again");
      open.begin(edit, {
        name: "process owner",
        kind: SPAN_KIND.consumer,
        spanId: randomSpanId(),
        parentSpanId: editSpanId(edit, message.gateway),
        start: traces.now(),
        attributes: {
          ...ON_NATS,
          "messaging.operation.type": "process",
          "messaging.operation.name": "process",
          "messaging.destination.template": "{env}.owner.{room}",
          ...attributes,
        },
        events: [],
      });
    };
    if (message.kind === "resubmit") return begin(message.edit.client, message.edit.counter, { "coroom.edit.resubmitted": true });
    for (const { author, counter } of message.kind === "edits" ? message.edits : [message.edit]) begin(author.client, counter);
  };

  const answer = (room: RoomKey, answer: OwnerReply): void => {
    if (answer.kind === "catch-up") return;
    const edit = traces.of(room, answer.client, answer.counter);
    if (edit === undefined) return;
    if (answer.kind === "acked") return open.end(edit, { attributes: { "coroom.edit.seq": answer.seq, "coroom.edit.repeated": true } });
    open.end(edit, failed(answer.kind === "refused" ? answer.reason : answer.kind));
  };

  /** The returned function is called with the outcome. */
  const append = (room: RoomKey, record: OutgoingRecord): ((outcome: Outcome) => void) | undefined => {
    const committed = runsOf(record.bytes);
    const traced = committed === undefined ? [] : [...traces.among(room, committed.runs)];
    if (committed === undefined || traced.length === 0) return undefined;
    const start: UnixMicros = traces.now();
    return (outcome) => {
      for (const [edit, seq] of traced) {
        const last = outcome === "appended" ? { attributes: { "coroom.edit.seq": seq } } : failed(outcome);
        traces.record(edit, {
          name: "send log",
          kind: SPAN_KIND.producer,
          spanId: appendSpanId(edit, committed.epoch),
          parentSpanId: open.get(edit)?.spanId,
          start,
          end: traces.now(),
          ...last,
          attributes: {
            ...ON_NATS,
            "messaging.operation.type": "send",
            "messaging.operation.name": "send",
            "messaging.destination.template": "{env}.log.{partition}.{room}",
            "messaging.message.id": record.id,
            "messaging.message.body.size": record.bytes.byteLength,
            "messaging.batch.message_count": committed.lastSeq - committed.firstSeq + 1,
            "coroom.epoch": committed.epoch,
            ...last.attributes,
          },
        });
        open.end(edit, last);
      }
    };
  };

  return {
    ...ports,
    inbox: {
      subscribe: (room, receiver) =>
        ports.inbox.subscribe(room, {
          get openEpoch() {
            return receiver.openEpoch;
          },
          receiveMessage: (message, bytes) => {
            receive(room, message);
            receiver.receiveMessage(message, bytes);
          },
          receivePresence: (message) => receiver.receivePresence(message),
        }),
    },
    gateways: {
      ...ports.gateways,
      answer: (gateway, room, message) => {
        ports.gateways.answer(gateway, room, message);
        answer(room, message);
      },
    },
    log: {
      ...ports.log,
      append: (room, record, settled, refused) => {
        const traced = append(room, record);
        if (traced === undefined) return ports.log.append(room, record, settled, refused);
        const abandon = ports.log.append(
          room,
          record,
          (outcome) => {
            traced(outcome.kind);
            settled(outcome);
          },
          refused,
        );
        return (why) => {
          abandon(why);
          traced(`abandoned: ${why}`);
        };
      },
    },
  };
}

function failed(message: string): {
  readonly status: { readonly code: typeof SPAN_FAILED; readonly message: string };
  readonly attributes: SpanAttributes;
} {
  return { status: { code: SPAN_FAILED, message }, attributes: { "error.type": message } };
}
