import { once } from "node:events";
import { connect } from "node:net";
import { Registry } from "prom-client";
import { expect, test } from "vitest";

import { eventually } from "../../test/system/eventually.ts";
import { SILENT_LOG } from "../testing/silent-log.ts";
import { type InternalHttpOptions, serveInternal } from "./internal-http.ts";

const OPTIONS: InternalHttpOptions = {
  host: "127.0.0.1",
  port: 0,
  secret: "a secret of the tests, 32 characters",
  metricsSecret: "a secret of Prometheus",
  bodyBytesMax: 10_000,
  tier: "test",
  portSetting: "COROOM_TEST_PORT",
  registry: new Registry(),
  log: SILENT_LOG,
};

test("[IHT1] an incomplete body fails only its own request: it is not answered, and the next request is", async () => {
  const unhandled: unknown[] = [];
  const onUnhandled = (error: unknown) => void unhandled.push(error);
  process.on("unhandledRejection", onUnhandled);
  const [counted, errors]: [string[], unknown[]] = [[], []];
  let begun = (): void => {};
  const reading = new Promise<void>((resolve) => (begun = resolve));
  let ended = (): void => {};
  const over = new Promise<void>((resolve) => (ended = resolve));
  const server = await serveInternal(
    OPTIONS,
    async ({ body }) => {
      begun();
      try {
        return { status: 200, name: "read", body: String((await body())?.byteLength) };
      } catch (error) {
        errors.push(error);
        throw error;
      } finally {
        ended();
      }
    },
    (name) => void counted.push(name),
  );
  try {
    const line = connect(server.port, OPTIONS.host);
    line.write(`POST /v1/rooms HTTP/1.1\r\nhost: test\r\nx-coroom-internal: ${OPTIONS.secret}\r\ncontent-length: 1000\r\n\r\n0123456789`);
    await reading;
    line.destroy();
    await over;
    const next = await fetch(`http://${OPTIONS.host}:${server.port}/v1/rooms`, {
      method: "POST",
      headers: { "x-coroom-internal": OPTIONS.secret },
      body: "whole",
    });
    expect([next.status, await next.text()]).toEqual([200, "5"]);
    expect(errors).toHaveLength(1);
    expect([unhandled, counted]).toEqual([[], ["read"]]);
  } finally {
    process.off("unhandledRejection", onUnhandled);
    await server.stop();
  }
});

test("[IHT2] an exception in a route fails only its own request: it is logged, counted and answered, and the next request succeeds", async () => {
  const logged: object[] = [];
  const log = { ...SILENT_LOG, error: (facts: object) => void logged.push(facts) };
  const counted: string[] = [];
  const mistake = new RangeError("Maximum call stack size exceeded");
  const answer = ({ method }: { method: string }) => {
    if (method === "PUT") throw mistake;
    return { status: 200, name: "read", body: "fine" };
  };
  const server = await serveInternal({ ...OPTIONS, log }, answer, (name) => void counted.push(name));
  try {
    const ask = (method: string) =>
      fetch(`http://${OPTIONS.host}:${server.port}/v1/rooms`, { method, headers: { "x-coroom-internal": OPTIONS.secret } });
    const failed = await ask("PUT");
    expect([failed.status, await failed.json()]).toEqual([500, { error: "failed", message: expect.stringContaining("log") }]);
    expect([(await ask("GET")).status, logged, counted]).toEqual([
      200,
      [{ method: "PUT", url: "/v1/rooms", cause: mistake }],
      ["failed", "read"],
    ]);
  } finally {
    await server.stop();
  }
});

test("[IHT3] a route is informed when no client waits for its answer any more", async () => {
  let asked: (signal: AbortSignal) => void = () => {};
  const signal = new Promise<AbortSignal>((resolve) => (asked = resolve));
  const server = await serveInternal(
    OPTIONS,
    async (question) => {
      asked(question.signal);
      await new Promise((resolve) => question.signal.addEventListener("abort", resolve));
      return { status: 200, name: "late" };
    },
    () => {},
  );
  try {
    const asker = new AbortController();
    const answer = fetch(`http://${OPTIONS.host}:${server.port}/v1/rooms`, {
      headers: { "x-coroom-internal": OPTIONS.secret },
      signal: asker.signal,
    });
    expect((await signal).aborted).toBe(false);
    asker.abort();
    await expect(answer).rejects.toThrow("aborted");
    await eventually("the route is informed", async () => (await signal).aborted);
  } finally {
    await server.stop();
  }
});

test("[IHT4] a URL and headers as long as gateways accept them are answered", async () => {
  const server = await serveInternal(
    OPTIONS,
    ({ query }) => ({ status: 200, name: "read", body: String(query.getAll("user").length) }),
    () => {},
  );
  const users = Array.from({ length: 1_000 }, (_, index) => `user=${String(index).padStart(14, "0")}`).join("&");
  expect(users.length).toBeGreaterThan(19_000);
  try {
    const answer = await fetch(`http://127.0.0.1:${server.port}/v1/members?${users}`, { headers: { "x-coroom-internal": OPTIONS.secret } });
    expect([answer.status, await answer.text()]).toEqual([200, "1000"]);
  } finally {
    await server.stop();
  }
});

