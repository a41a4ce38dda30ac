import { Registry } from "prom-client";
import { expect, test } from "vitest";

import { encodePresenceDown } from "../../shared/bus/presence-batches.ts";
import { encodePresenceFromServer, type PresenceFromServer } from "../../shared/bus/presence-messages.ts";
import type { ClientId, Epoch, GatewayId, RoomKey, ServerId, UserId } from "../../shared/ids.ts";
import { FakeClock } from "../../shared/testing/fake-clock.ts";
import { encodeDelta } from "../../shared/wire/presence.ts";
import { gatewayMetrics } from "../metrics.ts";
import type { ConnectionId } from "../ports.ts";
import { UsageMeter } from "../usage/usage-meter.ts";
import { PresenceRelayHost } from "./presence-relay-host.ts";

const options = {
  gateway: "gw" as GatewayId,
  repeatMs: 500,
  keepaliveMs: 5_000,
  spectatorAfterMs: 60_000,
  memberBytesMax: 1_000,
  memberFieldsMax: 10,
  flushMs: 15,
  ownerSilenceMsMax: 2_000,
  heartbeatMs: 500,
};
const room = "acme.notes" as RoomKey;
const [connection, epoch] = [1 as ConnectionId, 1 as Epoch];
const ann = { client: "client0000000001" as ClientId, user: "ann" as UserId, name: "Ann", canWrite: true, spectator: false };
const present = [{ ...ann, number: 1 }];
const server = "rs-1" as ServerId;
const silent = (): void => {};
const timing = { tickMs: 50, slots: 1, sendAtMs: 0 };

function batchOf(...messages: PresenceFromServer[]): Uint8Array {
  return encodePresenceDown({ timing, entries: messages.map((message) => ({ room, message: encodePresenceFromServer(message) })) });
}

type Ports = ConstructorParameters<typeof PresenceRelayHost>[0];

/** Ports that do nothing, except those that the test gives. */
function hostWith(given: { [Port in "sockets" | "topics" | "servers"]?: Partial<Ports[Port]> } & Partial<Pick<Ports, "dispatch">>) {
  const clock = new FakeClock();
  const ports = {
    sockets: { send: silent, publish: () => 0, listen: silent, unlisten: silent, whenRead: silent, close: silent, ...given.sockets },
    topics: { publishTo: () => 0, listenTo: silent, unlistenTo: silent, ...given.topics },
    servers: { sendBatch: silent, askOwner: silent, publishHeartbeat: silent, ...given.servers },
    dispatch: given.dispatch ?? silent,
    usage: new UsageMeter({ tenantsMax: 10 }),
  };
  const deps = { clock, endOfTurn: (run: () => void) => void clock.after(0, run), metrics: gatewayMetrics(new Registry()) };
  return { clock, host: new PresenceRelayHost(ports, options, deps) };
}

test("[PRG47] a stopped presence host sets no timer and sends nothing after any message", async () => {
  let sentCount = 0;
  const countSent = (): number => (sentCount += 1);
  const { clock, host } = hostWith({
    sockets: { send: countSent, publish: countSent, listen: countSent, unlisten: countSent, whenRead: countSent, close: countSent },
    topics: { publishTo: countSent, listenTo: countSent, unlistenTo: countSent },
    servers: { sendBatch: countSent, askOwner: countSent, publishHeartbeat: countSent },
    dispatch: countSent,
  });
  const receiveOwner = (number: number): void => {
    const status = { mode: "flat", participants: 1, presencePerSecond: 30, shed: 0 } as const;
    const snapshot = encodeDelta({ snapshot: true, present, gone: [], states: [] });
    const delta = encodeDelta({ snapshot: false, present, gone: [], states: [] });
    host.receiveBatch(
      server,
      batchOf(
        { kind: "snapshot", epoch, number, status, delta: snapshot },
        { kind: "delta", epoch, number: number + 1, delta },
        { kind: "head", epoch, number: number + 9, status },
      ),
    );
  };
  host.start();
  host.receiveEntry(room, 1, connection, ann);
  await clock.advance(100);
  receiveOwner(1);
  await clock.advance(100);
  expect(sentCount).toBeGreaterThan(5);
  expect(clock.pending).toBeGreaterThan(0);

  receiveOwner(20);
  host.stop();
  sentCount = 0;
  receiveOwner(40);
  host.receiveFields(room, connection, [{ name: "tool", value: Uint8Array.of(1) }]);
  host.receiveActivity(room, connection);
  host.receiveEntry(room, 1, connection, ann);
  host.receiveShed(5);
  host.receiveBackboneFound();
  host.receiveInput(room, { kind: "leave", connection });
  await clock.advance(60_000);
  expect([sentCount, clock.pending]).toEqual([0, 0]);
});

