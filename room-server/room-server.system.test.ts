/** Room servers on a real nats-server, seen from a gateway's side: everything here goes over NATS. */

import { connect, type NatsConnection } from "nats";
import { Registry } from "prom-client";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";

import { type RealNats, startRealNats, until } from "../test/contract/real-nats.ts";
import { type Answer, decodeAnswer, decodeFromOwner, encodeToOwner, type FromOwner, type SubmittedEdit, type ToOwner } from "../shared/bus/envelope.ts";
import { ClaimReply, type ClaimRequest, decodeJson, encodeJson } from "../shared/bus/placement-messages.ts";
import { subjectsOf } from "../shared/bus/subjects.ts";
import { readSettings } from "../shared/config.ts";
import type { ClientId, Epoch, GatewayId, Position, RoomKey, Seq, ServerId, UserId } from "../shared/ids.ts";
import type { Log } from "../shared/log.ts";
import { sharedSettings } from "../shared/settings.ts";
import { roomServerSettings } from "./config.ts";
import { type RoomServer, startRoomServer } from "./main.ts";

const gatewayId = "gw-test" as GatewayId;
const room = "acme.notes" as RoomKey;
const ann = { user: "ann" as UserId, client: "annannannannann1" as ClientId };
const bob = { user: "bob" as UserId, client: "bobbobbobbobbob1" as ClientId };
const START: Position = { epoch: 0 as Epoch, seq: 0 as Seq };
const silent: Log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

let nats: RealNats;
let line: NatsConnection;
let environment: string;
let runs = 0;
let servers: RoomServer[];

beforeAll(async () => {
  nats = await startRealNats();
});
afterAll(() => nats.stop());
beforeEach(async () => {
  line = await connect({ servers: nats.url, maxReconnectAttempts: -1, reconnectTimeWait: 20 });
  environment = `test${++runs}`;
  servers = [];
});
afterEach(async () => {
  await Promise.all(servers.map((server) => server.stop()));
  await line.close();
});

async function startServer(settings: Record<string, string> = {}): Promise<RoomServer> {
  const flags = { environment, natsUrl: nats.url, roomSecret: "a secret of at least 32 characters", heartbeatMs: "50", ...settings };
  const config = readSettings({ ...sharedSettings, ...roomServerSettings }, { flags, env: {} });
  const server = await startRoomServer(config, { log: silent, registry: new Registry() });
  servers.push(server);
  return server;
}

/** What a gateway hears of a room, in order. */
function listen() {
  const subjects = subjectsOf(environment);
  const heard: { fromOwner: FromOwner[]; answers: Answer[]; noResponders: number } = { fromOwner: [], answers: [], noResponders: 0 };
  line.subscribe(subjects.editsOut(room), { callback: (_, msg) => void heard.fromOwner.push(decodeFromOwner(new Uint8Array(msg.data))!) });
  line.subscribe(subjects.allToGateway(gatewayId), {
    callback: (_, msg) => {
      if (msg.headers?.code === 503) heard.noResponders += 1;
      else heard.answers.push(decodeAnswer(new Uint8Array(msg.data))!);
    },
  });
  return heard;
}

function send(message: ToOwner): void {
  const subjects = subjectsOf(environment);
  line.publish(subjects.editsIn(room), encodeToOwner(message), { reply: subjects.toGateway(gatewayId, room) });
}

function sendEdits(...edits: SubmittedEdit[]): void {
  send({ kind: "edits", gateway: gatewayId, edits });
}

function edit(author: typeof ann, counter: number, ackedThrough = 0): SubmittedEdit {
  return { author, counter, ackedThrough, parentSeq: 0 as Seq, payload: new TextEncoder().encode(`${author.user} ${counter}`) };
}

async function claim(server: ServerId, suspect?: ServerId): Promise<ClaimReply> {
  const request: ClaimRequest = { room, ...(suspect === undefined ? {} : { suspect }) };
  const reply = await line.request(subjectsOf(environment).claim(server), encodeJson(request), { timeout: 5_000 });
  return decodeJson(ClaimReply, reply.data)!;
}

