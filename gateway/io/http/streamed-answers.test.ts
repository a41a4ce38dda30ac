import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { Registry } from "prom-client";
import { expect, test } from "vitest";

import { assert } from "../../../shared/assert.ts";
import type { TenantId, UserId } from "../../../shared/ids.ts";
import { FakeClock } from "../../../shared/testing/fake-clock.ts";
import { until } from "../../../test/contract/real-nats.ts";
import type { HttpAnswer } from "../../http/answers.ts";
import type { RouteRequest } from "../../http/requests.ts";
import { gatewayMetrics } from "../../metrics.ts";
import type { Identity } from "../../sessions/identity.ts";
import { collectUnhandledRejections } from "../../testing/unhandled-rejections.ts";
import type { HttpTokens } from "./authenticate.ts";
import { documentReadRoutes } from "./document-routes.ts";
import { serviceHttp } from "./service-http.ts";
import { StreamedAnswers } from "./streamed-answers.ts";

const PLENTY = { burst: 1_000, perSecond: 1_000 };
const LONG = Buffer.alloc(20_000_000, 7);
const OPTIONS = {
  internalSecret: "",
  eachUser: PLENTY,
  everybody: PLENTY,
  readersMax: 1_000,
  shared: { sharedMs: 1_000, bytesMax: 1_000 },
};

const countsOf = async (registry: Registry): Promise<string[]> =>
  (await registry.metrics()).split("\n").filter((line) => line.startsWith("coroom_gateway_limits_reached_total{"));

type Rig = {
  /** `bearer`: a tenant and a user. */
  readonly ask: (place: string, bearer: string) => Promise<HttpAnswer>;
  /** The status of an answer that the client begins to read. The rest stays unread until `abandon`. */
  readonly read: (place: string, bearer: string) => Promise<number>;
  readonly abandon: () => Promise<void>;
  readonly limits: () => Promise<string[]>;
};

async function withRoutes(allMax: number, use: (rig: Rig) => Promise<void>): Promise<void> {
  const service = createServer(({ url }, response) => void response.end(url?.endsWith("/diff") === true ? LONG : "small")).listen(
    0,
    "127.0.0.1",
  );
  await once(service, "listening");
  const [clock, registry] = [new FakeClock(), new Registry()];
  const metrics = gatewayMetrics(registry);
  const tokens: HttpTokens = {
    verify: async (bearer) => {
      const [tenant, user] = bearer.split(" ");
      return { kind: "valid", identity: { tenant, user, rooms: ["*"], rights: { read: true, write: false } } as unknown as Identity };
    },
  };
  const documents = {
    urls: () => [`http://127.0.0.1:${(service.address() as AddressInfo).port}`],
    firstHeartbeat: Promise.resolve(),
    ask: serviceHttp({ silenceMsMax: 30_000, streamsMax: allMax }),
  };
  const routes = documentReadRoutes(
    { tokens, documents, streamed: new StreamedAnswers({ eachMax: 8, allMax }, metrics), rooms: { positionOf: () => undefined } },
    OPTIONS,
    { clock, metrics },
  );
  const ask: Rig["ask"] = async (place, bearer) =>
    routes
      .find(({ path }) => path.endsWith(place))!
      .answer({
        parameters: ["notes"],
        query: new URLSearchParams(),
        header: (name) => (name === "authorization" ? `Bearer ${bearer}` : ""),
        body: new Uint8Array(1),
        signal: new AbortController().signal,
        path: "",
        address: undefined,
      } satisfies RouteRequest);
  const reading: AsyncIterator<Uint8Array>[] = [];
  const read: Rig["read"] = async (place, bearer) => {
    const { status, body } = await ask(place, bearer);
    if (status !== 200) return status;
    const begun = (body as AsyncIterable<Uint8Array>)[Symbol.asyncIterator]();
    reading.push(begun);
    await begun.next();
    return status;
  };
  const abandon = async (): Promise<void> => {
    for (const one of reading.splice(0)) await one.return?.();
  };
  try {
    await use({ ask, read, abandon, limits: () => countsOf(registry) });
  } finally {
    service.closeAllConnections();
    service.close();
  }
}

