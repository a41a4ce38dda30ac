import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";

import { Registry } from "prom-client";
import { expect, onTestFinished, test } from "vitest";

import type { Epoch, Position, Seq } from "../../../shared/ids.ts";
import { FakeClock } from "../../../shared/testing/fake-clock.ts";
import type { Rate } from "../../limits/reader-rates.ts";
import { gatewayMetrics } from "../../metrics.ts";
import type { Identity } from "../../sessions/identity.ts";
import { documentReadRoutes } from "./document-routes.ts";
import type { HttpTokens } from "./authenticate.ts";
import { bytesOf } from "./call-services.ts";
import { serviceHttp } from "./service-http.ts";
import { StreamedAnswers } from "./streamed-answers.ts";

const PLENTY = { burst: 1_000, perSecond: 1_000 };
const OPTIONS = {
  internalSecret: "",
  eachUser: PLENTY,
  everybody: PLENTY,
  readersMax: 1_000,
  shared: { sharedMs: 1_000, bytesMax: 1_000 },
};

/** A gateway with one document service, and clients whose token is the name of their tenant. */
async function gateway(answer: RequestListener, positionOf: () => Position | undefined, everybody: Rate = PLENTY) {
  const service = createServer(answer).listen(0, "127.0.0.1");
  onTestFinished(() => {
    service.closeAllConnections();
    service.close();
  });
  await once(service, "listening");
  const [clock, metrics] = [new FakeClock(), gatewayMetrics(new Registry())];
  const tokens: HttpTokens = {
    verify: async (tenant) => ({
      kind: "valid",
      identity: { tenant, user: "ann", rooms: ["*"], rights: { read: true, write: false } } as unknown as Identity,
    }),
  };
  const documents = {
    urls: () => [`http://127.0.0.1:${(service.address() as AddressInfo).port}`],
    firstHeartbeat: Promise.resolve(),
    ask: serviceHttp(),
  };
  const streamed = new StreamedAnswers({ eachMax: 8, allMax: 60 }, metrics);
  const routes = documentReadRoutes({ tokens, documents, streamed, rooms: { positionOf } }, { ...OPTIONS, everybody }, { clock, metrics });
  const read = (place: string, headers: Readonly<Record<string, string>>) =>
    routes
      .find(({ path }) => path.endsWith(`/${place}`))!
      .answer({
        parameters: ["notes"],
        query: new URLSearchParams(),
        header: (name) => headers[name] ?? "",
        body: new Uint8Array(0),
        signal: new AbortController().signal,
        path: "",
        address: undefined,
      });
  return { read, clock };
}

test("[SNAP9] many clients share one snapshot until the room has newer edits", async () => {
  let asked = 0;
  let served = 3;
  const at = (epoch: number, seq: number): Position => ({ epoch: epoch as Epoch, seq: seq as Seq });
  let position: Position | undefined = at(1, 3);
  const { read, clock } = await gateway(
    (_, response) => {
      asked += 1;
      response.setHeader("x-coroom-seq", String(served)).setHeader("x-coroom-epoch", "1").end("small");
    },
    () => position,
  );
  /** Sends two requests within one second. Returns the number of calls to the service so far. */
  const second = async (): Promise<number> => {
    for (let reader = 0; reader < 2; reader++) await read("snapshot", { authorization: "Bearer acme" });
    clock.turn(1_000);
    return asked;
  };
  expect([await second(), await second(), await second()]).toEqual([1, 1, 1]);
  position = at(1, 4);
  expect([await second(), await second()], "an edit arrived").toEqual([1, 2]);
  expect(await second(), "the service has not read it yet").toBe(3);
  served = 4;
  expect([await second(), await second()], "the service has read it").toEqual([4, 4]);
  position = at(2, 4);
  expect([await second(), await second()], "of another epoch").toEqual([4, 5]);
  position = undefined;
  expect([await second(), await second()], "the room is not followed here").toEqual([5, 6]);
});

test("[SNAP10] a shared document is only for readers of the same tenant and place that accept the same encoding", async () => {
  const { read } = await gateway(
    ({ headers, url }, response) => response.end(`${headers["x-coroom-tenant"]} ${url} ${headers["x-coroom-accept"] ?? "plain"}`),
    () => undefined,
  );
  const textOf = async (tenant: string, place: string, encoding: string): Promise<string> => {
    const { body } = await read(place, { "authorization": `Bearer ${tenant}`, "accept-encoding": encoding });
    return new TextDecoder().decode(await bytesOf(body!));
  };
  const texts = await Promise.all(
    ["acme", "globex"].flatMap((tenant) => [
      textOf(tenant, "snapshot", "gzip"),
      textOf(tenant, "snapshot", "identity"),
      textOf(tenant, "text", "gzip"),
    ]),
  );
  expect(texts).toEqual(
    ["acme", "globex"].flatMap((tenant) => [
      `${tenant} /v1/rooms/notes/snapshot gzip`,
      `${tenant} /v1/rooms/notes/snapshot plain`,
      `${tenant} /v1/rooms/notes/text gzip`,
    ]),
  );
});

test("[SNAP11] a tenant that fetches as many snapshots as it can leaves some to another tenant", async () => {
  const { read, clock } = await gateway(
    (_, response) => void response.end("small"),
    () => undefined,
    { burst: 64, perSecond: 16 },
  );
  const fetchAll = async (): Promise<number> => {
    for (let fetched = 0; ; fetched++) if ((await read("snapshot", { authorization: "Bearer evil" })).status === 429) return fetched;
  };
  expect(await fetchAll(), "alone").toBe(64);
  clock.turn(1_000);
  expect(await fetchAll()).toBe(10);
  expect((await read("snapshot", { authorization: "Bearer acme" })).status).toBe(200);
});

test("[SNAP12] a document whose service breaks off while it is read into memory is answered with 503, and asked for again", async () => {
  let asked = 0;
  const { read } = await gateway(
    (_, response) => {
      asked += 1;
      if (asked > 1) return void response.end("whole");
      response.writeHead(200, { "content-length": "100" }).write("part");
      setTimeout(() => response.destroy(), 20);
    },
    () => undefined,
  );
  const headers = { authorization: "Bearer acme" };
  expect(await read("snapshot", headers)).toMatchObject({ status: 503, headers: { "retry-after": "1" } });
  expect((await read("snapshot", headers)).status).toBe(200);
});
