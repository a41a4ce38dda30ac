import { expect, onTestFinished, test } from "vitest";

import { eventually } from "../../../test/system/eventually.ts";
import type { HttpAnswer } from "../../http/answers.ts";
import type { HttpRoute } from "../../http/route-table.ts";
import { assert, AssertionError } from "../../../shared/assert.ts";
import { collectUnhandledRejections } from "../../testing/unhandled-rejections.ts";
import { loadUws } from "../sockets/load-uws.ts";
import { listen } from "../sockets/uws-server.ts";
import { serveRoutes } from "./serve-routes.ts";

async function serving(
  answer: () => HttpAnswer | Promise<HttpAnswer>,
  more: readonly HttpRoute[] = [],
): Promise<{ url: string; errors: string[] }> {
  const errors: string[] = [];
  const uws = loadUws();
  const app = uws.App();
  serveRoutes(app, [{ method: "get", path: "/asked", answer }, ...more], {
    allowedOrigins: [],
    clientAddressHeader: "",
    answerStallMsMax: 1_000,
    onStalled: () => {},
    bodiesBytesMax: 1_000_000,
    onBodiesFull: () => {},
    onBodyTooLarge: () => {},
    log: { debug: () => {}, info: () => {}, warn: () => {}, error: (_, message) => void errors.push(message) },
  });
  const { port } = await listen(uws, app, { host: "127.0.0.1", port: 0 });
  onTestFinished(() => void app.close());
  return { url: `http://127.0.0.1:${port}/asked`, errors };
}

test("[HTTP25] a route that fails is answered with 500, and the connection stays open", async () => {
  const { url, errors } = await serving(() => Promise.reject(new Error("NATS is away")));
  const answer = await fetch(url);
  expect([answer.status, await answer.json()]).toEqual([500, { error: "failed", message: expect.stringContaining("try again") }]);
  expect(errors).toEqual(["an HTTP request failed"]);
});

test("[HTTP26] an answer that ends early after its head breaks the connection, so that no client treats it as complete", async () => {
  const broken = async function* (): AsyncGenerator<Uint8Array> {
    yield new Uint8Array(10);
    throw new Error("its source is gone");
  };
  const { url, errors } = await serving(() => ({ status: 200, body: broken(), bodyBytes: 20 }));
  await expect(fetch(url).then((answer) => answer.arrayBuffer())).rejects.toThrow();
  expect(errors).toEqual(["an HTTP answer broke off"]);
});

test("[HTTP36] a failed assertion of a route ends the process, before and after the head of its answer, also if the client has gone", async () => {
  const unhandled = collectUnhandledRejections();
  const mistake = async function* (): AsyncGenerator<Uint8Array> {
    yield new Uint8Array(10);
    assert(false, "a body that breaks its promise");
  };
  let asked = (_signal: AbortSignal): void => {};
  const received = new Promise<AbortSignal>((resolve) => (asked = resolve));
  const { url, errors } = await serving(
    () => assert(false, "a route that breaks its promise") as never,
    [
      { method: "get", path: "/streamed", answer: () => ({ status: 200, body: mistake(), bodyBytes: 20 }) },
      { method: "post", path: "/written", answer: () => assert(false, "a write that breaks its promise") as never },
      {
        method: "get",
        path: "/left",
        answer: async ({ signal }) => {
          asked(signal);
          await new Promise((resolve) => signal.addEventListener("abort", resolve));
          return assert(false, "a route without a client") as never;
        },
      },
    ],
  );
  const client = new AbortController();
  const ask = (path: string, method = "GET"): void => void fetch(new URL(path, url), { method, signal: client.signal }).catch(() => {});
  ask("/asked");
  ask("/streamed");
  ask("/written", "POST");
  ask("/left");
  await received;
  await eventually("the routes that have a client failed", () => unhandled.length === 3);
  client.abort();
  await eventually("the route without a client failed", () => unhandled.length === 4);
  expect(unhandled.every((error) => error instanceof AssertionError)).toBe(true);
  expect(errors).toEqual([]);
});

test("[HTTP27] a GET or HEAD of a path that only accepts writes is answered with 405, although a route serves the files of all paths", async () => {
  const more = [
    { method: "post", path: "/rooms/:room/edits", answer: () => ({ status: 200 }) },
    { method: "del", path: "/rooms/:room", answer: () => ({ status: 200 }) },
    { method: "get", path: "/*", answer: () => ({ status: 200, body: "a file" }) },
  ] as const;
  const { url } = await serving(() => ({ status: 200 }), more);
  const ask = async (path: string, method: string): Promise<unknown[]> => {
    const answer = await fetch(new URL(path, url), { method });
    return [answer.status, answer.headers.get("allow"), await answer.text()];
  };
  expect(await ask("/rooms/notes/edits", "GET")).toEqual([405, "POST", expect.stringContaining('"method-not-allowed"')]);
  expect(await ask("/rooms/notes/edits", "HEAD")).toEqual([405, "POST", ""]);
  expect(await ask("/rooms/notes", "GET")).toEqual([405, "DELETE", expect.stringContaining('"method-not-allowed"')]);
  expect(await ask("/rooms/notes/edits", "POST")).toEqual([200, null, ""]);
  expect(await ask("/rooms/notes/picture.png", "GET")).toEqual([200, null, "a file"]);
});

test("[HTTP29] a status without a body has no content-length, and the connection continues", async () => {
  const more = [
    { method: "get", path: "/known", answer: () => ({ status: 304, headers: { etag: '"1"' } }) },
    { method: "del", path: "/known", answer: () => ({ status: 204 }) },
  ] as const;
  const { url } = await serving(() => ({ status: 200, body: "next" }), more);
  const ask = async (method: string): Promise<unknown[]> => {
    const answer = await fetch(new URL("/known", url), { method });
    return [answer.status, answer.headers.get("content-length"), await answer.text(), await (await fetch(url)).text()];
  };
  expect(await ask("GET")).toEqual([304, null, "", "next"]);
  expect(await ask("HEAD")).toEqual([304, null, "", "next"]);
  expect(await ask("DELETE")).toEqual([204, null, "", "next"]);
  expect(await ask("OPTIONS")).toEqual([204, null, "", "next"]);
});

test("[HTTP34] a proxy stores no answer unless its route allows it, and a browser takes none for a script", async () => {
  const cached = { status: 200, headers: { "cache-control": "public, max-age=300" }, body: "for everybody" };
  const { url } = await serving(
    () => ({ status: 200, body: "of one user" }),
    [
      { method: "get", path: "/public", answer: () => cached },
      { method: "post", path: "/written", answer: () => ({ status: 200 }) },
    ],
  );
  const headersOf = async (path: string, method: string): Promise<unknown[]> => {
    const { headers } = await fetch(new URL(path, url), { method });
    return [headers.get("cache-control"), headers.get("x-content-type-options")];
  };
  for (const method of ["GET", "HEAD"]) expect(await headersOf("/asked", method)).toEqual(["no-store", "nosniff"]);
  for (const [path, method] of [
    ["/written", "POST"],
    ["/written", "GET"],
    ["/nothing", "GET"],
  ] as const)
    expect([path, await headersOf(path, method)]).toEqual([path, ["no-store", "nosniff"]]);
  expect(await headersOf("/public", "GET")).toEqual(["public, max-age=300", "nosniff"]);
});
