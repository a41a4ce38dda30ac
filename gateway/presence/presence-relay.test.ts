import { expect, test } from "vitest";

import type { ClientId, Epoch, GatewayId, Millis, ServerId, UserId } from "../../shared/ids.ts";
import { encodePoint, encodeRectangle } from "../../shared/wire/positions.ts";
import { CURSOR, encodeDelta, VIEWPORT } from "../../shared/wire/presence.ts";
import type { ConnectionId } from "../ports.ts";
import { PresenceRelay, type PresenceRelayEffect, type PresenceRelayInput } from "./presence-relay.ts";

const options = {
  gateway: "gw" as GatewayId,
  repeatMs: 500,
  keepaliveMs: 5_000,
  spectatorAfterMs: 60_000,
  memberBytesMax: 1_000,
  memberFieldsMax: 10,
  flushMs: 15,
  ownerSilenceMsMax: 2_000,
};
const [epoch, server] = [1 as Epoch, "rs-1" as ServerId];
const [first, second] = [1, 2] as ConnectionId[] as [ConnectionId, ConnectionId];
const member = (name: string) => ({
  client: name.padEnd(16, "1") as ClientId,
  user: name as UserId,
  name,
  canWrite: true,
  spectator: false,
});
const enter = (connection: ConnectionId, name: string): PresenceRelayInput => ({ kind: "enter", connection, member: member(name) });
const look = (connection: ConnectionId): PresenceRelayInput => ({
  kind: "fields",
  connection,
  fields: [{ name: VIEWPORT, value: encodeRectangle({ x: 0, y: 0, width: 100, height: 100 }) }],
});

/** A large room. Dan, who is elsewhere, points at something. */
class LargeRoom {
  readonly presence = new PresenceRelay(options, 0, 0 as Millis);
  readonly topics = new Map<ConnectionId, Set<string>>([
    [first, new Set()],
    [second, new Set()],
  ]);
  now = 0;

  constructor() {
    const delta = encodeDelta({
      snapshot: true,
      present: ["dan", "ann", "bob"].map((name, index) => ({ ...member(name), number: index + 1 })),
      gone: [],
      states: [],
    });
    this.feed({ kind: "attached" });
    this.feed({
      kind: "answer",
      server,
      answer: {
        kind: "snapshot",
        epoch,
        number: 1,
        status: { mode: "hierarchical", participants: 3, presencePerSecond: 30, shed: 0 },
        delta,
      },
    });
  }

  feed(...inputs: PresenceRelayInput[]): PresenceRelayEffect[] {
    const effects = inputs.flatMap((input) => this.presence.receiveInput(input, this.now as Millis));
    for (const effect of effects) {
      if (effect.kind === "listen") this.topics.get(effect.connection)!.add(effect.topic);
      if (effect.kind === "unlisten") this.topics.get(effect.connection)!.delete(effect.topic);
    }
    return effects;
  }

  /** Runs everything that is due meanwhile. */
  pass(ms: number): PresenceRelayEffect[] {
    const effects: PresenceRelayEffect[] = [];
    for (const end = this.now + ms; this.now < end; this.now += 5)
      if (Math.min(this.presence.dueAt, this.presence.fieldsDueAt) <= this.now) effects.push(...this.feed({ kind: "tick" }));
    return effects;
  }

  /** The topics that receive the move. */
  pointNearby(): string[] {
    const delta = encodeDelta({
      snapshot: false,
      present: [],
      gone: [],
      states: [{ number: 1, fields: [{ name: CURSOR, value: encodePoint({ x: 10, y: 10 }) }] }],
    });
    return this.feed({ kind: "from-owner", server, message: { kind: "delta", epoch, number: 2, delta } }).flatMap((effect) =>
      effect.kind === "publish" ? [effect.topic] : [],
    );
  }
}

test("[PRG38] a client that joins again on its connection receives a snapshot, and its view ends when it leaves", () => {
  const room = new LargeRoom();
  room.feed(enter(first, "ann"), enter(second, "bob"), look(first));
  room.pass(100);
  const before = [...room.topics.get(first)!].sort();
  expect(before).toContain("editors/0/0/0");
  room.feed(enter(first, "ann"));
  expect(room.topics.get(first)!.size).toBe(0);
  expect(room.pass(100).flatMap((effect) => (effect.kind === "welcome" ? effect.connections : []))).toEqual([first]);
  expect([...room.topics.get(first)!].sort()).toEqual(before);
  room.feed({ kind: "leave", connection: first });
  expect(room.topics.get(first)!.size).toBe(0);
  expect(room.pointNearby()).toEqual(["editors/*"]);
});

