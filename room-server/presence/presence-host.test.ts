import { Registry } from "prom-client";
import { expect, test } from "vitest";

import type { PresenceEntry, PresenceUp } from "../../shared/bus/presence-batches.ts";
import { decodePresenceFromServer, encodePresenceToOwner } from "../../shared/bus/presence-messages.ts";
import type { ClientId, Epoch, GatewayId, RoomKey, UserId } from "../../shared/ids.ts";
import { FakeClock } from "../../shared/testing/fake-clock.ts";
import { roomServerMetrics } from "../metrics.ts";
import type { PresenceBus } from "../ports.ts";
import { OwnerPresenceHost } from "./presence-host.ts";

const options = {
  participantsMax: 100,
  presenceBytesMax: 10_000,
  presenceTickMs: 50,
  presenceGatherMs: 80,
  gatewaySilenceMsMax: 2_000,
  presenceSilenceMsMax: 12_000,
  beaconMs: 1_000,
  beaconsWhenQuiet: 3,
  flatParticipantsMax: 50,
  flatAgainParticipants: 40,
  modeMsMin: 5_000,
};
const room = "acme.notes" as RoomKey;
const gateway = "gw" as GatewayId;
const silent = (): void => {};
const log = { debug: silent, info: silent, warn: silent, error: silent };

function start(clock: FakeClock) {
  const sent: { readonly gateway: GatewayId; readonly entries: readonly PresenceEntry[] }[] = [];
  let receive: (batch: PresenceUp) => void = silent;
  const bus: PresenceBus = {
    sendBatch: (to, { entries }) => void sent.push({ gateway: to, entries }),
    onBatch: (given) => void (receive = given),
    onHeartbeat: silent,
    connectionStatus: () => ({ isUp: true, losses: 0 }),
  };
  const host = new OwnerPresenceHost(bus, options, {
    clock,
    endOfTurn: (run) => void clock.after(0, run),
    log,
    metrics: roomServerMetrics(new Registry()),
    operations: { report: silent },
    onDeposed: silent,
    activity: { report: silent },
    presenceSent: silent,
  });
  const messages = () =>
    sent.flatMap(({ entries }) => entries.map((entry) => ({ room: entry.room, ...decodePresenceFromServer(entry.message)! })));
  return { host, sent, messages, receiveBatch: (batch: PresenceUp) => receive(batch) };
}

function enter(rooms: readonly RoomKey[], version: number, ...names: string[]): PresenceUp {
  const entered = names.map((name) => ({
    client: name.padEnd(16, "1") as ClientId,
    user: name as UserId,
    name,
    canWrite: true,
    spectator: false,
  }));
  const message = encodePresenceToOwner({ kind: "members", gateway, epoch: 0 as Epoch, version, snapshot: true, entered, exited: [] });
  return { kind: "up", gateway, sentAtMs: 0, entries: rooms.map((each) => ({ room: each, message })) };
}

test("[PRS26] an ownership that ends before it has sent anything sends nothing, not even after the room began again", async () => {
  const clock = new FakeClock();
  const { host, messages, receiveBatch } = start(clock);
  host.begin(room, 1 as Epoch);
  host.end(room);
  host.begin(room, 2 as Epoch);
  receiveBatch(enter([room], 1, "ann"));
  await clock.advance(5_000);
  expect([...new Set(messages().map((message) => ("epoch" in message ? message.epoch : undefined)))]).toEqual([2]);
  host.stop();
});

test("[PRS27] a gateway receives the deltas of all its rooms in one message per tick", async () => {
  const clock = new FakeClock();
  const rooms = Array.from({ length: 50 }, (_, index) => `acme.room-${index}` as RoomKey);
  const { host, sent, messages, receiveBatch } = start(clock);
  for (const each of rooms) host.begin(each, 1 as Epoch);
  await clock.advance(500);
  receiveBatch(enter(rooms, 1, "ann"));
  await clock.advance(500);
  sent.length = 0;
  for (let tick = 1; tick <= 20; tick++) {
    receiveBatch(enter(rooms, 1 + tick, ...Array.from({ length: 1 + tick }, (_, index) => `user${index}`)));
    await clock.advance(50);
  }
  await clock.advance(100);
  const deltas = messages().filter(({ kind }) => kind === "delta");
  expect(deltas).toHaveLength(20 * rooms.length);
  expect(sent.length).toBeLessThanOrEqual(2 * 20 + 2); // The acks of a batch, and the deltas of the tick.
  host.stop();
});

test("[PRS28] a gateway that believes this server owns a room receives the answer that it does not", async () => {
  const clock = new FakeClock();
  const { host, messages, receiveBatch } = start(clock);
  receiveBatch(enter([room], 1, "ann"));
  await clock.advance(100);
  expect(messages()).toEqual([{ room, kind: "not-owner" }]);
  host.stop();
});
