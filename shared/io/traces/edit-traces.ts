/**
 * Decides which edits are traced, and the names of their traces. Both are derived from the edit's room, client id and
 * counter, which every hop knows. So no message and no record carries a trace, and a process that continues an edit
 * after a failure continues its trace. Only spans that another process names as a parent have derived names; all others
 * are random.
 */

import { createHash, randomBytes } from "node:crypto";

import { hash32 } from "../../collections/hash.ts";
import type { ClientId, Epoch, GatewayId, RoomKey, Seq } from "../../ids.ts";
import type { CounterRun } from "../../wire/committed-edits.ts";
import type { Counter } from "../../wire/frames.ts";
import { SPAN_FAILED, type Span, type SpanAttributes, type SpanEvent, type UnixMicros } from "./span.ts";
import type { TraceMetrics } from "./trace-metrics.ts";

export type TracedEdit = { readonly room: RoomKey; readonly client: ClientId; readonly counter: Counter; readonly traceId: string };

/** A hop that has begun. `end` receives the facts that are known only at the end. */
export type OpenHop = Omit<Span, "traceId" | "end" | "status" | "events"> & { readonly events: SpanEvent[] };

type EditTracesOptions = { readonly environment: string; readonly share: number };
type EditTracesDeps = {
  readonly send: (span: Span) => void;
  readonly now: () => UnixMicros;
  readonly metrics: Pick<TraceMetrics, "unfinished">;
};

const WHOLE = 2 ** 32;

export class EditTraces {
  readonly #environment: string;
  readonly #below: number;
  readonly #deps: EditTracesDeps;

  constructor({ environment, share }: EditTracesOptions, deps: EditTracesDeps) {
    this.#environment = environment;
    this.#below = share * WHOLE;
    this.#deps = deps;
  }

  /** Undefined: the edit is not traced by any process of the environment with the same or a smaller share. */
  of(room: RoomKey, client: ClientId, counter: Counter): TracedEdit | undefined {
    if (hash32(`${client} ${counter}`) >= this.#below) return undefined;
    return { room, client, counter, traceId: digest(`${this.#environment} ${room} ${client} ${counter}`, TRACE_ID_LETTERS) };
  }

  /** The traced edits among those committed together, with their seqs. */
  *among(room: RoomKey, runs: readonly CounterRun[]): Iterable<readonly [edit: TracedEdit, seq: Seq]> {
    for (const { client, counter, seq, count } of runs) {
      for (let index = 0; index < count; index++) {
        const edit = this.of(room, client, counter + index);
        if (edit !== undefined) yield [edit, (seq + index) as Seq];
      }
    }
  }

  now(): UnixMicros {
    return this.#deps.now();
  }

  record({ room, client, counter, traceId }: TracedEdit, span: Omit<Span, "traceId">): void {
    const attributes: SpanAttributes = { "coroom.room": room, "coroom.client": client, "coroom.edit.counter": counter, ...span.attributes };
    this.#deps.send({ ...span, traceId, attributes });
  }

  /** The outcome is not known, and the process no longer waits for it. */
  recordUnfinished(edit: TracedEdit, hop: OpenHop): void {
    this.#deps.metrics.unfinished.inc();
    this.record(edit, { ...hop, end: this.now(), status: { code: SPAN_FAILED, message: "not followed to its end" } });
  }
}

const TRACE_ID_LETTERS = 32;
const SPAN_ID_LETTERS = 16;

/** The span of an edit at the gateway that received it from its client. */
export function editSpanId({ traceId }: TracedEdit, gateway: GatewayId): string {
  return digest(`${traceId} edit ${gateway}`, SPAN_ID_LETTERS);
}

/** The span of the append that gave an edit its seq. An epoch has one owner, which appends the edit once. */
export function appendSpanId({ traceId }: TracedEdit, epoch: Epoch): string {
  return digest(`${traceId} append ${epoch}`, SPAN_ID_LETTERS);
}

export function randomSpanId(): string {
  return randomBytes(SPAN_ID_LETTERS / 2).toString("hex");
}

function digest(text: string, letters: number): string {
  return createHash("sha256").update(text).digest("hex").slice(0, letters);
}
