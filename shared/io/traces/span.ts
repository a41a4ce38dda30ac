/** One completed hop of an edit, in OpenTelemetry's terms and in OTLP's JSON form. */

import type { SpanKind, SpanStatus } from "@opentelemetry/api";

/** OpenTelemetry's numbers. Its package has 51 modules, which each process would load at its start for these alone. */
export const SPAN_KIND = { server: 1, producer: 3, consumer: 4 } as const satisfies Record<string, SpanKind>;
export const SPAN_FAILED = 2 satisfies SpanStatus["code"];

/** Microseconds since the Unix epoch. */
export type UnixMicros = number;

/** Like OpenTelemetry's attributes, but without lists. */
export type SpanAttributes = Readonly<Record<string, string | number | boolean>>;

export type SpanEvent = { readonly name: string; readonly at: UnixMicros; readonly attributes?: SpanAttributes };

export type Span = {
  readonly name: string;
  readonly kind: SpanKind;
  readonly traceId: string;
  readonly spanId: string;
  /** Undefined: this span is the first of the trace. */
  readonly parentSpanId: string | undefined;
  readonly start: UnixMicros;
  readonly end: UnixMicros;
  readonly attributes: SpanAttributes;
  readonly events?: readonly SpanEvent[];
  readonly status?: SpanStatus;
};

/** Encodes spans of one process role, which `resource` identifies. */
export function encodeSpans(resource: SpanAttributes, spans: readonly Span[]): string {
  const scopeSpans = [{ scope: { name: "coroom" }, spans: spans.map(spanJson) }];
  return JSON.stringify({ resourceSpans: [{ resource: { attributes: attributesJson(resource) }, scopeSpans }] });
}

function spanJson({ name, kind, traceId, spanId, parentSpanId, start, end, attributes, events = [], status }: Span): object {
  return {
    traceId,
    spanId,
    ...(parentSpanId === undefined ? {} : { parentSpanId }),
    name,
    kind: kind + 1, // OTLP's kinds begin with "unspecified", which the API does not have.
    startTimeUnixNano: nanos(start),
    endTimeUnixNano: nanos(Math.max(start, end)), // The date may have been set back meanwhile.
    attributes: attributesJson(attributes),
    events: events.map((event) => ({
      timeUnixNano: nanos(event.at),
      name: event.name,
      attributes: attributesJson(event.attributes ?? {}),
    })),
    ...(status === undefined ? {} : { status }),
  };
}

/** Text, because a double cannot hold it exactly. */
function nanos(micros: UnixMicros): string {
  return `${Math.round(micros)}000`;
}

function attributesJson(attributes: SpanAttributes): object[] {
  return Object.entries(attributes).map(([key, value]) => ({ key, value: valueJson(value) }));
}

function valueJson(value: SpanAttributes[string]): object {
  if (typeof value === "boolean") return { boolValue: value };
  if (typeof value === "string") return { stringValue: value };
  return Number.isInteger(value) ? { intValue: String(value) } : { doubleValue: value };
}
