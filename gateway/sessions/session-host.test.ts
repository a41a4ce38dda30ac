import { Registry } from "prom-client";
import { expect, test } from "vitest";

import type { Millis, TenantId, UserId } from "../../shared/ids.ts";
import type { ClientAddress } from "../../shared/limits/client-address.ts";
import type { Log } from "../../shared/process/log.ts";
import { readSettings } from "../../shared/settings/settings.ts";
import { FakeClock } from "../../shared/testing/fake-clock.ts";
import { SILENT_LOG } from "../../shared/testing/silent-log.ts";
import { decodeFrame, encodeFrame } from "../../shared/wire/codec.ts";
import { PROTOCOL_VERSION } from "../../shared/wire/frames.ts";
import { messagesOf } from "../../shared/wire/parts.ts";
import { gatewaySettings } from "../config.ts";
import { Connections } from "../connections.ts";
import { gatewayMetrics } from "../metrics.ts";
import type { ConnectionId } from "../ports.ts";
import type { RefusedConnection } from "../limits/refused-connections.ts";
import { sessionOptions } from "../settings/sessions.ts";
import { UsageMeter } from "../usage/usage-meter.ts";
import type { Identity } from "./identity.ts";
import { SessionHost } from "./session-host.ts";

const [ann, bob, cid, dan] = [1, 2, 3, 4] as ConnectionId[] as [ConnectionId, ConnectionId, ConnectionId, ConnectionId];
const BANNED = "203.0.113.7" as ClientAddress;
const BAN = { close: "banned", message: "banned", retryAfterMs: 1 } as const;
const NO_FRAME = new Uint8Array(0);
const ANY_IDENTITY: Identity = {
  tenant: "acme" as TenantId,
  user: "ann" as UserId,
  name: "Ann",
  rooms: ["*"],
  rights: { read: true, write: true, admin: false, award: false, boards: false },
  expiresAt: 3_600_000 as Millis,
};

function helloOf(token: string): Uint8Array {
  return encodeFrame({ type: "hello", version: PROTOCOL_VERSION, token, agent: "test" });
}

/**
 * Admits one connection at once, and one each second after that. Two connections may wait, with this many bytes of
 * frames.
 */
function host(connectQueueBytesMax = 100_000, log: Log = SILENT_LOG) {
  const [seen, refused]: [string[], string[]] = [[], []];
  const registry = new Registry();
  const clock = new FakeClock();
  const nothing = (): void => {};
  const addresses = new Map<ConnectionId, ClientAddress | undefined>();
  const banned = new Set<ClientAddress | undefined>([BANNED]);
  const banOf = (address: ClientAddress | undefined) => (banned.has(address) ? BAN : undefined);
  const ports = {
    sockets: {
      send: (connection: ConnectionId, bytes: Uint8Array) => void (decodeFrame(bytes)?.type === "pong" && seen.push(`${connection} pong`)),
      close: (connection: ConnectionId, close: string) => seen.push(`${connection} ${close}`),
    },
    tokens: {
      verify: (token: string) => (
        seen.push(`verify ${token}`),
        token === "late"
          ? Promise.resolve({ kind: "expired", tenant: "acme" })
          : token === "valid"
            ? Promise.resolve({ kind: "valid", identity: ANY_IDENTITY })
            : new Promise(nothing)
      ),
    },
    refused: { receiveRefusal: ({ close, tenant, address }: RefusedConnection) => void refused.push(`${close} ${tenant} ${address}`) },
    rooms: { receive: nothing, closeIdle: nothing, backbone: { lostAt: undefined } },
    usage: new UsageMeter({ tenantsMax: 10 }),
    boards: { receiveGone: nothing },
    quotas: {
      receiveConnection: (connection: ConnectionId, address: ClientAddress | undefined) => addresses.set(connection, address),
      receiveDisconnection: nothing,
      takeUnplaced: nothing,
      onCredit: 0,
      admit: nothing,
      addressOf: (connection: ConnectionId) => addresses.get(connection),
    },
    discipline: { receiveConnection: banOf, receiveAddress: banOf, receiveIdentity: nothing, receiveClose: nothing },
    dispatch: nothing,
  };
  const sessions: ConstructorParameters<typeof SessionHost>[1] = new Connections();
  const session = sessionOptions(readSettings(gatewaySettings, { flags: {}, env: {} }), {
    clientIdOf: () => "c" as never,
    restrictionOn: () => undefined,
  });
  const clients = new SessionHost(
    ports as never,
    sessions,
    {
      name: "gw",
      session,
      backboneLossMsMax: 1_000,
      admission: { connectsPerSecondMax: 1, connectQueueMax: 2, connectQueueBytesMax },
      frames: { messageBytesMax: 16_384, frameBytesMax: 100_000, partialBytesMax: 40_000 },
    },
    { clock, endOfTurn: nothing, log, metrics: gatewayMetrics(registry) },
  );
  const admitted = (): ConnectionId[] => [...sessions.keys()];
  return { clients, seen, refused, registry, clock, admitted, banned };
}

