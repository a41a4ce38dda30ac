/** Room servers on a real nats-server, seen from a gateway: all messages go over NATS. */

import { jetstreamManager } from "@nats-io/jetstream";
import { Kvm } from "@nats-io/kv";
import { connect, type NatsConnection } from "nats";
import { Registry } from "prom-client";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";

import type { Checkpoint } from "../shared/bus/checkpoint.ts";
import {
  type OwnerReply,
  decodeOwnerReply,
  decodeFromOwner,
  encodeToOwner,
  type FromOwner,
  type SubmittedEdit,
  type ToOwner,
} from "../shared/bus/envelope.ts";
import { decodeJson, encodeJson } from "../shared/bus/json-messages.ts";
import { ClaimReply, type ClaimRequest, RoomEntry } from "../shared/bus/placement-messages.ts";
import { headOf } from "../shared/bus/record.ts";
import { ownersRecordOf } from "../shared/testing/owners-record.ts";
import { subjectsOf } from "../shared/bus/subjects.ts";
import { readSettings } from "../shared/settings/settings.ts";
import type { ClientId, Epoch, GatewayId, Position, RoomKey, Seq, ServerId, UserId } from "../shared/ids.ts";
import type { Log } from "../shared/process/log.ts";
import { sharedSettings } from "../shared/settings/common-settings.ts";
import { TcpProxy } from "../test/contract/tcp-proxy.ts";
import { type RealNats, startRealNats, until } from "../test/contract/real-nats.ts";
import { SlowLogProxy } from "../test/system/slow-log-proxy.ts";
import { roomServerSettings } from "./config.ts";
import { type RoomServer, startRoomServer } from "./main.ts";

const gatewayId = "gw-test" as GatewayId;
const room = "acme.notes" as RoomKey;
const ann = { user: "ann" as UserId, client: "annannannannann1" as ClientId };
const bob = { user: "bob" as UserId, client: "bobbobbobbobbob1" as ClientId };
const START: Position = { epoch: 0 as Epoch, seq: 0 as Seq };

/** Every test has a log of its own, and the default reserves half of the storage that is left. */
const LOG_BYTES_MAX = String(16 * 1024 ** 2);
/** Long enough that a late server does not count as dead. */
const UNHURRIED = { heartbeatMs: "700" };

let nats: RealNats;
let connection: NatsConnection;
let environment: string;
let runs = 0;
let servers: RoomServer[];
/** The servers' warnings: none, unless a test expects them. */
let warnings: string[];

beforeAll(async () => {
  nats = await startRealNats();
});
afterAll(() => nats.stop());
beforeEach(async () => {
  connection = await connect({ servers: nats.url, maxReconnectAttempts: -1, reconnectTimeWait: 20 });
  environment = `test${++runs}`;
  servers = [];
  warnings = [];
});
afterEach(async () => {
  await Promise.all(servers.map((server) => server.stop()));
  await connection.close();
});

type TestServer = RoomServer & {
  /** Whether the server's metrics contain this text. */
  readonly shows: (connection: string) => Promise<boolean>;
};

async function startServer(settings: Record<string, string> = {}): Promise<TestServer> {
  const flags = {
    environment,
    natsUrl: nats.url,
    roomSecret: "a secret of at least 32 characters",
    heartbeatMs: "50",
    logBytesMax: LOG_BYTES_MAX,
    ...settings,
  };
  const config = readSettings({ ...sharedSettings, ...roomServerSettings }, { flags, env: {} });
  const note = (_: object, sentence: string): void => void warnings.push(sentence);
  const log: Log = { debug: () => {}, info: () => {}, warn: note, error: note };
  const registry = new Registry();
  const server = await startRoomServer(config, { log, registry, epochs: { after: (known) => (known + 1) as Epoch } });
  servers.push(server);
  return { ...server, shows: async (connection) => (await registry.metrics()).split("\n").includes(connection) };
}

/** The messages that a gateway receives for a room, in order. */
function listen() {
  const subjects = subjectsOf(environment);
  const received: { fromOwner: FromOwner[]; answers: OwnerReply[]; noResponders: number } = { fromOwner: [], answers: [], noResponders: 0 };
  connection.subscribe(subjects.editsOut(room), {
    callback: (_, msg) => void received.fromOwner.push(decodeFromOwner(new Uint8Array(msg.data))!),
  });
  connection.subscribe(subjects.allToGateway(gatewayId), {
    callback: (_, msg) => {
      if (msg.headers?.code === 503) received.noResponders += 1;
      else received.answers.push(decodeOwnerReply(new Uint8Array(msg.data))!);
    },
  });
  return received;
}

