/**
 * Checks the end of a subscription as the adapters require it. The same suite runs on a connection to the real server
 * and to the simulator's.
 */

import type { Subscription } from "nats";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

import { connectNats, type NatsConnection } from "../../shared/io/nats.ts";
import { Scheduler } from "../sim/scheduler.ts";
import { SimNatsConnection } from "../sim/sim-nats-connection.ts";
import { SimNats } from "../sim/sim-nats.ts";
import { SimProcess } from "../sim/sim-process.ts";
import { Trace } from "../sim/trace.ts";
import { TcpProxy } from "./tcp-proxy.ts";
import { startRealNats } from "./real-nats.ts";

/** `settle`: advances time until the promise settles. `hold`: holds all messages in both directions. */
type ConnectionCase = {
  readonly connection: NatsConnection;
  settle<Value>(promise: Promise<Value>): Promise<Value>;
  hold(): void;
  cut(): void;
  stop(): Promise<void>;
};

async function realCase(): Promise<ConnectionCase> {
  const server = await startRealNats();
  const proxy = await TcpProxy.to(server.url);
  const connection = await connectNats({ servers: proxy.url, name: "test" });
  return {
    connection,
    settle: (promise) => promise,
    hold: () => proxy.hold(),
    cut: () => proxy.cut(),
    stop: async () => {
      await connection.close();
      await proxy.close();
      await server.stop();
    },
  };
}

function simulatedCase(): Promise<ConnectionCase> {
  const trace = new Trace({ verbose: false });
  const scheduler = new Scheduler(trace, { explains: false });
  const connection = new SimNatsConnection(new SimProcess("test", scheduler, 0), new SimNats(trace), scheduler, () => 1);
  return Promise.resolve({
    connection: connection.nats,
    settle: async (promise) => {
      let settled = false;
      const all = promise.finally(() => (settled = true));
      await scheduler.runUntil(scheduler.now + 10_000, () => settled);
      return all;
    },
    hold: () => [connection.up, connection.down].forEach((pipe) => pipe.hold()),
    cut: () => connection.break(),
    stop: () => Promise.resolve(),
  });
}

describe.each([
  ["the real server", realCase],
  ["the simulator", simulatedCase],
] as const)("over a connection to %s", (_, start) => {
  let connection: ConnectionCase;
  let received: string[];
  let subscription: Subscription;
  beforeEach(async () => {
    connection = await start();
    received = [];
    subscription = connection.connection.subscribe("words", {
      callback: (_error, msg) => void received.push(new TextDecoder().decode(msg.data)),
    });
    await connection.settle(connection.connection.flush());
  });
  afterEach(() => connection.stop());
  const send = (text: string): void => connection.connection.publish("words", new TextEncoder().encode(text));

  test("[LIN1] a draining subscription receives all messages published before the drain, and none published after it", async () => {
    for (const text of ["one", "two"]) send(text);
    const drained = subscription.drain();
    send("three");
    expect([subscription.isDraining(), subscription.isClosed()]).toEqual([true, false]);
    await connection.settle(drained);
    expect([received, subscription.isClosed()]).toEqual([["one", "two"], true]);
    await connection.settle(connection.connection.flush());
    expect(received).toEqual(["one", "two"]);
  });

  test("[LIN2] a subscription whose connection breaks during a drain is closed, and the drain resolves without an error", async () => {
    connection.hold();
    send("one");
    const drained = subscription.drain();
    connection.cut();
    await connection.settle(drained);
    expect([received, subscription.isClosed()]).toEqual([[], true]);
  });

  test("[LIN3] a subscription that has ended receives nothing more, even messages in flight", async () => {
    send("one");
    subscription.unsubscribe();
    await connection.settle(connection.connection.flush());
    expect([received, subscription.isClosed()]).toEqual([[], true]);
  });
});
