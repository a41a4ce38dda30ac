import { expect, test } from "vitest";

import type { ClientId, Epoch, GatewayId, Millis, UserId } from "../../shared/ids.ts";
import { encodePoint, encodeRectangle } from "../../shared/wire/positions.ts";
import { CURSOR, encodeDelta, VIEWPORT } from "../../shared/wire/presence.ts";
import type { ConnectionId } from "../ports.ts";
import { PresenceRelay } from "./presence-relay.ts";
import type { PresenceRelayEffect, PresenceRelayInput } from "./relay-messages.ts";

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
const epoch = 1 as Epoch;
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
      if (this.presence.dueAt <= this.now) effects.push(...this.feed({ kind: "tick" }));
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
    return this.feed({ kind: "from-owner", message: { kind: "delta", epoch, number: 2, delta } }).flatMap((effect) =>
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
  const messages = room.pass(30_000).flatMap((effect) => (effect.kind === "send-to-owner" ? [effect.message] : []));
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