test("[STM1] shared answers are served even if very many clients read long answers slowly", () =>
  withRoutes(60, async ({ ask, read, abandon, limits }) => {
    const statuses: number[] = [];
    for (let reader = 0; reader < 64; reader++) statuses.push(await read("/diff", `tenant${reader % 16} user`));
    expect(await ask("/snapshot", "acme ann")).toMatchObject({ status: 200, body: new Uint8Array(Buffer.from("small")) });
    expect(statuses.filter((status) => status === 429)).toHaveLength(11);
    expect(await limits()).toEqual(['coroom_gateway_limits_reached_total{limit="gateway-streams"} 11']);
    await abandon();
    expect((await ask("/diff", "acme ann")).status).toBe(200);
  }));

test("[STM3] however many users of two tenants read slowly, a user of another tenant gets a long answer", () =>
  withRoutes(16, async ({ read }) => {
    const streams = async (tenant: string): Promise<number> => {
      let served = 0;
      for (let reader = 0; reader < 20; reader++) if ((await read("/diff", `${tenant} user${reader}`)) === 200) served += 1;
      return served;
    };
    expect([await streams("evil"), await streams("worse")]).toEqual([12, 2]);
    expect(await read("/diff", "acme ann")).toBe(200);
    expect(await read("/diff", "acme ann"), "a second one").toBe(429);
    expect(await read("/diff", "initech bob")).toBe(200);
    expect(await read("/diff", "globex cy"), "all are taken").toBe(429);
  }));

test("[STM2] a user has a limited number of streams, each until it is read or abandoned; another stream is refused", async () => {
  const registry = new Registry();
  const streamed = new StreamedAnswers({ eachMax: 2, allMax: 100 }, gatewayMetrics(registry));
  let open = 0;
  async function* parts(): AsyncGenerator<Uint8Array> {
    open += 1;
    try {
      yield new Uint8Array(1);
      yield new Uint8Array(1);
    } finally {
      open -= 1;
    }
  }
  const reader = (user: string) => ({ tenant: "acme" as TenantId, user: user as UserId });
  const passed = (user: string): HttpAnswer => streamed.pass(reader(user), { status: 200, body: parts() });
  const bodyOf = ({ body }: HttpAnswer) => (body as AsyncIterable<Uint8Array>)[Symbol.asyncIterator]();
  const [taken, left] = [bodyOf(passed("ann")), bodyOf(passed("ann"))];
  await Promise.all([taken.next(), left.next()]);
  const refused = passed("ann");
  expect([refused.status, refused.headers?.["retry-after"]]).toEqual([429, "5"]);
  expect(passed("bob").status).toBe(200);
  await until(() => open === 2, "the stream above the limit to be released");
  expect(streamed.pass(reader("ann"), { status: 200, body: new Uint8Array(9) }).status).toBe(200);

  for (let part = await taken.next(); part.done !== true;) part = await taken.next();
  await left.return?.();
  expect([passed("ann").status, passed("ann").status, passed("ann").status]).toEqual([200, 200, 429]);
  expect(await countsOf(registry)).toEqual(['coroom_gateway_limits_reached_total{limit="streams"} 2']);
});

test("[STM4] while a refused stream is discarded, the end of its service is ignored and a failed assertion ends the process", async () => {
  const unhandled = collectUnhandledRejections();
  const streamed = new StreamedAnswers({ eachMax: 0, allMax: 100 }, gatewayMetrics(new Registry()));
  async function* failing(fail: () => never): AsyncGenerator<Uint8Array> {
    yield fail();
  }
  const bodies = [
    failing(() => {
      throw new Error("the service has ended");
    }),
    failing(() => assert(false, "a body that breaks its promise") as never),
  ];
  for (const body of bodies) streamed.pass({ tenant: "acme" as TenantId, user: "ann" as UserId }, { status: 200, body });
  await until(() => unhandled.length > 0, "the failed assertion");
  expect(unhandled.map(String)).toEqual([expect.stringContaining("a body that breaks its promise")]);
});
