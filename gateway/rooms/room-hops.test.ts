import { Registry } from "prom-client";
import { expect, test } from "vitest";

import { type Answer, encodeAnswer } from "../../shared/bus/envelope.ts";
import { encodeEditsRecord, encodeEpochRecord } from "../../shared/bus/record.ts";
import { readSettings } from "../../shared/config.ts";
import type { ClientId, Epoch, GatewayId, Millis, RoomKey, Seq, UnixMillis, UserId } from "../../shared/ids.ts";
import { gatewaySettings } from "../config.ts";
import { Quotas } from "../limits/quotas.ts";
import { gatewayMetrics } from "../metrics.ts";
import type { EditHops } from "../ports.ts";
import type { PresenceHost } from "../presence/presence-host.ts";
import { quotaOptions } from "../settings/quotas.ts";
import { RoomDirectory } from "./room-directory.ts";
import { RoomHost } from "./room-host.ts";
import { UnackedBudget } from "./unacked.ts";
import { WritesHost } from "./writes-host.ts";

const ROOM = "default.plan" as RoomKey;
const CLIENT = "AAAAAAAAAAAAAAAA" as ClientId;
const USER = "ada" as UserId;
const EPOCH = 5 as Epoch;
const STAMP = { id: "rs-1.1", time: 0 as UnixMillis };
const LOG = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
const CLOCK = { now: () => 0 as Millis, wallNow: () => 0 as UnixMillis, after: () => () => {} };

/** A host of rooms in which nobody is, as one that edits over HTTP come to: with what it says of their hops. */
function host() {
  const said: unknown[] = [];
  const turns: (() => void)[] = [];
  const hops: EditHops = {
    taken: (room, { counter }) => void said.push(["taken", room, counter]),
    told: (room, message) => void said.push(["told", room, message.kind]),
    answered: (room, answer) => void said.push(["answered", room, answer.kind]),
    committed: (room, { runs }) => void said.push(["committed", room, runs.map(({ counter }) => counter)]),
    delivering: (_, __, deliver) => deliver(),
  };
  const deps = {
    clock: CLOCK,
    endOfTurn: (run: () => void) => void turns.push(run),
    log: LOG,
    metrics: gatewayMetrics(new Registry()),
    hops,
  };
  const config = readSettings(gatewaySettings, { flags: {}, env: {} });
  const budget = new UnackedBudget({ bytesMax: config.forwardedBytesMax });
  const rooms: RoomHost = new RoomHost(
    {
      sockets: { send: () => {}, publish: () => {}, listen: () => {}, unlisten: () => {}, close: () => {} },
      rooms: { follow: () => Promise.resolve(), unfollow: () => {}, tell: () => {} },
      placement: { onServerLost: () => {} } as never,
      sessions: new Map(),
      presence: {} as PresenceHost,
      writes: new WritesHost(config, () => {}, deps),
      boards: { receiveLeft: () => {} },
      expel: () => {},
      onWriter: () => {},
    },
    new RoomDirectory({ ...config, gateway: "g1" as GatewayId }, budget),
    budget,
    new Quotas(quotaOptions(config)),
    { searchesMax: 1 },
    deps,
  );
  return { rooms, said, endTurn: () => turns.splice(0).forEach((run) => run()) };
}

test("[TRC27] a gateway's rooms tell of each hop of an edit when it happens", async () => {
  const { rooms, said, endTurn } = host();
  const author = { user: USER, client: CLIENT };
  const edit = (counter: number) => ({ author, counter, ackedThrough: 0, parentSeq: 0 as Seq, payload: new Uint8Array(1) });
  rooms.receiveWrite(ROOM, edit(1));
  expect(said).toEqual([["taken", ROOM, 1]]);
  await Promise.resolve(); // It is followed.
  endTurn();
  rooms.receiveFromOwner(ROOM, encodeEpochRecord({ ...STAMP, epoch: EPOCH, head: 0 as Seq }));
  const committed = {
    epoch: EPOCH,
    firstSeq: 1 as Seq,
    edits: [{ client: CLIENT, counter: 1, parentSeq: 0 as Seq, payload: new Uint8Array(1) }],
  };
  rooms.receiveFromOwner(ROOM, encodeEditsRecord({ ...STAMP, users: new Map([[CLIENT, USER]]), edits: committed }));
  const answer: Answer = { kind: "acked", epoch: EPOCH, client: CLIENT, counter: 1, seq: 1 as Seq, exact: true };
  rooms.receiveAnswer(ROOM, encodeAnswer(answer));
  expect(said).toEqual([
    ["taken", ROOM, 1],
    ["told", ROOM, "edits"],
    ["committed", ROOM, [1]],
    ["answered", ROOM, "acked"],
  ]);
});
