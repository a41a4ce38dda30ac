/** Requests between gateways for administrators, on a real nats-server, with more data than one message holds. */

import { connect, type NatsConnection } from "nats";
import { afterAll, beforeAll, expect, test } from "vitest";

import type { RoomMember, Sanction } from "../../../shared/bus/admin-messages.ts";
import { encodeJson } from "../../../shared/bus/json-messages.ts";
import { subjectsOf } from "../../../shared/bus/subjects.ts";
import type { GatewayId, RoomKey, TenantId, UnixMillis, UserId } from "../../../shared/ids.ts";
import { type RealNats, startRealNats } from "../../../test/contract/real-nats.ts";
import { natsAdminCommands, natsSanctions } from "./nats-admin.ts";

const subjects = subjectsOf("nats-admin");
/** The default max_payload of nats-server. */
const NATS_BYTES_MAX = 1_048_576;
const [one, two] = ["gw-1", "gw-2"] as [GatewayId, GatewayId];
let nats: RealNats;
let natsConnection: NatsConnection;
/** Size of the longest message so far. */
let bytes = 0;

beforeAll(async () => {
  nats = await startRealNats();
  natsConnection = await connect({ servers: nats.url });
  natsConnection.subscribe(">", { callback: (_, { data }) => void (bytes = Math.max(bytes, data.byteLength)) });
});
afterAll(async () => {
  await natsConnection.close();
  await nats.stop();
});

test("[NAD1] an answer carries as many sanctions as one NATS message holds, the first of them", async () => {
  const sanctions = Array.from({ length: 10_000 }, (_, user): Sanction => ({
    target: { kind: "user", tenant: "acme" as TenantId, user: `${"\u{1f600}".repeat(60)}${user}` as UserId },
    level: "banned",
    until: 2_000 as UnixMillis,
    madeAt: 1_000 as UnixMillis,
    lifted: false,
    reason: "\u{1f600}".repeat(100),
  }));
  natsSanctions(natsConnection, subjects, one).onRequest(() => sanctions);
  await natsConnection.flush();
  const received = await natsSanctions(natsConnection, subjects, two).requestSanctions();
  expect(received.length).toBeGreaterThan(500);
  expect(received).toEqual(sanctions.slice(0, received.length));
  await natsConnection.flush();
  expect(bytes).toBeLessThan(NATS_BYTES_MAX);
});

test("[NAD2] members that exceed one NATS message arrive in several messages, and their gateway counts once", async () => {
  const members = Array.from({ length: 8_000 }, (_, user): RoomMember => ({
    user: `u${user}`,
    name: "\u{1f600}".repeat(30),
    connection: `gw-1-${user}`,
    write: user % 2 === 0,
  }));
  const commands = natsAdminCommands(natsConnection, subjects, { gateway: one, running: () => [one] });
  commands.onCommand(() => ({ kicked: 3, members }));
  await natsConnection.flush();
  const complete = { kicked: 3, members, gateways: 1, silentGateways: [] };
  const issue = () => commands.issueCommand({ kind: "list-members", room: "acme.notes" as RoomKey });
  await expect.poll(issue, { timeout: 30_000 }).toEqual(complete); // A part that comes too late is left out.
  await natsConnection.flush();
  expect(bytes).toBeLessThan(NATS_BYTES_MAX);
});

test("[NAD3] a request for sanctions returns what any gateway knows, although another gateway answers with none", async () => {
  const gathered = subjectsOf("nats-admin-gathered");
  const banOf = (user: string): Sanction => ({
    target: { kind: "user", tenant: "acme" as TenantId, user: user as UserId },
    level: "banned",
    until: 2_000 as UnixMillis,
    madeAt: 1_000 as UnixMillis,
    lifted: false,
    reason: "",
  });
  for (const [gateway, sanctions] of [
    ["gw-3", []],
    ["gw-4", [banOf("ann")]],
    ["gw-5", [banOf("bob")]],
  ] as const)
    natsSanctions(natsConnection, gathered, gateway as GatewayId).onRequest(() => sanctions);
  await natsConnection.flush();
  const received = await natsSanctions(natsConnection, gathered, one).requestSanctions();
  expect(received.map(({ target }) => (target.kind === "user" ? target.user : target.address)).sort()).toEqual(["ann", "bob"]);
});

test("[NAD4] a running gateway that does not answer, or not completely, is named", async () => {
  const silent = subjectsOf("nats-admin-silent");
  const room = "acme.notes" as RoomKey;
  const member = (user: string): RoomMember => ({ user, name: "", connection: user, write: true });
  const commands = natsAdminCommands(natsConnection, silent, { gateway: one, running: () => [one, two, "gw-3"] });
  const issue = () => commands.issueCommand({ kind: "list-members", room });
  const answerWith = (answer: object) =>
    natsConnection.subscribe(silent.orders, { callback: (_, msg) => void msg.respond(encodeJson({ kicked: 0, members: [], ...answer })) });

  commands.onCommand(() => ({ kicked: 0, members: [member("ann")] }));
  answerWith({ gateway: two, members: [member("bob")], isPart: true });
  await natsConnection.flush();
  await expect.poll(issue, { timeout: 30_000 }).toMatchObject({ gateways: 1, members: [{}, {}], silentGateways: [two, "gw-3"] });

  answerWith({}); // An earlier release: nobody knows which gateway answered.
  await expect.poll(issue, { timeout: 30_000 }).toMatchObject({ gateways: 2, silentGateways: [] });
});
