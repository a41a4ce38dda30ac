import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";

import { Registry } from "prom-client";
import { afterEach, expect, test } from "vitest";

import type { Log } from "../../process/log.ts";
import type { Span } from "./span.ts";
import { SpanSender } from "./span-sender.ts";
import { traceMetrics } from "./trace-metrics.ts";

type Request = { readonly url: string; readonly authorization: string | undefined; readonly spans: readonly { readonly name: string }[] };

const ends: (() => void)[] = [];
afterEach(() => ends.splice(0).forEach((end) => end()));

async function collector(statuses: readonly number[]): Promise<{ url: string; requests: Request[] }> {
  const requests: Request[] = [];
  const server = createServer((request, response) => {
    void bodyOf(request).then((body) => {
      const { resourceSpans } = JSON.parse(body) as { resourceSpans: [{ scopeSpans: [{ spans: Request["spans"] }] }] };
      requests.push({ url: request.url!, authorization: request.headers.authorization, spans: resourceSpans[0].scopeSpans[0].spans });
      response.writeHead(statuses[requests.length - 1] ?? 200).end("{}");
    });
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  ends.push(() => (server.closeAllConnections(), server.close()));
  return { url: `127.0.0.1:${(server.address() as AddressInfo).port}`, requests };
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part as Buffer);
  return Buffer.concat(parts).toString();
}

function sender(url: string, waitingMax = 1_000) {
  const registry = new Registry();
  const logged: string[] = [];
  const say = (_: object, sentence: string): void => void logged.push(sentence);
  const log: Log = { debug: say, info: say, warn: say, error: say };
  const made = new SpanSender({ url, resource: {}, waitingMax }, { log, metrics: traceMetrics(registry) });
  const counted = async (): Promise<Record<string, number>> => {
    const { values } = await registry.getSingleMetric("coroom_trace_spans_total")!.get();
    return Object.fromEntries(values.map(({ labels, value }) => [String(labels["outcome"]), value]));
  };
  return { sender: made, logged, counted };
}

function span(name: string): Span {
  return { name, kind: 0, traceId: "t", spanId: "s", parentSpanId: undefined, start: 0, end: 0, attributes: {} };
}

test("[TRC12] spans are sent to a path below the endpoint, with its user, in batches of 512, and waiting spans are sent at the stop", async () => {
  const { url, requests } = await collector([]);
  const { sender: to, counted, logged } = sender(`http://ada:p%40ss@${url}/otlp/`);
  for (let count = 0; count < 600; count++) to.send(span(`hop ${count}`));
  await to.stop();
  expect(requests.map(({ spans }) => [spans.length, spans[0]!.name])).toEqual([
    [512, "hop 0"],
    [88, "hop 512"],
  ]);
  expect(requests[0]).toMatchObject({ url: "/otlp/v1/traces", authorization: `Basic ${Buffer.from("ada:p@ss").toString("base64")}` });
  expect([await counted(), logged]).toEqual([{ sent: 600 }, []]);
  await to.stop();
  expect(requests.length).toBe(2);
});

test("[TRC13] the number of waiting spans is limited: further spans are dropped and counted", async () => {
  const { url, requests } = await collector([]);
  const { sender: to, counted } = sender(`http://${url}`, 3);
  for (const name of ["a", "b", "c", "d", "e"]) to.send(span(name));
  await to.stop();
  expect(requests.flatMap(({ spans }) => spans.map(({ name }) => name))).toEqual(["a", "b", "c"]);
  expect(await counted()).toEqual({ sent: 3, dropped: 2 });
});

test("[TRC14] spans that a collector refuses are dropped and counted; the log reports it once, and once that it accepts spans again", async () => {
  const { url, requests } = await collector([503, 500, 200]);
  const { sender: to, counted, logged } = sender(`http://${url}`);
  for (const name of ["a", "b", "c"]) {
    to.send(span(name));
    await to.stop();
  }
  expect([requests.length, await counted()]).toEqual([3, { refused: 2, sent: 1 }]);
  expect(logged).toEqual([
    "the collector does not take traces, and they are lost: is COROOM_TRACES_URL right, and does it run?",
    "the collector takes traces again",
  ]);
});

test("[TRC15] an unreachable collector loses spans and has no other effect", async () => {
  const { url } = await collector([]);
  ends.pop()!();
  const { sender: to, counted, logged } = sender(`http://${url}`);
  to.send(span("a"));
  await to.stop();
  expect([await counted(), logged.length]).toEqual([{ refused: 1 }, 1]);
});