test("[LOB1] the gateway admits a queued connection when its turn comes, and answers the frames that waited in their order", () => {
  const { clients, seen, clock, admitted } = host();
  for (const connection of [ann, bob]) clients.receiveConnection(connection, undefined);
  const lent = helloOf("first");
  clients.receiveFrame(bob, lent);
  lent.fill(9); // The socket lends the bytes only for the call.
  clients.receiveFrame(bob, helloOf("second"));
  clock.turn(500);
  expect([admitted(), seen]).toEqual([[ann], []]);
  clock.turn(600);
  expect([admitted(), seen]).toEqual([
    [ann, bob],
    ["verify first", "2 badFrame"],
  ]);
});

test("[LOB2] a queued connection that closes is never admitted, and the next one takes its turn", () => {
  const { clients, seen, clock, admitted } = host();
  for (const connection of [ann, bob, cid, dan]) clients.receiveConnection(connection, undefined);
  expect(seen).toEqual(["4 overloaded"]);
  clients.receiveDisconnection(bob);
  clock.turn(1_100);
  expect(admitted()).toEqual([ann, cid]);
});

test("[LOB3] the gateway rejects a queued connection whose frames do not fit", () => {
  const { clients, seen, clock, admitted } = host(410);
  for (const connection of [ann, bob, cid]) clients.receiveConnection(connection, undefined);
  clients.receiveFrame(bob, new Uint8Array(8));
  clients.receiveFrame(cid, new Uint8Array(3));
  expect([admitted(), seen]).toEqual([[ann], ["3 overloaded"]]);
  clients.receiveFrame(cid, NO_FRAME);
  clock.turn(1_100);
  expect(admitted()).toEqual([ann, bob]);
});

test("[LOB5] a banned address takes no turn and no place in the queue, however many of its connections arrive", () => {
  const { clients, seen, refused, clock, admitted } = host();
  for (const connection of [10, 11, 12, 13] as ConnectionId[]) clients.receiveConnection(connection, BANNED);
  for (const connection of [ann, bob]) clients.receiveConnection(connection, undefined);
  clients.receiveConnection(14 as ConnectionId, BANNED);
  clients.receiveConnection(cid, undefined);
  clock.turn(1_100);
  expect(admitted()).toEqual([ann, bob]);
  expect(seen).toEqual(["10 banned", "11 banned", "12 banned", "13 banned", "14 banned"]);
  expect(refused).toEqual(seen.map(() => `banned undefined ${BANNED}`));
});

test("[LOB6] a connection that is closed before its token is accepted counts as refused, with the tenant of a token that has expired", async () => {
  const { clients, refused, registry, clock } = host();
  clients.receiveConnection(ann, "198.51.100.4" as ClientAddress);
  clients.receiveFrame(ann, helloOf("late"));
  await Promise.resolve();
  await Promise.resolve();
  clients.receiveConnection(bob, undefined);
  clock.turn(1_100);
  clients.receiveFrame(bob, NO_FRAME);
  clients.stop(); // "goingAway" is no refusal.
  expect(refused).toEqual(["tokenExpired acme 198.51.100.4", "otherProtocol undefined undefined"]);
  expect(await registry.metrics()).toMatch(/^coroom_gateway_refused_connections_total\{close="tokenExpired"\} 1$/m);
});

test("[LOB7] a queued connection is rejected at its turn if its address was banned meanwhile, or if the gateway stops", () => {
  const { clients, seen, refused, clock, admitted, banned } = host();
  const address = "198.51.100.4" as ClientAddress;
  clients.receiveConnection(ann, undefined);
  clients.receiveConnection(bob, address);
  clients.receiveConnection(cid, undefined);
  banned.add(address);
  clients.receiveFrame(bob, helloOf("of bob"));
  clock.turn(1_100);
  expect([seen, refused]).toEqual([["2 banned"], [`banned undefined ${address}`]]);
  void clients.drain(60_000);
  clock.turn(1_000);
  expect(seen.slice(1)).toEqual(["1 goingAway", "3 goingAway"]);
  expect(admitted()).toEqual([ann]);
});

test("[LOB8] the number of waiting connections is current after each arrival, admission, rejection and disconnection", async () => {
  const { clients, registry, clock } = host(410);
  const waiting = async () => Number(/connects_waiting (\d+)/.exec(await registry.metrics())![1]);
  for (const connection of [ann, bob, cid]) clients.receiveConnection(connection, undefined);
  expect(await waiting()).toBe(2);
  clients.receiveDisconnection(bob);
  expect(await waiting()).toBe(1);
  clients.receiveConnection(dan, undefined);
  clients.receiveFrame(dan, new Uint8Array(300));
  expect(await waiting()).toBe(1);
  clock.turn(1_100);
  expect(await waiting()).toBe(0);
  expect(await registry.metrics()).toContain('coroom_gateway_turned_away_total{reason="herd"} 1\n');
});

