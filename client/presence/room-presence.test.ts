/** Presence from the application's view, on a model server: participants, their fields, and the frames that the server receives. */

import { expect, test } from "vitest";

import type { ClientId, RoomId } from "../../shared/ids.ts";
import type { ServerFrame } from "../../shared/wire/frames.ts";
import type { RoomConnectionOptions } from "../room/room-events.ts";
import { RoomConnection } from "../room/room-connection-host.ts";
import { ClientFakeClock } from "../testing/fake-clock.ts";
import { ModelServer } from "../testing/model-server.ts";

const NOTES = "notes" as RoomId;
const MODE: ServerFrame & { type: "mode" } = {
  type: "mode",
  channel: 1,
  mode: "hierarchical",
  participants: 60,
  presencePerSecond: 10,
  shed: 0,
};

const serverOn = (): ModelServer => new ModelServer(new ClientFakeClock(), { faults: { delayMsMax: 5 } });

class App {
  readonly host: RoomConnection;
  readonly events: string[] = [];

  constructor(server: ModelServer, seed: number, options: Partial<RoomConnectionOptions> = {}) {
    this.host = new RoomConnection({ url: "ws://h", token: "t", room: NOTES, ...options } as RoomConnectionOptions, server.world(seed));
    this.host.on("participants", (participants) => this.events.push(`${participants.size} there`));
    this.host.on("mode", ({ mode }) => this.events.push(mode));
    this.host.on("error", ({ kind }) => this.events.push(kind));
  }

  /** The presence of all other participants. */
  get others(): unknown[] {
    return [...this.host.participants.values()].filter(({ self }) => !self).map(({ cursor, fields }) => ({ cursor, fields }));
  }

  get self(): unknown {
    return [...this.host.participants.values()].find(({ self }) => self)?.fields;
  }
}

const framesReceived = (server: ModelServer): string[][] =>
  server.receivedFrames.flatMap((frame) => (frame.type === "presence" ? [frame.fields.map(({ name }) => name)] : []));

test("[RPR1] all participants, including late ones, see who is present and the presence of each", async () => {
  const server = serverOn();
  const ann = new App(server, 1);
  ann.host.presence.set({ cursor: { x: 1.2, y: 2 }, mood: "calm" });
  await server.clock.advance(1_000);
  const bob = new App(server, 2);
  await server.clock.advance(1_000);
  expect(bob.others).toEqual([{ cursor: { x: 1, y: 2 }, fields: { mood: "calm" } }]);
  expect([ann.self, ann.events, bob.events.at(-1)]).toEqual([{ mood: "calm" }, ["1 there", "2 there"], "2 there"]);
  bob.host.destroy();
  await server.clock.advance(100);
  expect([ann.others, ann.events.at(-1)]).toEqual([[], "1 there"]);
});

test("[RPR2] fields set together go out as one frame with only the changes, at the server's rate", async () => {
  const server = serverOn();
  const ann = new App(server, 1);
  await server.clock.advance(1_000);
  server.send(MODE);
  ann.host.presence.set({ cursor: { x: 0, y: 0 } });
  ann.host.presence.set({ mood: "calm", place: "here" });
  await server.clock.advance(500);
  const { length } = framesReceived(server);
  expect(framesReceived(server)).toEqual([["@cursor", "mood", "place"]]);
  for (let x = 1; x <= 100; x++) {
    ann.host.presence.set({ cursor: { x, y: 0 } });
    await server.clock.advance(10);
  }
  await server.clock.advance(200);
  const moves = framesReceived(server).slice(length);
  expect(moves.length).toBeLessThanOrEqual(11);
  expect(moves.every((names) => names.join() === "@cursor")).toBe(true);
  expect(ann.events).toContain("hierarchical");
  expect([ann.host.mode, ann.host.mode?.presencePerSecond]).toEqual([
    { mode: "hierarchical", participants: 60, presencePerSecond: 10, shed: 0 },
    10,
  ]);
  const bob = new App(server, 2);
  await server.clock.advance(1_000);
  expect(bob.others, "the last is never lost").toMatchObject([{ cursor: { x: 100, y: 0 } }]);
});

