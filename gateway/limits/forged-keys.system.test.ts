/** Tokens that name keys unknown to the gateway: a key that was just added, and invented keys. */

import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";

import { exportJWK, generateKeyPair, SignJWT } from "jose";
import { afterAll, beforeAll, expect, test } from "vitest";

import { until } from "../../test/contract/real-nats.ts";
import { gatewayRig, metric, outcomeOf } from "../testing/gateway-rig.ts";
import type { WireClient } from "../testing/wire-client.ts";

const rig = gatewayRig("forged", { abusePointsMax: "26" });
const HONEST = "203.0.113.20";
const FORGER = "203.0.113.21";
const COUNT = 6; // Each counts five points.
const keys: object[] = [];
let issuer: Server;
/** The server answers with the keys when this resolves. */
let hold = Promise.resolve();

beforeAll(async () => {
  issuer = createServer((_, response) => {
    void hold.then(() => response.setHeader("content-type", "application/json").end(JSON.stringify({ keys })));
  });
  issuer.listen(0, "127.0.0.1");
  await once(issuer, "listening");
});
afterAll(() => {
  issuer.closeAllConnections();
  issuer.close();
});

async function add(kid: string): Promise<CryptoKey> {
  const { publicKey, privateKey } = await generateKeyPair("ES256", { extractable: true });
  keys.push({ ...(await exportJWK(publicKey)), kid, alg: "ES256" });
  return privateKey;
}

test("[ABS15] invented keys count against their address even if the client disconnects; a key that was just added counts against no address", async () => {
  const first = await add("one");
  const address = await rig.start({ jwtSecret: "", jwksUrl: `http://127.0.0.1:${(issuer.address() as AddressInfo).port}/jwks.json` });
  const greet = async (from: string, kid: string, signer: CryptoKey): Promise<WireClient> => {
    const client = await rig.connect(address, from);
    const token = await new SignJWT({ tenant: "acme", rooms: ["*"], rights: ["read"] })
      .setProtectedHeader({ alg: "ES256", kid })
      .setSubject("ann")
      .setExpirationTime("1h")
      .sign(signer);
    client.send({ type: "hello", version: 1, token, agent: "test" });
    return client;
  };
  expect(await outcomeOf(await greet(HONEST, "one", first))).toBe("welcome");
  let release = (): void => {};
  hold = new Promise((resolve) => (release = resolve));
  const second = await add("two");
  const honest = await Promise.all(Array.from({ length: COUNT }, () => greet(HONEST, "two", second)));
  const forged = await Promise.all(Array.from({ length: COUNT }, (_, index) => greet(FORGER, `made up ${index}`, second)));
  await until(
    async () => (await metric(address, "coroom_gateway_tokens_waiting")) === honest.length + forged.length,
    "all of them to wait",
  );
  for (const client of forged.slice(0, COUNT / 2)) client.close();
  release();
  expect(await Promise.all(honest.map(outcomeOf))).toEqual(honest.map(() => "welcome"));
  await until(async () => (await metric(address, 'coroom_gateway_abuse_total{measure="ban",suspect="address"}')) === 1, "the ban");
  expect(await metric(address, 'coroom_gateway_faults_total{fault="bad-token"}')).toBe(COUNT);
  expect(await outcomeOf(await rig.connect(address, FORGER))).toBe(4009);
  expect(await outcomeOf(await greet(HONEST, "two", second))).toBe("welcome");
});

test("[ABS16] a JWKS that is down is one event for all clients, and one more once it answers", async () => {
  const signer = await add("three");
  hold = Promise.resolve();
  const returning = createServer((_, response) => response.end(JSON.stringify({ keys }))).listen(0, "127.0.0.1");
  await once(returning, "listening");
  const { port } = returning.address() as AddressInfo;
  returning.close();
  const address = await rig.start({ jwtSecret: "", jwksUrl: `http://127.0.0.1:${port}/jwks.json` });
  const token = await new SignJWT({ tenant: "acme", rooms: ["*"], rights: ["read"] })
    .setProtectedHeader({ alg: "ES256", kid: "three" })
    .setSubject("ann")
    .setExpirationTime("1h")
    .sign(signer);
  const answerOf = async (): Promise<number> =>
    (await fetch(`http://${address}/v1/rooms`, { headers: { authorization: `Bearer ${token}` } })).status;
  const eventCount = (): Promise<number> => metric(address, 'coroom_gateway_events_total{kind="jwks_lost"}');
  expect([await answerOf(), await answerOf(), await answerOf(), await eventCount()]).toEqual([503, 503, 503, 1]);
  returning.listen(port, "127.0.0.1");
  await once(returning, "listening");
  expect(await answerOf()).not.toBe(503);
  expect(await eventCount()).toBe(2);
  returning.closeAllConnections();
  returning.close();
});