function send(message: ToOwner): void {
  const subjects = subjectsOf(environment);
  connection.publish(subjects.toOwner(room), encodeToOwner(message), { reply: subjects.toGateway(gatewayId, room) });
}

function sendEdits(...edits: SubmittedEdit[]): void {
  send({ kind: "edits", gateway: gatewayId, edits });
}

function edit(author: typeof ann, counter: number, ackedThrough = 0): SubmittedEdit {
  return { author, counter, ackedThrough, parentSeq: 0 as Seq, payload: new TextEncoder().encode(`${author.user} ${counter}`) };
}

async function claim(server: ServerId, suspect?: ServerId): Promise<ClaimReply> {
  const request: ClaimRequest = { room, ...(suspect === undefined ? {} : { suspect }) };
  const reply = await connection.request(subjectsOf(environment).claim(server), encodeJson(request), { timeout: 30_000 });
  return decodeJson(ClaimReply, reply.data)!;
}

const committed = (received: readonly FromOwner[]) =>
  received.flatMap((message) =>
    message.kind === "edits"
      ? message.edits.edits.map(({ client, counter }, index) => ({
          seq: message.edits.firstSeq + index,
          epoch: message.edits.epoch,
          edit: `${client.slice(0, 3)} ${counter}`,
        }))
      : [],
  );

/** The last announced head of the room. */
const savingOf = (received: readonly FromOwner[]) =>
  received.flatMap((message) => (message.kind === "saving" ? [message.state] : [])).at(-1);

test("[RS1] an edit goes from a gateway through the log to every gateway, in one order", async () => {
  const server = await startServer();
  const received = listen();
  await connection.flush();
  expect(await claim(server.server)).toEqual({ kind: "owned", server: server.server, epoch: 1 });
  sendEdits(edit(ann, 1), edit(ann, 2));
  sendEdits(edit(bob, 1));
  await until(() => committed(received.fromOwner).length === 3, "three committed edits");
  expect(committed(received.fromOwner)).toEqual([
    { seq: 1, epoch: 1, edit: "ann 1" },
    { seq: 2, epoch: 1, edit: "ann 2" },
    { seq: 3, epoch: 1, edit: "bob 1" },
  ]);
  expect(received.fromOwner[0]).toMatchObject({ kind: "epoch", epoch: 1, head: 0 });
  expect(warnings).toEqual([]);
});

test("[RS2] a repeat is answered with its seq and ordered once, by the owner and by the next one", async () => {
  const [first, second] = [await startServer(), await startServer()];
  const received = listen();
  await claim(first.server);
  sendEdits(edit(ann, 1), edit(ann, 2));
  await until(() => committed(received.fromOwner).length === 2, "the edits");
  sendEdits(edit(ann, 1), edit(ann, 2));
  await until(() => received.answers.length === 2, "both answers");
  expect(received.answers[1]).toEqual({ kind: "acked", epoch: 1, client: ann.client, counter: 2, seq: 2, exact: true });

  expect(await claim(second.server, first.server)).toEqual({ kind: "owned", server: second.server, epoch: 2 });
  sendEdits(edit(ann, 1), edit(ann, 2), edit(ann, 3));
  await until(() => committed(received.fromOwner).length === 3, "the third edit");
  expect(committed(received.fromOwner).at(-1)).toEqual({ seq: 3, epoch: 2, edit: "ann 3" });
  const answers = () => received.answers.filter((answer) => answer.epoch === 2); // The first server does not know yet that it is fenced.
  await until(() => answers().length === 2, "the new owner's answers to the repeats");
  expect(answers().at(-1)).toMatchObject({ epoch: 2, counter: 2, seq: 2, exact: true });
});

test("[RS3] NATS reports that a room without an owner has no responders, and edits commit once a server claims the room", async () => {
  const server = await startServer();
  const received = listen();
  sendEdits(edit(ann, 1));
  await until(() => received.noResponders === 1, "no responders");
  await claim(server.server);
  sendEdits(edit(ann, 1));
  await until(() => committed(received.fromOwner).length === 1, "the edit");
});

