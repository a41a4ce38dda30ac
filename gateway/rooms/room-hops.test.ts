import { Registry } from "prom-client";
import { expect, test } from "vitest";

import { type OwnerReply, encodeOwnerReply } from "../../shared/bus/envelope.ts";
import { encodeEditsRecord, encodeEpochRecord } from "../../shared/bus/record.ts";
import type { ClientId, Epoch, GatewayId, Millis, RoomKey, Seq, UnixMillis, UserId } from "../../shared/ids.ts";
import { readSettings } from "../../shared/settings/settings.ts";
import { gatewaySettings } from "../config.ts";
import { Quotas } from "../limits/quotas.ts";
import { gatewayMetrics } from "../metrics.ts";
import type { EditHops } from "../ports.ts";
import type { PresenceRelayHost } from "../presence/presence-relay-host.ts";
import { quotaOptions } from "../settings/quotas.ts";
import { UsageMeter } from "../usage/usage-meter.ts";
import { RoomDirectory } from "./room-directory.ts";
import { FollowedRoomsHost } from "./room-host.ts";
import { UnackedBudget } from "./unacked-budget.ts";
import { WritesHost } from "./writes-host.ts";

const ROOM = "default.plan" as RoomKey;
const CLIENT = "AAAAAAAAAAAAAAAA" as ClientId;
const USER = "ada" as UserId;
const EPOCH = 5 as Epoch;
const STAMP = { id: "rs-1.1", time: 0 as UnixMillis };
const LOG = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
const CLOCK = { now: () => 0 as Millis, wallNow: () => 0 as UnixMillis, after: () => () => {} };

/** A host of rooms without members, for edits over HTTP, and the hops that it reports. */
function host() {
  const reported: unknown[] = [];
  const turns: (() => void)[] = [];
  const hops: EditHops = {
    received: (room, { counter }) => void reported.push(["received", room, counter]),
    forwarded: (room, message) => void reported.push(["forwarded", room, message.kind]),
    answered: (room, answer) => void reported.push(["answered", room, answer.kind]),
    committed: (room, { runs }) => void reported.push(["committed", room, runs.map(({ counter }) => counter)]),
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
  const usage = new UsageMeter({ tenantsMax: 10 });
  const budget = new UnackedBudget({ bytesMax: config.forwardedBytesMax });
  const rooms: FollowedRoomsHost = new FollowedRoomsHost(
    {
      sockets: { send: () => {}, publish: () => 0, listen: () => {}, unlisten: () => {}, close: () => {} },
      rooms: { follow: () => Promise.resolve(), unfollow: () => {}, sendToOwner: () => {} },
      placement: { onServerLost: () => {} } as never,
      sessions: new Map(),
      presence: { receiveOwner: () => {} } as unknown as PresenceRelayHost,
      writes: new WritesHost(config, () => {}, { ...deps, usage }),
      quotas: new Quotas(quotaOptions(config)),
      usage,
      dispatch: () => {},
    },
    new RoomDirectory({ ...config, gateway: "g1" as GatewayId }, budget),
    budget,
    { ...config, searchesMax: 1 },
    deps,
  );
  return { rooms, reported, endTurn: () => turns.splice(0).forEach((run) => run()) };
}

test("[TRC27] the gateway's rooms report each hop of an edit when it happens", async () => {
  const { rooms, reported, endTurn } = host();
  const author = { user: USER, client: CLIENT };
  const edit = (counter: number) => ({ author, counter, ackedThrough: 0, parentSeq: 0 as Seq, payload: new Uint8Array(1) });
  rooms.receiveWrite(ROOM, edit(1));
  expect(reported).toEqual([["received", ROOM, 1]]);
  await Promise.resolve(); // The room is followed now.
  endTurn();
  rooms.receiveFromOwner(ROOM, encodeEpochRecord({ ...STAMP, epoch: EPOCH, head: 0 as Seq }));
  const committed = {
    epoch: EPOCH,
    firstSeq: 1 as Seq,
    edits: [{ client: CLIENT, counter: 1, parentSeq: 0 as Seq, payload: new Uint8Array(1) }],
  };
  rooms.receiveFromOwner(ROOM, encodeEditsRecord({ ...STAMP, users: new Map([[CLIENT, USER]]), edits: committed }));
  const answer: OwnerReply = { kind: "acked", epoch: EPOCH, client: CLIENT, counter: 1, seq: 1 as Seq, exact: true };
  rooms.receiveAnswer(ROOM, encodeOwnerReply(answer));
  expect(reported).toEqual([
    ["received", ROOM, 1],
    ["forwarded", ROOM, "edits"],
    ["forwarded", ROOM, "edits"], // Again, to the owner of the new epoch.
    ["committed", ROOM, [1]],
    ["answered", ROOM, "acked"],
  ]);
});
