import { SpanKind, SpanStatusCode } from "@opentelemetry/api";
import { expect, test } from "vitest";

import { encodeSpans, SPAN_FAILED, SPAN_KIND } from "./span.ts";

test("[TRC29] the numbers of kinds and of the status are those of OpenTelemetry", () => {
  const { SERVER: server, PRODUCER: producer, CONSUMER: consumer } = SpanKind;
  expect([SPAN_KIND, SPAN_FAILED]).toEqual([{ server, producer, consumer }, SpanStatusCode.ERROR]);
});

test("[TRC11] spans are written in OTLP's JSON form: integers and times as text, kinds from 1", () => {
  const named = { traceId: "0af7651916cd43dd8448eb211c80319c", spanId: "b7ad6b7169203331", parentSpanId: undefined };
  const written = encodeSpans({ "service.name": "coroom-gateway" }, [
    {
      ...named,
      name: "edit",
      kind: SpanKind.SERVER,
      start: 1_795_000_000_123_456,
      end: 1_795_000_000_123_999,
      attributes: { text: "a", whole: 7, part: 0.5, flag: false },
      events: [{ name: "sent", at: 1_795_000_000_123_457 }],
      status: { code: SpanStatusCode.ERROR, message: "why" },
    },
    { ...named, parentSpanId: "00f067aa0ba902b7", name: "set back", kind: SpanKind.CONSUMER, start: 9, end: 7, attributes: {} },
  ]);
  expect(JSON.parse(written)).toEqual({
    resourceSpans: [
      {
        resource: { attributes: [{ key: "service.name", value: { stringValue: "coroom-gateway" } }] },
        scopeSpans: [
          {
            scope: { name: "coroom" },
            spans: [
              {
                traceId: "0af7651916cd43dd8448eb211c80319c",
                spanId: "b7ad6b7169203331",
                name: "edit",
                kind: 2,
                startTimeUnixNano: "1795000000123456000",
                endTimeUnixNano: "1795000000123999000",
                attributes: [
                  { key: "text", value: { stringValue: "a" } },
                  { key: "whole", value: { intValue: "7" } },
                  { key: "part", value: { doubleValue: 0.5 } },
                  { key: "flag", value: { boolValue: false } },
                ],
                events: [{ timeUnixNano: "1795000000123457000", name: "sent", attributes: [] }],
                status: { code: 2, message: "why" },
              },
              {
                traceId: "0af7651916cd43dd8448eb211c80319c",
                spanId: "b7ad6b7169203331",
                parentSpanId: "00f067aa0ba902b7",
                name: "set back",
                kind: 5,
                startTimeUnixNano: "9000",
                endTimeUnixNano: "9000",
                attributes: [],
                events: [],
              },
            ],
          },
        ],
      },
    ],
  });
});