test("[RS4] a catch-up returns the missed edits, from the backlog and, for a new owner, from the log", async () => {
  const [first, second] = [await startServer(), await startServer({ backlogBytesMax: "1" })];
  const received = listen();
  await claim(first.server);
  for (let counter = 1; counter <= 5; counter++) {
    sendEdits(edit(ann, counter));
    await until(() => committed(received.fromOwner).length === counter, "the edit");
  }
  send({ kind: "catch-up-request", gateway: gatewayId, request: 7, after: { epoch: 1 as Epoch, seq: 3 as Seq }, through: 0 as Seq });
  const answer = await until(() => received.answers[0], "the answer");
  expect(answer).toMatchObject({ kind: "catch-up", request: 7, epoch: 1, head: 5, answer: { kind: "edits" } });

  await claim(second.server, first.server);
  send({ kind: "catch-up-request", gateway: gatewayId, request: 8, after: START, through: 0 as Seq });
  const fromLog = await until(() => received.answers.find((answer) => answer.epoch === 2), "the answer from the log");
  expect(fromLog).toMatchObject({ kind: "catch-up", request: 8, epoch: 2, head: 5, answer: { kind: "edits" } });
  expect(fromLog.kind === "catch-up" && fromLog.answer.kind === "edits" && fromLog.answer.parts.length).toBe(5);
});

/**
 * Writes a checkpoint as the document service does after a snapshot, up to the log's present end, and trims behind it.
 */
async function checkpointAndTrim(clients: Checkpoint["clients"], { head, keep = 0 }: { head: number; keep?: number }): Promise<void> {
  const subjects = subjectsOf(environment);
  const manager = await jetstreamManager(connection);
  const last = await manager.streams.getMessage(subjects.logStream(0), { last_by_subj: subjects.log(0, room) });
  const checkpoint: Checkpoint = {
    epoch: 1 as Epoch,
    seq: head as Seq,
    streamSeq: last!.seq - keep,
    time: Date.now() as Checkpoint["time"],
    clients,
    snapshot: { object: "o", bytes: 1, sha256: "s" },
  };
  await (await new Kvm(connection).open(subjects.checkpointsBucket)).put(room, encodeJson(checkpoint));
  await manager.streams.purge(subjects.logStream(0), { filter: subjects.log(0, room), seq: keep === 0 ? last!.seq : last!.seq - keep + 1 });
}

/** One record each. */
async function commitOneByOne(received: ReturnType<typeof listen>, counters: readonly number[]): Promise<void> {
  for (const counter of counters) {
    const before = committed(received.fromOwner).length;
    sendEdits(edit(ann, counter));
    await until(() => committed(received.fromOwner).length > before, `edit ${counter}`);
  }
}

const entry = async () => {
  const found = await (await new Kvm(connection).open(subjectsOf(environment).roomsBucket)).get(room);
  return found === null || found.operation !== "PUT" ? undefined : decodeJson(RoomEntry, found.value);
};

test("[RS5] an owner that was cut off until another claimed cannot append afterwards, and ends; its edits are committed once", async () => {
  const cut = await TcpProxy.to(nats.url);
  const first = await startServer({ natsUrl: cut.url });
  const second = await startServer();
  const received = listen();
  await claim(first.server);
  await commitOneByOne(received, [1]);
  cut.hold();
  sendEdits(edit(ann, 2));
  expect(await claim(second.server, first.server)).toEqual({ kind: "owned", server: second.server, epoch: 2 });
  sendEdits(edit(ann, 2));
  await until(() => committed(received.fromOwner).length === 2, "the edit from the new owner");
  cut.release();
  await until(() => first.shows('coroom_room_server_ownerships_ended_total{why="fenced"} 1'), "the first owner to step down");
  sendEdits(edit(ann, 3));
  await until(() => committed(received.fromOwner).length === 3, "the next edit");
  expect(committed(received.fromOwner)).toEqual([
    { seq: 1, epoch: 1, edit: "ann 1" },
    { seq: 2, epoch: 2, edit: "ann 2" },
    { seq: 3, epoch: 2, edit: "ann 3" },
  ]);
  await first.stop();
  await cut.close();
});

test("[RS6] a server with a broken connection receives its rooms' messages again afterwards, in the same epoch", async () => {
  const broken = await TcpProxy.to(nats.url);
  const server = await startServer({ natsUrl: broken.url });
  const received = listen();
  await claim(server.server);
  await commitOneByOne(received, [1]);
  broken.cut();
  await until(() => (sendEdits(edit(ann, 2), edit(ann, 3)), committed(received.fromOwner).length === 3), "the edits");
  expect(committed(received.fromOwner).map(({ edit, epoch }) => `${edit} in ${epoch}`)).toEqual(["ann 1 in 1", "ann 2 in 1", "ann 3 in 1"]);
  await server.stop();
  await broken.close();
});