test("[PRG39] a connection that joins again as another client is only that one, and nothing of the former one is kept", () => {
  const room = new LargeRoom();
  room.feed(enter(first, "ann"), look(first));
  room.pass(100);
  room.feed(enter(first, "bob"));
  const messages = room.pass(30_000).flatMap((effect) => (effect.kind === "send-to-server" ? [effect.message] : []));
  expect(messages).toContainEqual(expect.objectContaining({ kind: "members", exited: [member("ann").client] }));
  expect(messages.filter(({ kind }) => kind === "states")).toEqual([]);
  expect([...room.topics.get(first)!].sort()).toEqual(["editors", "editors/*", "everybody"]);
  room.feed(enter(second, "ann"));
  room.pass(100);
  expect([...room.topics.get(second)!].sort()).toEqual(["editors", "editors/*", "everybody"]);
});

test("[PRG46] a member that joins again while it is behind receives no presence until it keeps up", () => {
  const room = new LargeRoom();
  room.feed(enter(first, "ann"));
  room.pass(100);
  room.feed({ kind: "behind", connection: first }, enter(first, "bob"));
  expect(room.pass(100).filter(({ kind }) => kind === "welcome")).toEqual([]);
  expect(room.topics.get(first)!.size).toBe(0);
  room.feed({ kind: "keeping-up", connection: first });
  expect(room.pass(100).filter(({ kind }) => kind === "welcome")).toHaveLength(1);
});

test("[PRG51] the first member of a room receives a snapshot, and nothing before it", () => {
  const presence = new PresenceRelay(options, 0, 0 as Millis);
  const delta = encodeDelta({ snapshot: true, present: [{ ...member("ann"), number: 1 }], gone: [], states: [] });
  const inputs: PresenceRelayInput[] = [
    { kind: "shed", level: 2 },
    enter(first, "ann"),
    { kind: "attached" },
    {
      kind: "answer",
      server,
      answer: { kind: "snapshot", epoch, number: 1, status: { mode: "flat", participants: 1, presencePerSecond: 30, shed: 0 }, delta },
    },
    { kind: "tick" },
  ];
  const messages = inputs
    .flatMap((input) => presence.receiveInput(input, 0 as Millis))
    .filter(({ kind }) => kind === "publish" || kind === "publish-mode" || kind === "welcome");
  expect(messages).toEqual([
    { kind: "welcome", connections: [first], snapshot: delta, status: { mode: "flat", participants: 1, presencePerSecond: 30, shed: 2 } },
  ]);
});

const ACKED = { kind: "answer", server, answer: { kind: "acked", epoch, version: 1, number: 0 } } as const;
const sent = (effects: readonly PresenceRelayEffect[]) =>
  effects.flatMap((effect) => {
    if (effect.kind === "send-to-server") return [`${effect.server} ${effect.message.kind}`];
    return effect.kind === "ask-owner" || effect.kind === "owner-silent" ? [effect.kind] : [];
  });

/** A room with one member, in which nothing is known of the owner. */
function unknownOwner(): { feed(now: number, ...inputs: PresenceRelayInput[]): string[] } {
  const presence = new PresenceRelay(options, 0, 0 as Millis);
  const feed = (now: number, ...inputs: PresenceRelayInput[]): string[] =>
    sent([...inputs, { kind: "tick" } as const].flatMap((input) => presence.receiveInput(input, now as Millis)));
  feed(0, enter(first, "ann"));
  return { feed };
}

test("[PRG62] members wait while the owner is unknown, and are sent to the server that answers the question", () => {
  const { feed } = unknownOwner();
  expect(feed(0, { kind: "attached" })).toEqual(["ask-owner"]);
  expect(feed(400)).toEqual([]);
  expect(feed(500)).toEqual(["ask-owner"]);
  expect(feed(510, ACKED)).toEqual(["rs-1 members", "rs-1 sync"]);
});

test("[PRG63] the log's new epoch names the owner, and everything is sent to it without a question", () => {
  const { feed } = unknownOwner();
  feed(0, { kind: "attached" }, ACKED);
  expect(feed(1_000, { kind: "owner", server: "rs-2" as ServerId, epoch: 2 as Epoch })).toEqual(["rs-2 members", "rs-2 sync"]);
  expect(feed(2_000, ACKED)).not.toContain("rs-1 members"); // The former owner is not believed any more.
});

