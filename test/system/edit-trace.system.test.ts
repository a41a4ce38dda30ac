/** Edits through real processes of each role, as a tracing backend receives them. */

import { afterAll, beforeAll, expect, test } from "vitest";

import { roomKey, type RoomId, type TenantId } from "../../shared/ids.ts";
import { SystemCluster } from "./cluster.ts";
import { eventually } from "./eventually.ts";
import { ownerOf } from "./owner.ts";
import { insertion, Person } from "./person.ts";
import { type CollectedSpan, TraceCollector } from "./trace-collector.ts";

const ROOM = "traced";
/** Maximum difference between the clocks of two processes. */
const OFF_NANOS_MAX = 10_000_000n;
/** Span kinds of OTLP. */
const [SERVER, PRODUCER, CONSUMER] = [2, 4, 5];

let collector: TraceCollector;
beforeAll(async () => {
  collector = await TraceCollector.start();
});
afterAll(() => collector.stop());

function start(share: string): Promise<SystemCluster> {
  return SystemCluster.start({
    gateways: 2,
    roomServers: 1,
    leaderboards: 1,
    // Long limits, so that no edit is resent and no process counts as dead on a slow machine.
    settings: {
      TRACES_URL: collector.url,
      TRACES_SHARE: share,
      HEARTBEAT_MS: "500",
      SERVER_SILENCE_MS_MAX: "30000",
      OWNER_SILENCE_MS_MAX: "30000",
    },
  });
}

/** Ada writes on one gateway, and Grace reads on another. */
async function write(cluster: SystemCluster, texts: readonly string[]): Promise<void> {
  const ada = await Person.enter(cluster, cluster.gateways[0]!, ROOM, "ada", { merging: false });
  const grace = await Person.enter(cluster, cluster.gateways[1]!, ROOM, "grace", { merging: false });
  await eventually("both are in the room", () => ada.room.synced && grace.room.synced);
  for (const text of texts) {
    ada.type(insertion(text));
    await ada.untilSaved();
  }
  await eventually("Grace has it", () => grace.text.length === texts.join("").length);
  ada.leave();
  grace.leave();
}

test("[TRC1] each edit is one trace with every hop once, under the hop that caused it, and no hop begins before its cause", async () => {
  const cluster = await start("1");
  const secret = "what nobody is shown";
  await write(cluster, [secret, "and more"]);
  const spansOf = (counter: string): CollectedSpan[] =>
    collector.spans.filter(({ attributes }) => attributes["coroom.edit.counter"] === counter);
  await eventually("all hops of both were sent", () => spansOf("1").length === 7 && spansOf("2").length === 7);
  await cluster.stop();
  expect(collector.spans.length).toBe(14); // Nothing is sent at the end.

  for (const counter of ["1", "2"]) {
    const spans = spansOf(counter);
    const nameOf = ({ service, name }: CollectedSpan): string => `${service} ${name}`;
    const parentOf = (span: CollectedSpan): CollectedSpan | undefined => spans.find(({ spanId }) => spanId === span.parentSpanId);
    expect(spans.map((span) => [nameOf(span), span.kind, parentOf(span)?.name, span.failure]).sort()).toEqual([
      ["coroom-document-service process log", CONSUMER, "send log", undefined],
      ["coroom-gateway edit", SERVER, undefined, undefined],
      ["coroom-gateway process edits.out", CONSUMER, "send log", undefined],
      ["coroom-gateway process edits.out", CONSUMER, "send log", undefined],
      ["coroom-leaderboard process log", CONSUMER, "send log", undefined],
      ["coroom-room-server process owner", CONSUMER, "edit", undefined],
      ["coroom-room-server send log", PRODUCER, "process owner", undefined],
    ]);
    expect(new Set(spans.map(({ traceId }) => traceId)).size).toBe(1);
    expect(new Set(spans.map(({ spanId }) => spanId)).size).toBe(7);
    expect(new Set(spans.map(({ attributes }) => attributes["coroom.room"]))).toEqual(new Set([`default.${ROOM}`]));
    expect(new Set(spans.map(({ attributes }) => attributes["coroom.edit.seq"]))).toEqual(new Set([counter]));
    const early = spans.filter((span) => span.startNanos + OFF_NANOS_MAX < (parentOf(span)?.startNanos ?? 0n));
    expect(early.map(nameOf)).toEqual([]);
    const [edit, append] = ["edit", "send log"].map((name) => spans.find((span) => span.name === name)!);
    expect(edit!.endNanos + OFF_NANOS_MAX >= append!.startNanos).toBe(true);
    expect(edit!.events).toEqual(["sent to the owner"]);
  }
  expect(new Set(collector.spans.map(({ traceId }) => traceId)).size).toBe(2);
  expect(JSON.stringify(collector.spans, (_, value: unknown) => (typeof value === "bigint" ? String(value) : value))).not.toContain(secret);
});

test("[TRC26] an edit whose owner pauses continues under the next owner in the same trace, and the first owner reports that it did not append it", async () => {
  collector.spans.length = 0;
  const cluster = await SystemCluster.start({
    gateways: 1,
    roomServers: 2,
    // Only the paused process counts as dead.
    settings: {
      TRACES_URL: collector.url,
      TRACES_SHARE: "1",
      HEARTBEAT_MS: "500",
      SERVER_SILENCE_MS_MAX: "3000",
      OWNER_SILENCE_MS_MAX: "3000",
    },
  });
  const ada = await Person.enter(cluster, cluster.gateways[0]!, ROOM, "ada", { merging: false });
  ada.type(insertion("before"));
  await ada.untilSaved();

  const paused = await ownerOf(cluster, roomKey("default" as TenantId, ROOM as RoomId));
  paused.signal("SIGSTOP");
  ada.type(insertion("while"));
  await ada.untilSaved();
  paused.signal("SIGCONT");
  const spans = (): CollectedSpan[] => collector.spans.filter(({ attributes }) => attributes["coroom.edit.counter"] === "2");
  const appends = (): (string | undefined)[] => spans().flatMap(({ name, failure }) => (name === "send log" ? [failure] : []));
  await eventually("the former owner has reported its append too", () => appends().length === 2);
  ada.leave();
  await cluster.stop();

  const [failed, succeeded] = appends().sort();
  // The log refuses its append, or the ownership check after Ada's catch-up ends its ownership before that.
  expect(["fenced", "abandoned: fenced"]).toContain(failed);
  expect(succeeded).toBe(undefined);
  expect(new Set(spans().map(({ traceId }) => traceId)).size).toBe(1);
  const [edit, ...others] = spans().filter(({ parentSpanId }) => parentSpanId === undefined);
  expect([edit!.name, edit!.failure, others]).toEqual(["edit", undefined, []]);
  expect(edit!.events.filter((event) => event === "sent to the owner").length).toBeGreaterThan(1);
  const known = spans().map(({ spanId }) => spanId);
  expect(spans().filter(({ parentSpanId }) => parentSpanId !== undefined && !known.includes(parentSpanId))).toEqual([]);
  expect(new Set(known).size).toBe(known.length);
});

test("[TRC2] nothing is sent when the share of traces is 0", async () => {
  collector.spans.length = 0;
  const cluster = await start("0");
  await write(cluster, ["nobody", "looks"]);
  await cluster.stop(); // Everything that waits is sent now.
  expect(collector.spans).toEqual([]);
});