test("[RS7] after nats-server is killed under traffic committed edits stay, seqs continue, and every edit is committed once", async () => {
  const server = await startServer({ appendAnswerMsMax: "100" });
  const received = listen();
  await claim(server.server);
  // As a gateway knows them: from records, and from answers to repeats of edits whose record it missed.
  const acked = (): Set<number> =>
    new Set([
      ...received.fromOwner.flatMap((message) => (message.kind === "edits" ? message.edits.edits.map(({ counter }) => counter) : [])),
      ...received.answers.flatMap((answer) => (answer.kind === "acked" ? [answer.counter] : [])),
    ]);
  const ackedAtLeast = (count: number) => (): boolean => {
    const known = acked();
    const unacked = Array.from({ length: count }, (_, index) => index + 1).filter((counter) => !known.has(counter));
    if (unacked.length > 0) sendEdits(...unacked.slice(0, 3).map((counter) => edit(ann, counter)));
    return unacked.length === 0;
  };
  await until(ackedAtLeast(10), "the first edits");
  const crashed = nats.crash();
  await until(ackedAtLeast(60), "edits around the crash");
  await crashed;
  const subjects = subjectsOf(environment);
  const last = await (
    await jetstreamManager(connection)
  ).streams.getMessage(subjects.logStream(0), { last_by_subj: subjects.log(0, room) });
  expect(headOf(ownersRecordOf(last!.data))).toBe(60);
});

test("[RS8] while the log does not answer, edits are announced as tentative; afterwards they are committed, and the room is saved", async () => {
  const { proxy, url } = await SlowLogProxy.start(nats.url);
  const server = await startServer({ natsUrl: url, refusingAfterMs: "400", refusedRetryMs: "70" });
  const received = listen();
  await claim(server.server);
  await commitOneByOne(received, [1]);
  proxy.hold();
  sendEdits(edit(ann, 2));
  const tentative = await until(
    () => received.fromOwner.find((message) => message.kind === "tentative" && message.edit.counter === 2),
    "the tentative edit",
  ); // The first append may have been slow as well.
  expect(tentative).toMatchObject({ edit: { user: "ann", counter: 2, epoch: 1 } });
  await until(() => savingOf(received.fromOwner) === "refusing", "the refusing state");
  sendEdits(edit(ann, 3));
  expect(await until(() => received.answers.find((answer) => answer.kind === "refused"), "the refusal")).toMatchObject({
    counter: 3,
    reason: "log-stalled",
    retryAfterMs: 70,
  });
  expect(committed(received.fromOwner)).toHaveLength(1);
  proxy.release();
  await until(() => committed(received.fromOwner).length === 2, "the edit in the log");
  await until(() => savingOf(received.fromOwner) === "saved", "the saved state");
  sendEdits(edit(ann, 3));
  await until(() => committed(received.fromOwner).length === 3, "the refused edit, sent again");
  await server.stop();
  await proxy.stop();
});

test("[RS9] a stopping server commits what has arrived, releases its rooms and refuses new ones", async () => {
  const server = await startServer();
  const received = listen();
  await claim(server.server);
  expect(await until(entry, "the owner's entry")).toEqual({ owner: server.server, epoch: 1 });
  sendEdits(...Array.from({ length: 100 }, (_, index) => edit(ann, index + 1)));
  await connection.flush();
  await server.stop();
  await until(() => committed(received.fromOwner).length === 100, "all edits");
  expect(await entry()).toBeUndefined();
  sendEdits(edit(ann, 101));
  await until(() => received.noResponders === 1, "no responders");
});

test("[RS10] of several servers that claim a room at once one owns it, and no two records share a sequence", async () => {
  const all = await Promise.all([startServer(), startServer(), startServer()]);
  const received = listen();
  const replies = await Promise.all(all.map((server) => claim(server.server)));
  expect(replies.filter(({ kind }) => kind === "owned").length).toBeGreaterThanOrEqual(1);
  sendEdits(edit(ann, 1));
  await until(() => committed(received.fromOwner).length === 1, "the edit");
  const epochs = received.fromOwner.flatMap((message) => (message.kind === "epoch" ? [message.epoch] : []));
  expect(epochs).toEqual(epochs.map((_, index) => index + 1));
});