const committed = (heard: readonly FromOwner[]) =>
  heard.flatMap((message) => (message.kind === "edits" ? message.edits.edits.map(({ client, counter }, index) => ({ seq: message.edits.firstSeq + index, epoch: message.edits.epoch, edit: `${client.slice(0, 3)} ${counter}` })) : []));

test("[RS1] an edit goes from a gateway through the log to every gateway, in one order", async () => {
  const server = await startServer();
  const heard = listen();
  await line.flush();
  expect(await claim(server.server)).toEqual({ kind: "owned", server: server.server, epoch: 1 });
  sendEdits(edit(ann, 1), edit(ann, 2));
  sendEdits(edit(bob, 1));
  await until(() => committed(heard.fromOwner).length === 3, "three committed edits");
  expect(committed(heard.fromOwner)).toEqual([
    { seq: 1, epoch: 1, edit: "ann 1" },
    { seq: 2, epoch: 1, edit: "ann 2" },
    { seq: 3, epoch: 1, edit: "bob 1" },
  ]);
  expect(heard.fromOwner[0]).toMatchObject({ kind: "epoch", epoch: 1, head: 0 });
});

test("[RS2] a repeat is answered with its seq and ordered once, by the owner and by the next one alike", async () => {
  const [first, second] = [await startServer(), await startServer()];
  const heard = listen();
  await claim(first.server);
  sendEdits(edit(ann, 1), edit(ann, 2));
  await until(() => committed(heard.fromOwner).length === 2, "the edits");
  sendEdits(edit(ann, 1), edit(ann, 2));
  await until(() => heard.answers.length === 2, "both answers");
  expect(heard.answers[1]).toEqual({ kind: "acked", epoch: 1, client: ann.client, counter: 2, seq: 2, exact: true });

  expect(await claim(second.server, first.server)).toEqual({ kind: "owned", server: second.server, epoch: 2 });
  sendEdits(edit(ann, 1), edit(ann, 2), edit(ann, 3));
  await until(() => committed(heard.fromOwner).length === 3, "the third edit");
  expect(committed(heard.fromOwner).at(-1)).toEqual({ seq: 3, epoch: 2, edit: "ann 3" });
  await until(() => heard.answers.filter((answer) => answer.epoch === 2).length === 2, "the new owner's answers to the repeats");
  expect(heard.answers.at(-1)).toMatchObject({ epoch: 2, counter: 2, seq: 2, exact: true });
});

test("[RS3] a room without an owner is told so by NATS, and its edits wait for the claim", async () => {
  const server = await startServer();
  const heard = listen();
  sendEdits(edit(ann, 1));
  await until(() => heard.noResponders === 1, "no responders");
  await claim(server.server);
  sendEdits(edit(ann, 1));
  await until(() => committed(heard.fromOwner).length === 1, "the edit");
});

test("[RS4] a catch-up brings what was missed, from the backlog and, for a new owner, from the log", async () => {
  const [first, second] = [await startServer(), await startServer({ backlogBytesMax: "1" })];
  const heard = listen();
  await claim(first.server);
  for (let counter = 1; counter <= 5; counter++) {
    sendEdits(edit(ann, counter));
    await until(() => committed(heard.fromOwner).length === counter, "the edit");
  }
  send({ kind: "catch-up-request", gateway: gatewayId, request: 7, after: { epoch: 1 as Epoch, seq: 3 as Seq }, through: 0 as Seq });
  const answer = await until(() => heard.answers[0], "the answer");
  expect(answer).toMatchObject({ kind: "catch-up", request: 7, epoch: 1, head: 5, answer: { kind: "edits", last: true } });

  await claim(second.server, first.server);
  send({ kind: "catch-up-request", gateway: gatewayId, request: 8, after: START, through: 0 as Seq });
  const fromLog = await until(() => heard.answers.find((answer) => answer.epoch === 2), "the answer from the log");
  expect(fromLog).toMatchObject({ kind: "catch-up", request: 8, epoch: 2, head: 5, answer: { kind: "edits", last: true } });
  expect(fromLog.kind === "catch-up" && fromLog.answer.kind === "edits" && fromLog.answer.parts.length).toBe(5);
});
