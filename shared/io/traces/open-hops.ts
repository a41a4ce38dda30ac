/**
 * Hops of traced edits that have begun and not ended. A hop is the handling of an edit by one process. The number is
 * limited: the oldest hop is released and reported as unfinished.
 */

import type { EditTraces, OpenHop, TracedEdit } from "./edit-traces.ts";
import type { Span, SpanAttributes } from "./span.ts";

type OpenHopsOptions = { readonly openMax: number; readonly openMsMax: number };

/** About 600 bytes each. */
const LIMITS: OpenHopsOptions = { openMax: 10_000, openMsMax: 300_000 };

/** Per hop. Repeats of an edit add no information beyond this. */
const EVENTS_MAX = 32;

export class OpenHops {
  readonly #traces: EditTraces;
  readonly #options: OpenHopsOptions;
  /** By trace, in the order in which they began. */
  readonly #open = new Map<string, { readonly edit: TracedEdit; readonly hop: OpenHop }>();

  constructor(traces: EditTraces, options = LIMITS) {
    this.#traces = traces;
    this.#options = options;
  }

  get size(): number {
    return this.#open.size;
  }

  begin(edit: TracedEdit, hop: OpenHop): void {
    this.#drop(hop.start);
    this.#open.set(edit.traceId, { edit, hop });
  }

  get(edit: TracedEdit): OpenHop | undefined {
    return this.#open.get(edit.traceId)?.hop;
  }

  /** Adds facts to an open hop; has no effect on any other. */
  note(edit: TracedEdit, name: string, attributes: SpanAttributes = {}): void {
    const events = this.get(edit)?.events;
    if (events !== undefined && events.length < EVENTS_MAX) events.push({ name, at: this.#traces.now(), attributes });
  }

  /** `last`: facts that became known at the end, or changed since the hop began. */
  end(edit: TracedEdit, last: Partial<Pick<Span, "name" | "spanId" | "parentSpanId" | "attributes" | "status">>): void {
    const open = this.#open.get(edit.traceId);
    if (open === undefined) return;
    this.#open.delete(edit.traceId);
    const attributes = { ...open.hop.attributes, ...last.attributes };
    this.#traces.record(edit, { ...open.hop, ...last, attributes, end: this.#traces.now() });
  }

  #drop(now: number): void {
    for (const [id, { edit, hop }] of this.#open) {
      if (this.#open.size < this.#options.openMax && now - hop.start < this.#options.openMsMax * 1_000) return;
      this.#open.delete(id);
      this.#traces.recordUnfinished(edit, hop);
    }
  }
}