const partsOf = (frame: Uint8Array): readonly Uint8Array[] => messagesOf(frame, { frameBytesMax: 16_384, partedFrameBytesMax: 100_000 });

const pingOf = (nonce: number): Uint8Array => encodeFrame({ type: "ping", nonce });

/** Ann and Bob have received WELCOME. */
async function welcomed() {
  const all = host();
  for (const connection of [ann, bob]) {
    all.clients.receiveConnection(connection, undefined);
    all.clients.receiveFrame(connection, helloOf("valid"));
  }
  all.clock.turn(1_100);
  await new Promise(setImmediate);
  all.seen.length = 0;
  return all;
}

test("[WHF4] a frame between the parts of another is received before it", async () => {
  const { clients, seen } = await welcomed();
  const [first, last] = partsOf(encodeFrame({ type: "renew", token: "x".repeat(20_000) })) as readonly [Uint8Array, Uint8Array];
  for (const message of [first, pingOf(1), last]) clients.receiveFrame(ann, message);
  expect(seen).toEqual(["1 pong", `verify ${"x".repeat(20_000)}`]);
});

test("[WHF7] a connection that uploads one frame in parts for longer than the limit of silence stays open, and is closed when no part comes", async () => {
  const { clients, seen, clock } = await welcomed();
  const [first, ...more] = partsOf(encodeFrame({ type: "renew", token: "x".repeat(60_000) }));
  clients.start();
  clock.turn(60_000);
  clients.receiveFrame(ann, first!);
  clock.turn(60_000);
  expect(seen).toEqual(["2 silent"]);
  clients.receiveFrame(ann, more[0]!);
  clock.turn(76_000);
  expect(seen).toEqual(["2 silent", "1 silent"]);
});

test("[WHF5] above the limit of all unfinished frames, the gateway closes the connection with the oldest and receives nothing more from it", async () => {
  const { clients, seen, registry } = await welcomed();
  const parts = partsOf(encodeFrame({ type: "renew", token: "x".repeat(60_000) }));
  for (const part of [parts[0]!, parts[1]!]) clients.receiveFrame(ann, part);
  expect(seen).toEqual([]);
  clients.receiveFrame(bob, parts[0]!);
  clients.receiveFrame(ann, pingOf(1));
  expect(seen).toEqual(["1 overloaded"]);
  expect(await registry.metrics()).toMatch(/^coroom_gateway_limits_reached_total\{limit="partial-frames"\} 1$/m);
  expect(await registry.metrics()).toContain(`coroom_gateway_partial_bytes ${parts[0]!.byteLength - 4}\n`);
  clients.receiveDisconnection(bob);
  expect(await registry.metrics()).toContain("coroom_gateway_partial_bytes 0\n");
});

test("[WHF6] a connection whose token is not accepted yet cannot send parts, which the gateway would have to hold", async () => {
  const { clients, seen, registry, clock } = host();
  const [first] = partsOf(helloOf("x".repeat(20_000)));
  for (const connection of [ann, bob]) clients.receiveConnection(connection, undefined);
  clients.receiveFrame(ann, first!);
  clock.turn(1_100);
  clients.receiveFrame(bob, helloOf("unanswered"));
  clients.receiveFrame(bob, first!);
  expect(await registry.metrics()).toContain("coroom_gateway_partial_bytes 0\n");
  expect(seen).toContain("1 badFrame");
});

test("[LOB21] a gateway that stops closes waiting connections with the same code as others", async () => {
  const { clients, seen } = host();
  for (const connection of [ann, bob, cid]) clients.receiveConnection(connection, undefined);
  clients.receiveDisconnection(ann);
  await clients.drain(60_000); // Nobody has a session.
  clients.stop();
  expect(seen).toEqual([`${bob} goingAway`, `${cid} goingAway`]);
});

test("[CUT1] a client that was cut because it read too slowly is counted and named in the log, which has a limited rate", async () => {
  const lines: unknown[] = [];
  const { clients, registry } = host(undefined, { ...SILENT_LOG, info: (facts, text) => void lines.push([facts, text]) });
  clients.receiveConnection(ann, undefined);
  clients.receiveFrame(ann, helloOf("valid"));
  await Promise.resolve();
  await Promise.resolve();
  for (let time = 0; time < 100; time++) clients.receiveReadProgress(ann, "cut");
  expect(await registry.getSingleMetricAsString("coroom_gateway_closes_total")).toContain('{close="cut"} 100');
  expect(lines[0]).toEqual([{ tenant: "acme", user: "ann" }, expect.stringContaining("read too slowly")]);
  expect(lines.length).toBeLessThan(100);
});
