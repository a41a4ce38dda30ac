/**
 * Webhooks of a complete Coroom. An HTTP server receives them as a customer's server does, and verifies them with the
 * library of Standard Webhooks.
 */

import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";

import { Webhook } from "standardwebhooks";
import { afterAll, beforeAll, expect, test } from "vitest";

import { SystemCluster } from "./cluster.ts";
import { eventually } from "./eventually.ts";
import { insertion, Person } from "./person.ts";

const SECRET = `whsec_${Buffer.from("a secret of the tests, 32 bytes!").toString("base64")}`;

type Received = {
  readonly path: string;
  readonly id: string;
  readonly event: { type: string; timestamp: string; data: { tenant: string; room: string; seq?: number; edits?: number } };
};

let cluster: SystemCluster;
let customer: Server;
const received: Received[] = [];
const unsigned: unknown[] = [];
let answerWith: () => { status: number; headers?: Record<string, string> } = () => ({ status: 204 });

beforeAll(async () => {
  const webhook = new Webhook(SECRET);
  customer = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      try {
        const event = webhook.verify(Buffer.concat(chunks).toString(), request.headers as Record<string, string>) as Received["event"];
        const { status, headers = {} } = answerWith();
        if (status < 300) received.push({ path: request.url!, id: String(request.headers["webhook-id"]), event });
        response.writeHead(status, headers).end();
      } catch (error) {
        unsigned.push(error);
        response.writeHead(401).end();
      }
    });
  }).listen(0, "127.0.0.1");
  await once(customer, "listening");
  const url = `http://127.0.0.1:${(customer.address() as AddressInfo).port}`;
  const settings = {
    WEBHOOK_URLS: `${url}/all, acme=${url}/acme`,
    WEBHOOK_SECRETS: `${SECRET}, acme=${SECRET}`,
    WEBHOOK_QUIET_MS: "300",
    WEBHOOK_CHANGE_MS_MAX: "2000",
    DOCUMENTS_LEASE_MS: "1000",
    SNAPSHOT_AGE_MS_MAX: "3000",
    SNAPSHOT_INTERVAL_MS_MIN: "500",
    DOCUMENTS_READ_MS: "50",
    EDIT_BURST: "1000",
  };
  cluster = await SystemCluster.start({ gateways: 1, roomServers: 1, settings });
});
afterAll(async () => {
  await cluster?.stop();
  customer?.close();
});

const of = (room: string, type: string) =>
  received.filter(({ path, event }) => path === "/all" && event.type === type && event.data.room === room);
/** Sends one edit, and repeats it until it is accepted, because the document service may be unavailable. */
async function post(room: string, tenant = "default"): Promise<void> {
  const [body, key] = [Buffer.from(insertion("x")), randomUUID()];
  const headers = {
    "authorization": `Bearer ${await cluster.token(room, "backend", { tenant })}`,
    "content-type": "application/octet-stream",
    "idempotency-key": key,
  };
  await eventually(
    `an edit of ${room} is taken`,
    async () => (await fetch(`${cluster.gateways[0]!.httpUrl}/v1/rooms/${room}/edits`, { method: "POST", headers, body })).status === 200,
  );
}

test("[WEBH1] a room in use, a changed document, a snapshot and a vacated room are each sent, signed and once", async () => {
  const ann = await Person.enter(cluster, cluster.gateways[0]!, "told", "ann", { merging: false });
  await eventually("the room is reported as occupied", () => of("told", "room.occupied").length === 1);
  for (let edit = 0; edit < 20; edit++) ann.type(insertion("word "));
  await ann.untilSaved();
  await eventually("the change is sent", () => of("told", "document.changed").at(-1)?.event.data.seq === 20);
  const changes = of("told", "document.changed");
  expect(changes.reduce((sum, { event }) => sum + event.data.edits!, 0)).toBe(20);
  expect(changes.length, "typed in one go").toBeLessThan(10);
  await eventually("the snapshot is sent", () => of("told", "document.snapshot").at(-1)?.event.data.seq === 20);
  ann.leave();
  await eventually("the room is reported as vacated", () => of("told", "room.vacated").length === 1);
  expect([new Set(received.map(({ path, id }) => `${path} ${id}`)).size, unsigned]).toEqual([received.length, []]);
});

test("[WEBH2] the endpoint of a tenant receives events of this tenant only", async () => {
  await post("theirs");
  await post("ours", "acme");
  await eventually(
    "both changes are sent to the general endpoint",
    () => of("theirs", "document.changed").length > 0 && of("ours", "document.changed").length > 0,
  );
  await eventually("and theirs to acme's", () => received.some(({ path, event }) => path === "/acme" && event.data.room === "ours"));
  expect(new Set(received.filter(({ path }) => path === "/acme").map(({ event }) => event.data.tenant))).toEqual(new Set(["acme"]));
});

test("[WEBH3] an endpoint that fails or redirects is retried after a pause, and receives the event then", async () => {
  const answers = [{ status: 500 }, { status: 302, headers: { location: "http://127.0.0.1:1/inside" } }];
  let tries = 0;
  answerWith = () => ((tries += 1), answers.shift() ?? { status: 204 });
  await post("flaky");
  await eventually("the change is sent in the end", () => of("flaky", "document.changed").length === 1);
  expect(tries).toBeGreaterThan(2);
  answerWith = () => ({ status: 204 });
});

test("[WEBH4] a document service that is killed before it has sent a change sends it after its restart", async () => {
  const rooms = Array.from({ length: 20 }, (_, index) => `killed-${index}`);
  await Promise.all(rooms.map((room) => post(room)));
  await cluster.documentService.kill();
  await cluster.documentService.startAgain();
  await eventually("every change is sent", () => rooms.every((room) => of(room, "document.changed").length > 0));
});

test("[WEBH7] the deletion of a room is sent when nothing of the room is left", async () => {
  await post("gone");
  await eventually("the change is sent", () => of("gone", "document.changed").length > 0);
  const token = await cluster.token("gone", "boss", { rights: ["admin"] });
  const remove = async () =>
    (
      await fetch(`${cluster.gateways[0]!.httpUrl}/v1/rooms/gone`, { method: "DELETE", headers: { authorization: `Bearer ${token}` } })
    ).json() as Promise<{ wiped?: boolean }>;
  await eventually("nothing is left of it", async () => (await remove()).wiped === true);
  await eventually("the deletion is sent", () => of("gone", "room.deleted").length === 1);
});