test("[PRG64] a server that does not own the room receives nothing before the question for the owner is answered", () => {
  const { feed } = unknownOwner();
  feed(0, { kind: "attached" }, ACKED);
  expect(feed(1_000, { kind: "not-owner", server })).toEqual(["ask-owner"]);
  expect(feed(1_100, { kind: "not-owner", server: "rs-9" as ServerId })).toEqual([]);
  expect(feed(1_200, ACKED)).toEqual(["rs-1 members"]); // The same server, in the same epoch: it had not begun yet.
  expect(feed(1_300, { kind: "not-owner", server: "rs-9" as ServerId })).toEqual([]); // Of a server that is not the owner.
});

test("[PRG66] after a room's server has disappeared, the gateway asks for the owner half a second later, unless the log names the next one", () => {
  const { feed } = unknownOwner();
  feed(0, { kind: "attached" }, ACKED);
  expect(feed(1_000, { kind: "server-gone", server })).toEqual([]);
  expect(feed(1_400)).toEqual([]);
  expect(feed(1_500)).toEqual(["ask-owner"]);
  expect(feed(1_600, { kind: "owner", server: "rs-2" as ServerId, epoch: 2 as Epoch })).toEqual(["rs-2 members", "rs-2 sync"]);
  expect(feed(2_000, { kind: "server-gone", server })).not.toContain("ask-owner"); // Of the former owner.
});

test("[PRG65] an owner that does not answer the question for two seconds is reported as silent", () => {
  const { feed } = unknownOwner();
  feed(0, { kind: "attached" });
  const reports: number[] = [];
  for (let now = 100; now <= 4_500; now += 100) if (feed(now).includes("owner-silent")) reports.push(now);
  expect(reports).toEqual([2_000, 4_000]);
});

test("[PRG69] a later epoch of an unknown owner ends the trust in the former owner, which may not know of it", () => {
  const presence = new PresenceRelay(options, 0, 0 as Millis);
  const feed = (input: PresenceRelayInput, now: number) => presence.receiveInput(input, now as Millis);
  feed({ kind: "attached" }, 0);
  feed(enter(first, "ann"), 0);
  feed({ kind: "owner", server, epoch }, 10);
  feed({ kind: "tick" }, 20);
  feed({ kind: "answer", server, answer: { kind: "acked", epoch, version: 1, number: 0 } }, 30);
  const [later, laterServer] = [2 as Epoch, "rs-2" as ServerId];
  feed({ kind: "owner", server: undefined, epoch: later }, 40);
  expect(feed({ kind: "tick" }, 40)).toMatchObject([{ kind: "ask-owner" }]);
  feed({ kind: "answer", server, answer: { kind: "acked", epoch, version: 1, number: 0 } }, 50);
  feed({ kind: "from-owner", server: laterServer, message: { kind: "delta", epoch: later, number: 1, delta: new Uint8Array(0) } }, 60);
  expect(feed({ kind: "tick" }, 60)).toMatchObject([
    { kind: "send-to-server", server: laterServer, message: { kind: "members", snapshot: true, entered: [{ name: "ann" }] } },
  ]);
});

test("[PRG67] a room whose members left while it had no owner is done once NATS reports that nobody owns it", () => {
  const presence = new PresenceRelay(options, 0, 0 as Millis);
  const feed = (input: PresenceRelayInput, now: number) => presence.receiveInput(input, now as Millis);
  feed({ kind: "attached" }, 0);
  feed(enter(first, "ann"), 0);
  feed({ kind: "leave", connection: first }, 10);
  expect(feed({ kind: "tick" }, 20)).toMatchObject([{ kind: "ask-owner" }]);
  expect(presence.isDone).toBe(false);
  feed({ kind: "no-responders" }, 30);
  expect(presence.isDone).toBe(true);
});

test("[PRG68] a late report that nobody owns the room does not hide a leave from the owner that was found meanwhile", () => {
  const presence = new PresenceRelay(options, 0, 0 as Millis);
  const feed = (input: PresenceRelayInput, now: number) => presence.receiveInput(input, now as Millis);
  feed({ kind: "attached" }, 0);
  feed(enter(first, "ann"), 0);
  feed({ kind: "tick" }, 10);
  feed({ kind: "owner", server, epoch }, 20);
  expect(feed({ kind: "tick" }, 30)).toMatchObject([
    { message: { kind: "members", entered: [{ name: "ann" }] } },
    { message: { kind: "sync" } },
  ]);
  feed({ kind: "leave", connection: first }, 40);
  feed({ kind: "no-responders" }, 50);
  expect(presence.isDone).toBe(false);
  expect(feed({ kind: "tick" }, 140)).toMatchObject([{ message: { kind: "members", exited: [member("ann").client] } }]);
  feed({ kind: "no-responders" }, 150);
  expect(presence.isDone, "the owner has not acknowledged the leave").toBe(false);
});