test("[RS11] a claim of a live server's room is answered with that server, unless it is the suspect", async () => {
  const [first, second] = await Promise.all([startServer(UNHURRIED), startServer(UNHURRIED)]);
  await claim(first.server);
  await until(entry, "the owner's entry");
  await until(async () => (await claim(second.server)).kind === "elsewhere", "the second server to receive the first one's heartbeat");
  expect(await claim(second.server)).toEqual({ kind: "elsewhere", server: first.server, epoch: 1 });
  expect(await claim(second.server, first.server)).toEqual({ kind: "owned", server: second.server, epoch: 2 });
  expect(await until(async () => ((await entry())?.epoch === 2 ? entry() : undefined), "the new entry")).toEqual({
    owner: second.server,
    epoch: 2,
  });
});

test("[RS12] a request for a room that a server lost unnoticed leads to a new claim only if no live server owns it", async () => {
  const [first, second] = await Promise.all([startServer(UNHURRIED), startServer(UNHURRIED)]);
  await claim(first.server);
  await claim(second.server, first.server);
  await until(async () => (await entry())?.owner === second.server, "the new entry");
  expect(await claim(first.server)).toEqual({ kind: "elsewhere", server: second.server, epoch: 2 });
  expect(await claim(first.server, second.server)).toEqual({ kind: "owned", server: first.server, epoch: 3 });
});

test("[RS13] a client at the newest snapshot or later is answered, from the log if the backlog is too short; an earlier one gets a resync", async () => {
  const server = await startServer({ backlogBytesMax: "1", answerBytesMax: "60" });
  const received = listen();
  await claim(server.server);
  await commitOneByOne(received, [1, 2, 3]);
  await checkpointAndTrim([], { head: 3 });
  await commitOneByOne(received, [4, 5, 6, 7]);
  const ask = (request: number, after: Position): void =>
    send({ kind: "catch-up-request", gateway: gatewayId, request, after, through: 0 as Seq });
  for (let [request, got] = [100, 3]; got < 7; request++) {
    ask(request, { epoch: 1 as Epoch, seq: got as Seq });
    const parts = await until(
      () =>
        received.answers.flatMap((answer) =>
          answer.kind === "catch-up" && answer.request === request && answer.answer.kind === "edits" ? [answer.answer.parts] : [],
        )[0],
      "the answer",
    );
    expect(parts.length).toBeLessThan(4); // Not all fit.
    got += parts.length;
  }
  ask(2, START);
  await until(
    () =>
      received.answers.some(
        (answer) =>
          answer.kind === "catch-up" && answer.request === 2 && answer.answer.kind === "resync" && answer.answer.reason === "too-old",
      ),
    "the resync",
  );
});

test("[RS14] a new owner knows from the checkpoint the edits that the trimmed log no longer has", async () => {
  const [first, second] = [await startServer(), await startServer()];
  const received = listen();
  await claim(first.server);
  await commitOneByOne(received, [1, 2, 3]);
  await checkpointAndTrim([{ client: ann.client, user: ann.user, counter: 3, seq: 3 as Seq, lastSeen: Date.now() as Checkpoint["time"] }], {
    head: 3,
  });
  await commitOneByOne(received, [4]);
  await claim(second.server, first.server);
  sendEdits(...[1, 2, 3, 4, 5].map((counter) => edit(ann, counter)));
  await until(() => committed(received.fromOwner).length === 5, "the fifth edit");
  expect(committed(received.fromOwner).at(-1)).toEqual({ seq: 5, epoch: 2, edit: "ann 5" });
});

test("[RS15] an unused room is released", async () => {
  const server = await startServer({ roomIdleMsMax: "200" });
  await claim(server.server);
  await until(() => server.shows('coroom_room_server_ownerships_ended_total{why="released"} 1'), "the release");
  expect(await until(async () => ((await entry()) === undefined ? true : undefined), "the entry's removal")).toBe(true);
});

test("[RS16] a server starts only with a secret and with limits that NATS allows", async () => {
  await expect(startServer({ roomSecret: "short" })).rejects.toThrow(/--room-secret/);
  await expect(startServer({ recordBytesMax: String(64 * 1024 ** 2) })).rejects.toThrow(/max_payload/);
});