test("[PRG48] a member that is behind when it joins receives no presence until it keeps up", async () => {
  const sent: ConnectionId[] = [];
  const noteSent = (to: ConnectionId): void => void sent.push(to);
  const { clock, host } = hostWith({ sockets: { send: noteSent }, topics: { listenTo: noteSent } });
  const status = { mode: "flat", participants: 1, presencePerSecond: 30, shed: 0 } as const;
  host.receiveReadProgress(connection, "behind", [room]);
  host.receiveEntry(room, 1, connection, ann);
  const delta = encodeDelta({ snapshot: true, present, gone: [], states: [] });
  host.receiveBatch(server, batchOf({ kind: "snapshot", epoch, number: 1, status, delta }));
  await clock.advance(1_000);
  expect(sent).toEqual([]);
  host.receiveReadProgress(connection, "keeping-up", [room]);
  await clock.advance(1_000);
  expect(sent.length).toBeGreaterThan(0);
  host.stop();
});

/** A host with Ann in a room, whose owner has sent a snapshot, and the messages that it sends to room servers. */
async function joined() {
  const batches: ServerId[] = [];
  const dispatched: object[] = [];
  const { clock, host } = hostWith({
    servers: { sendBatch: (to) => void batches.push(to) },
    dispatch: (effect) => void dispatched.push(effect),
  });
  const status = { mode: "flat", participants: 1, presencePerSecond: 30, shed: 0 } as const;
  const delta = encodeDelta({ snapshot: true, present, gone: [], states: [] });
  host.receiveEntry(room, 1, connection, ann);
  const receiveOwner = (): void => host.receiveBatch(server, batchOf({ kind: "snapshot", epoch, number: 1, status, delta }));
  receiveOwner();
  await clock.advance(100);
  return { host, clock, batches, dispatched, receiveOwner };
}

/** Whether the host has announced to the owner that Ann left: once acknowledged, it holds the room no more. */
async function hasLeft({ host, clock }: Awaited<ReturnType<typeof joined>>): Promise<boolean> {
  await clock.advance(200);
  for (let version = 1; version < 5; version++) host.receiveBatch(server, batchOf({ kind: "acked", epoch, version, number: 1 }));
  return host.epochOf(room) === undefined;
}

test("[PRG77] a member that leaves is removed at once, and one that moves to another gateway after two seconds", async () => {
  const [left, moving] = [await joined(), await joined()];
  left.host.receiveLeave(room, connection, false);
  moving.host.receiveLeave(room, connection, true);
  expect([await hasLeft(left), await hasLeft(moving)]).toEqual([true, false]);
  await moving.clock.advance(2_000);
  expect(await hasLeft(moving)).toBe(true);
});

test("[PRG78] a room whose server is lost sends nothing to it, and the gateway looks for another owner", async () => {
  const { host, clock, batches, dispatched } = await joined();
  host.receiveServerGone("rs-2" as ServerId);
  host.receiveFields(room, connection, [{ name: "tool", value: Uint8Array.of(1) }]);
  await clock.advance(100);
  expect(batches.splice(0), "another server is lost").toContain(server);
  host.receiveServerGone(server);
  host.receiveFields(room, connection, [{ name: "tool", value: Uint8Array.of(2) }]);
  await clock.advance(10_000);
  expect(batches).toEqual([]);
  host.receiveNoOwner(room);
  expect(dispatched).toContainEqual({ kind: "owner-missing", room });
});

test("[PRG79] while NATS is out of reach, the gateway sends the owner nothing, and afterwards its members again", async () => {
  const { host, clock, batches } = await joined();
  host.receiveBackboneLost();
  batches.length = 0;
  await clock.advance(10_000);
  expect(batches).toEqual([]);
  host.receiveBackboneFound();
  await clock.advance(1_000);
  expect(batches).toContain(server);
});

test("[PRG80] a new shed level reaches all rooms within 100 ms, and at most a tenth of them at once", async () => {
  const rooms = Array.from({ length: 100 }, (_, index) => `acme.room-${index}` as RoomKey);
  let modes = 0;
  const { clock, host } = hostWith({ topics: { publishTo: () => (modes += 1) } });
  const status = { mode: "flat", participants: 1, presencePerSecond: 30, shed: 0 } as const;
  const delta = encodeDelta({ snapshot: true, present, gone: [], states: [] });
  const message = encodePresenceFromServer({ kind: "snapshot", epoch, number: 1, status, delta });
  rooms.forEach((key, index) => host.receiveEntry(key, index, connection, ann));
  host.receiveBatch(server, encodePresenceDown({ timing, entries: rooms.map((key) => ({ room: key, message })) }));
  await clock.advance(1_000);

  modes = 0;
  host.receiveShed(2);
  expect(modes).toBe(10);
  for (let turn = 2; turn <= 10; turn++) {
    await clock.advance(10);
    expect(modes).toBe(10 * turn);
  }
  await clock.advance(1_000);
  expect(modes).toBe(100);
  host.stop();
});
