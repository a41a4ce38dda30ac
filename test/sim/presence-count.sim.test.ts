/** Counts NATS messages of ordinary rooms on simulated time, with the gateway's and the room server's own adapters. */

import { Registry } from "prom-client";
import { expect, test } from "vitest";

import { subjectsOf } from "../../shared/bus/subjects.ts";
import { Prng } from "../../shared/collections/prng.ts";
import type { ClientId, Epoch, GatewayId, RoomKey, ServerId, UserId } from "../../shared/ids.ts";
import { readSettings } from "../../shared/settings/settings.ts";
import { SILENT_LOG } from "../../shared/testing/silent-log.ts";
import { decodeFrame } from "../../shared/wire/codec.ts";
import { encodePoint } from "../../shared/wire/positions.ts";
import { CURSOR } from "../../shared/wire/presence.ts";
import { gatewaySettings } from "../../gateway/config.ts";
import { natsPresenceServers } from "../../gateway/io/nats/nats-presence.ts";
import { gatewayMetrics } from "../../gateway/metrics.ts";
import type { ConnectionId } from "../../gateway/ports.ts";
import { PresenceRelayHost } from "../../gateway/presence/presence-relay-host.ts";
import { presenceOptions } from "../../gateway/settings/presence.ts";
import { UsageMeter } from "../../gateway/usage/usage-meter.ts";
import { roomHostOptions, roomServerSettings } from "../../room-server/config.ts";
import { natsPresence } from "../../room-server/io/nats-presence.ts";
import { roomServerMetrics } from "../../room-server/metrics.ts";
import { OwnerPresenceHost } from "../../room-server/presence/presence-host.ts";
import { Scheduler } from "./scheduler.ts";
import { SimNatsConnection } from "./sim-nats-connection.ts";
import { SimNats } from "./sim-nats.ts";
import { SimProcess } from "./sim-process.ts";
import { Trace } from "./trace.ts";

const [ROOMS, PEOPLE, MOVES_PER_SECOND, SECONDS] = [50, 4, 20, 2];
const WARM_UP_MS = 2_000;
const [gateway, server] = ["gw" as GatewayId, "rs-1" as ServerId];
const silent = (): void => {};
const NOTHING_GIVEN = { flags: {}, env: {} };

test("[SIM20] 50 rooms of 4 people with 20 cursors a second each take at most 60 NATS messages a second, and every room sees its moves", async () => {
  const trace = new Trace({ verbose: false });
  const scheduler = new Scheduler(trace, { explains: false, pulse: undefined, stepsMax: 10_000_000 });
  const prng = new Prng(20261125);
  let messages = 0;
  let isCounting = false;
  class CountedNats extends SimNats {
    override publish(...given: Parameters<SimNats["publish"]>): void {
      if (isCounting && given[0].subject.includes(".presence.")) messages += 1;
      super.publish(...given);
    }
  }
  const nats = new CountedNats(trace);
  const subjects = subjectsOf("sim");
  const connectionOf = (name: string): { process: SimProcess; connection: SimNatsConnection } => {
    const process = new SimProcess(name, scheduler, 0);
    return { process, connection: new SimNatsConnection(process, nats, scheduler, () => 0.2) };
  };
  const depsOf = (process: SimProcess) => ({
    clock: process.clock,
    endOfTurn: (run: () => void) => void process.clock.after(0, run),
    log: SILENT_LOG,
  });

  const roomServer = connectionOf("rs-1");
  const owners = new OwnerPresenceHost(
    natsPresence(roomServer.connection.nats, subjects, server, { metrics: roomServerMetrics(new Registry()) }),
    roomHostOptions(readSettings(roomServerSettings, NOTHING_GIVEN), undefined),
    {
      ...depsOf(roomServer.process),
      metrics: roomServerMetrics(new Registry()),
      operations: { report: silent },
      onDeposed: silent,
      activity: { report: silent },
      presenceSent: silent,
    },
  );

  const own = connectionOf("gw");
  const moves = new Map<string, number>();
  const publishTo = (topic: string, frame: Uint8Array): number => {
    const decoded = decodeFrame(frame);
    if (!isCounting || decoded?.type !== "presence-delta") return 0;
    moves.set(topic, (moves.get(topic) ?? 0) + decoded.delta.states.length);
    return 0;
  };
  const metrics = gatewayMetrics(new Registry());
  const adapter = natsPresenceServers(own.connection.nats, subjects, gateway, { metrics });
  const relay = new PresenceRelayHost(
    {
      sockets: { send: silent, publish: () => 0, listen: silent, unlisten: silent, whenRead: silent, close: silent },
      topics: { publishTo, listenTo: silent, unlistenTo: silent },
      servers: adapter.servers,
      usage: new UsageMeter({ tenantsMax: 10 }),
      dispatch: silent,
    },
    { ...presenceOptions(readSettings(gatewaySettings, NOTHING_GIVEN)), gateway },
    { ...depsOf(own.process), metrics },
  );
  const started = adapter.start(relay);
  await scheduler.runUntil(scheduler.now + 10, () => false);
  await started;

  const rooms = Array.from({ length: ROOMS }, (_, index) => `acme.room-${index}` as RoomKey);
  for (const [index, room] of rooms.entries()) {
    owners.begin(room, 1 as Epoch);
    relay.receiveOwner(room, server, 1 as Epoch);
    for (let person = 0; person < PEOPLE; person++) {
      const connection = (index * PEOPLE + person) as ConnectionId;
      const name = `person-${connection}`;
      scheduler.after(prng.below(WARM_UP_MS / 2), () => {
        relay.receiveEntry(room, index + 1, connection, {
          client: name.padEnd(16, "a") as ClientId,
          user: name as UserId,
          name,
          canWrite: true,
          spectator: false,
        });
        relay.receiveOwner(room, server, 1 as Epoch);
      });
      const offsetMs = prng.unit() * (1_000 / MOVES_PER_SECOND);
      for (let move = 0; move < MOVES_PER_SECOND * (SECONDS + WARM_UP_MS / 1_000); move++)
        scheduler.after(offsetMs + (move * 1_000) / MOVES_PER_SECOND, () =>
          relay.receiveFields(room, connection, [{ name: CURSOR, value: encodePoint({ x: move, y: connection }) }]),
        );
    }
  }
  await scheduler.runUntil(scheduler.now + WARM_UP_MS, () => false);
  isCounting = true;
  await scheduler.runUntil(scheduler.now + SECONDS * 1_000, () => false);
  isCounting = false;
  relay.stop();
  owners.stop();

  expect(messages / SECONDS).toBeLessThanOrEqual(60); // At most 20 in each direction, and confirmations of members.
  expect(messages / SECONDS).toBeGreaterThan(30); // Proves that messages were counted.
  expect(moves.size).toBe(ROOMS);
  // Two moves may share one tick.
  for (const shown of moves.values()) expect(shown / SECONDS / PEOPLE).toBeGreaterThan(MOVES_PER_SECOND * 0.8);
});
