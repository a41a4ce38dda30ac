import { Registry } from "prom-client";
import { expect, test } from "vitest";

import { encodePresenceAnswer, encodePresenceFromOwner } from "../../shared/bus/presence-messages.ts";
import type { ClientId, Epoch, GatewayId, RoomKey, UserId } from "../../shared/ids.ts";
import { FakeClock } from "../../shared/testing/fake-clock.ts";
import { encodeNews } from "../../shared/wire/presence.ts";
import { gatewayMetrics } from "../metrics.ts";
import type { ConnectionId } from "../ports.ts";
import { PresenceHost } from "./presence-host.ts";

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

test("[PRG47] whatever is still said to a gateway's presence once it is stopped sets no timer, and nothing is answered", async () => {
  const clock = new FakeClock();
  let said = 0;
  const say = (): void => void (said += 1);
  const silent = (): void => {};
  const sockets = { send: say, publish: say, listen: say, unlisten: say, close: say };
  const topics = { publishTo: say, listenTo: say, unlistenTo: say };
  const rooms = { follow: () => Promise.resolve(), unfollow: silent, tell: say, sayAlive: say };
  const log = { debug: silent, info: silent, warn: silent, error: silent };
  const host = new PresenceHost({ sockets, topics, rooms }, options, {
    clock,
    endOfTurn: (run) => void clock.after(0, run),
    log,
    metrics: gatewayMetrics(new Registry()),
    onOwnerMissing: say,
  });
  const hearOwner = (number: number): void => {
    const standing = { mode: "flat", participants: 1, presencePerSecond: 30, shed: 0 } as const;
    host.receiveAnswer(
      room,
      encodePresenceAnswer({ kind: "whole", epoch, number, standing, news: encodeNews({ whole: true, present, gone: [], states: [] }) }),
    );
    host.receiveFromOwner(
      room,
      encodePresenceFromOwner({
        kind: "news",
        epoch,
        number: number + 1,
        news: encodeNews({ whole: false, present, gone: [], states: [] }),
      }),
    );
    host.receiveFromOwner(room, encodePresenceFromOwner({ kind: "head", epoch, number: number + 9, standing }));
  };
  host.start();
  host.receiveEntry(room, 1, connection, ann);
  await clock.advance(100);
  hearOwner(1);
  await clock.advance(100);
  expect(said).toBeGreaterThan(5);
  expect(clock.pending).toBeGreaterThan(0);

  hearOwner(20);
  host.stop();
  said = 0;
  hearOwner(40);
  host.receiveFields(room, connection, [{ name: "tool", value: Uint8Array.of(1) }]);
  host.receiveInput(room, connection);
  host.receiveEntry(room, 1, connection, ann);
  host.receiveShed(5);
  host.receiveBackboneFound();
  host.receive(room, { kind: "leave", connection });
  await clock.advance(60_000);
  expect([said, clock.pending]).toEqual([0, 0]);
});

test("[PRG48] who is let in while it does not take what it is sent is told nothing until it does", async () => {
  const clock = new FakeClock();
  const sent: ConnectionId[] = [];
  const silent = (): void => {};
  const sockets = { send: (to: ConnectionId) => void sent.push(to), publish: silent, listen: silent, unlisten: silent, close: silent };
  const topics = { publishTo: silent, listenTo: (to: ConnectionId) => void sent.push(to), unlistenTo: silent };
  const rooms = { follow: () => Promise.resolve(), unfollow: silent, tell: silent, sayAlive: silent };
  const log = { debug: silent, info: silent, warn: silent, error: silent };
  const host = new PresenceHost({ sockets, topics, rooms }, options, {
    clock,
    endOfTurn: (run) => void clock.after(0, run),
    log,
    metrics: gatewayMetrics(new Registry()),
    onOwnerMissing: silent,
  });
  const standing = { mode: "flat", participants: 1, presencePerSecond: 30, shed: 0 } as const;
  host.receivePace(connection, "behind", [room]);
  host.receiveEntry(room, 1, connection, ann);
  host.receiveAnswer(
    room,
    encodePresenceAnswer({ kind: "whole", epoch, number: 1, standing, news: encodeNews({ whole: true, present, gone: [], states: [] }) }),
  );
  await clock.advance(1_000);
  expect(sent).toEqual([]);
  host.receivePace(connection, "keeping-up", [room]);
  await clock.advance(1_000);
  expect(sent.length).toBeGreaterThan(0);
  host.stop();
});