test("[RPR3] after a broken connection all fields are sent again, and no participant disappears in the meantime", async () => {
  const server = serverOn();
  const [ann, bob] = [new App(server, 3), new App(server, 4)];
  ann.host.presence.set({ mood: "calm", gone: true });
  await server.clock.advance(1_000);
  const before = bob.events.length;
  server.cut();
  ann.host.presence.set({ gone: null });
  await server.clock.advance(10);
  expect([ann.host.participants.size, bob.others]).toEqual([2, [{ cursor: undefined, fields: { mood: "calm", gone: true } }]]);
  await server.clock.advance(2_000);
  expect(bob.others).toEqual([{ cursor: undefined, fields: { mood: "calm" } }]);
  expect(bob.events.slice(before).filter((received) => received === "0 there")).toEqual([]);
});

test("[RPR12] a field from an earlier connection that the room shows only after the first snapshot is removed there", async () => {
  const server = serverOn();
  const ann = new App(server, 1);
  ann.host.presence.set({ mood: "calm" });
  await server.clock.advance(1_000);
  const { number } = server.presence(NOTES).snapshot.present[0]!;
  const late: ServerFrame = {
    type: "presence-delta",
    channel: server.channelOf(NOTES),
    delta: { snapshot: false, present: [], gone: [], states: [{ number, fields: [{ name: "tool", value: Uint8Array.of(1) }] }] },
  };
  server.send(late);
  await server.clock.advance(1_000);
  expect(framesReceived(server)).toEqual([["mood"], ["tool"]]);
  expect(server.receivedFrames.findLast(({ type }) => type === "presence")).toMatchObject({ fields: [{ value: new Uint8Array() }] });
});

test("[RPR4] after a long time without a connection the list of participants is empty; leaving the room empties it at once", async () => {
  const server = serverOn();
  const [ann, bob] = [new App(server, 1), new App(server, 2)];
  await server.clock.advance(1_000);
  server.reachable = false;
  server.cut();
  await server.clock.advance(3_100);
  expect(ann.host.participants.size).toBe(0);
  server.reachable = true;
  await server.clock.advance(60_000);
  expect(ann.host.participants.size).toBe(2);
  bob.host.disconnect();
  expect(bob.host.participants.size).toBe(0);
  await server.clock.advance(100);
  expect(ann.host.participants.size).toBe(1);
});

test("[RPR5] the room is sent the removal of fields that were removed while away", async () => {
  const server = serverOn();
  const ann = new App(server, 1);
  ann.host.presence.set({ mood: "calm" });
  await server.clock.advance(1_000);
  const client = ann.host.client as ClientId;
  server.reachable = false;
  server.cut("silently"); // The server keeps the place of a participant that may return.
  ann.host.presence.set({ mood: null });
  await server.clock.advance(3_000);
  server.presence().enter(client);
  server.presence().show(client, [{ name: "mood", value: new TextEncoder().encode('"calm"') }]);
  server.reachable = true;
  await server.clock.advance(60_000);
  expect(server.presence().snapshot.states).toEqual([]);
});

test("[RPR6] presence over the limit is reported and not sent; an invalid field name is the application's error", async () => {
  const server = serverOn();
  const ann = new App(server, 1);
  await server.clock.advance(1_000);
  ann.host.presence.set({ essay: "x".repeat(5_000) });
  await server.clock.advance(1_000);
  expect([ann.events.at(-1), framesReceived(server)]).toEqual(["presence-too-large", []]);
  expect(() => ann.host.presence.set({ "@mood": 1 })).toThrow(/the first no @/);
  expect(() => ann.host.presence.set({ mood: "calm", coroom: 1 })).toThrow('a field cannot be named "coroom": this name is reserved');
  expect(() => ann.host.presence.set({ cursor: { x: NaN, y: 0 } })).toThrow("`cursor` needs x and y, numbers from");
});

test("[RPR7] presence sends nothing outside the room, and keeps no process alive", async () => {
  const server = serverOn();
  const ann = new App(server, 1, { connect: false });
  ann.host.presence.set({ mood: "calm" });
  await server.clock.advance(1_000);
  expect([server.clock.pending, framesReceived(server)]).toEqual([0, []]);
  ann.host.connect();
  await server.clock.advance(1_000);
  ann.host.presence.set({ mood: "gone" });
  ann.host.destroy();
  await server.clock.advance(10_000);
  expect([server.clock.pending, framesReceived(server)]).toEqual([0, [["mood"]]]);
});