test("[IHT7] a path that begins with two slashes is a path: its request reaches the routes", async () => {
  const server = await serveInternal(
    OPTIONS,
    ({ segments, query }) => ({ status: 404, name: "read", body: JSON.stringify([segments, [...query]]) }),
    () => {},
  );
  try {
    for (const [path, seen] of [
      ["//", [[], []]],
      ["//v1/rooms?a=b", [[], [["a", "b"]]]],
    ] as const) {
      const answer = await fetch(`http://127.0.0.1:${server.port}${path}`, { headers: { "x-coroom-internal": OPTIONS.secret } });
      expect([answer.status, await answer.json()]).toEqual([404, seen]);
    }
  } finally {
    await server.stop();
  }
});

test("[IHT5] only a request with the secret is answered, and metrics only with their own secret; an empty secret admits nobody", async () => {
  const statusesOf = async (options: InternalHttpOptions): Promise<number[]> => {
    const server = await serveInternal(
      options,
      () => ({ status: 200, name: "read" }),
      () => {},
    );
    const ask = async (path: string, headers: Record<string, string>) =>
      (await fetch(`http://127.0.0.1:${server.port}${path}`, { headers })).status;
    try {
      return [
        await ask("/v1/rooms", { "x-coroom-internal": options.secret }),
        await ask("/v1/rooms", { "x-coroom-internal": `${options.secret}!` }),
        await ask("/v1/rooms", {}),
        await ask("/metrics", { authorization: `Bearer ${options.metricsSecret}` }),
        await ask("/metrics", { authorization: `Bearer ${options.metricsSecret}!` }),
        await ask("/metrics", { "x-coroom-internal": options.secret }),
      ];
    } finally {
      await server.stop();
    }
  };
  expect(await statusesOf(OPTIONS)).toEqual([200, 401, 401, 200, 401, 401]);
  expect(await statusesOf({ ...OPTIONS, secret: "", metricsSecret: "" })).toEqual([401, 401, 401, 401, 401, 401]);
});

test("[IHT6] a body above the limit is not read, paths are decoded, and a service that is not ready names the time of a retry", async () => {
  const server = await serveInternal(
    OPTIONS,
    async ({ method, segments, body }) =>
      method === "POST"
        ? { status: 200, name: "read", body: String((await body())?.byteLength) }
        : { status: segments.length === 0 ? 503 : 200, name: "read", body: segments.join("|") },
    () => {},
  );
  const ask = (path: string, body?: string) =>
    fetch(`http://127.0.0.1:${server.port}${path}`, {
      headers: { "x-coroom-internal": OPTIONS.secret },
      ...(body === undefined ? {} : { method: "POST", body }),
    });
  const textOf = async (path: string, body?: string) => (await ask(path, body)).text();
  try {
    const most = "x".repeat(OPTIONS.bodyBytesMax);
    expect([await textOf("/v1/rooms", most), await textOf("/v1/rooms", `${most}x`)]).toEqual(["10000", "undefined"]);
    expect(await textOf("/v1/rooms/a%2Fb%20c")).toBe("rooms|a/b c");
    expect(await textOf("/v2/rooms")).toBe("");
    const [ready, unready] = [await ask("/v1/rooms"), await ask("/v1/%ff")];
    expect([ready, unready].map(({ status, headers }) => [status, headers.get("retry-after"), headers.get("cache-control")])).toEqual([
      [200, null, "no-cache"],
      [503, "1", "no-cache"],
    ]);
  } finally {
    await server.stop();
  }
});

test.each([
  ["requests", "GET /v1/rooms HTTP/1.1\r\nhost: a\r\n\r\n".repeat(500)],
  ["chunks of a body", `POST /v1/rooms HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n${"1\r\nx\r\n".repeat(500)}`],
])("[IHT8] a request without the secret is refused and closes its connection, and the %s that follow are not read", async (_, bytes) => {
  const counted: string[] = [];
  const server = await serveInternal(
    OPTIONS,
    () => ({ status: 200, name: "read" }),
    (name) => void counted.push(name),
  );
  try {
    const stranger = connect(server.port, OPTIONS.host).on("error", () => {}); // A write to a closed connection.
    let received = "";
    stranger.on("data", (answer) => (received += answer.toString()));
    const closed = once(stranger, "close");
    stranger.write(bytes);
    await closed;
    expect([received.split("HTTP/1.1 401").length - 1, counted]).toEqual([1, ["unauthorized"]]);
    expect(received).toContain("connection: close");
  } finally {
    await server.stop();
  }
});
