import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

import { Registry } from "prom-client";
import { expect, test } from "vitest";

import type { Epoch, Position, Seq } from "../../../shared/ids.ts";
import { FakeClock } from "../../../shared/testing/fake-clock.ts";
import { gatewayMetrics } from "../../metrics.ts";
import type { Identity } from "../../sessions/identity.ts";
import { documentReadRoutes } from "./document-routes.ts";
import type { HttpTokens } from "./authenticate.ts";
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

test("[SNAP9] many clients share one snapshot until the room has newer edits", async () => {
  let asked = 0;
  let served = 3;
  const service = createServer((_, response) => {
    asked += 1;
    response.setHeader("x-coroom-seq", String(served)).setHeader("x-coroom-epoch", "1").end("small");
  }).listen(0, "127.0.0.1");
  await once(service, "listening");
  const [clock, metrics] = [new FakeClock(), gatewayMetrics(new Registry())];
  const tokens: HttpTokens = {
    verify: async () => ({
      kind: "valid",
      identity: { tenant: "acme", user: "ann", rooms: ["*"], rights: { read: true, write: false } } as unknown as Identity,
    }),
  };
  const documents = {
    urls: () => [`http://127.0.0.1:${(service.address() as AddressInfo).port}`],
    firstHeartbeat: Promise.resolve(),
    ask: serviceHttp(),
  };
  const at = (epoch: number, seq: number): Position => ({ epoch: epoch as Epoch, seq: seq as Seq });
  let position: Position | undefined = at(1, 3);
  const route = documentReadRoutes(
    { tokens, documents, streamed: new StreamedAnswers({ eachMax: 8, allMax: 60 }, metrics), rooms: { positionOf: () => position } },
    OPTIONS,
    { clock, metrics },
  ).find(({ path }) => path.endsWith("/snapshot"))!;
  /** Sends two requests within one second. Returns the number of calls to the service so far. */
  const second = async (): Promise<number> => {
    for (let reader = 0; reader < 2; reader++)
      await route.answer({
        parameters: ["notes"],
        query: new URLSearchParams(),
        header: (name) => (name === "authorization" ? "Bearer t" : ""),
        body: new Uint8Array(0),
        signal: new AbortController().signal,
        path: "",
        address: undefined,
      });
    clock.turn(1_000);
    return asked;
  };
  try {
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
  } finally {
    service.closeAllConnections();
    service.close();
  }
});
