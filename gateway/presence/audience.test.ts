import { expect, test } from "vitest";

import type { ClientId, Millis, UserId } from "../../shared/ids.ts";
import { CURSOR, decodeDelta, encodeDelta, type ParticipantEntry, type PresenceDelta, VIEWPORT } from "../../shared/wire/presence.ts";
import type { PresenceMember, PresenceStatus } from "../../shared/bus/presence-messages.ts";
import { encodePoint, encodeRectangle, type Rectangle } from "../../shared/wire/positions.ts";
import type { ConnectionId } from "../ports.ts";
import { Audience, type AudienceEffect } from "./audience.ts";

const at = (ms: number) => ms as Millis;
const [ann, bob] = [1 as ConnectionId, 2 as ConnectionId];
const HERE = { x: 0, y: 0, width: 100, height: 100 };
const cursor = (x: number) => ({ number: 1, fields: [{ name: CURSOR, value: encodePoint({ x, y: 0 }) }] });
const person: ParticipantEntry = {
  number: 1,
  client: "client0000000001" as ClientId,
  user: "ann" as UserId,
  name: "Ann",
  canWrite: true,
  spectator: false,
};
const delta = (change: Partial<PresenceDelta>): PresenceDelta => ({ snapshot: false, present: [], gone: [], states: [], ...change });

function nameOf(bytes: Uint8Array): string {
  const { snapshot, states } = decodeDelta(bytes)!;
  if (snapshot) return "snapshot";
  return states.length > 0 ? "move" : "members";
}

/**
 * A room with one participant who moves, and the frames that the listening connections receive: "move", "snapshot" or
 * "members". `sender`: the connection of the participant who moves.
 */
function room({ sender }: { sender?: ConnectionId } = {}) {
  let x = 0;
  let now = 0;
  const here = new Map<ConnectionId, PresenceMember>();
  const everything = (): PresenceDelta => delta({ snapshot: true, present: [person], states: [cursor(x)] });
  const audience = new Audience(
    {
      of: (connection) => here.get(connection),
      connectionsOf: (client) => [...here].flatMap(([connection, member]) => (member.client === client ? [connection] : [])),
      soleConnection: () => sender,
    },
    {
      isEmpty: false,
      clientOf: () => person.client,
      get everything() {
        return everything();
      },
      get snapshot() {
        return encodeDelta(everything());
      },
    },
  );
  const topics = new Map<ConnectionId, Set<string>>([
    [ann, new Set()],
    [bob, new Set()],
  ]);
  const received = new Map<ConnectionId, string[]>([
    [ann, []],
    [bob, []],
  ]);
  const carryOut = (effects: readonly AudienceEffect[]): void => {
    for (const effect of effects) {
      switch (effect.kind) {
        case "listen":
          topics.get(effect.connection)!.add(effect.topic);
          break;
        case "unlisten":
          topics.get(effect.connection)!.delete(effect.topic);
          break;
        case "send":
          received.get(effect.to)!.push(nameOf(effect.delta));
          break;
        case "welcome":
        case "publish-mode":
          break;
        default:
          for (const [connection, listens] of topics)
            if (listens.has(effect.topic) && effect.except !== connection) received.get(connection)!.push(nameOf(effect.delta));
      }
    }
  };
  const send = (change: PresenceDelta): void => {
    now += 50;
    carryOut(audience.sendUpdate({ bytes: encodeDelta(change), delta: change }, at(now)));
  };
  return {
    audience,
    topics,
    carryOut,
    enter: (connection: ConnectionId, lane: "editors" | "spectators", view?: Rectangle): void => {
      const client = `client${connection}`.padEnd(16, "0") as ClientId;
      here.set(connection, { ...person, client, spectator: lane === "spectators" });
      if (view !== undefined) carryOut(audience.receiveShown([{ client, fields: [{ name: VIEWPORT, value: encodeRectangle(view) }] }]));
      carryOut(audience.receiveEntry(connection, undefined));
      carryOut(audience.receiveTick(at(now)));
    },
    become: (connection: ConnectionId, lane: "editors" | "spectators"): void => {
      const member = { ...here.get(connection)!, spectator: lane === "spectators" };
      here.set(connection, member);
      audience.changeLanes([member]);
    },
    move: (to: number) => send(delta({ states: [cursor((x = to))] })),
    joined: () => send(delta({ present: [person] })),
    newOwner: () => send(delta({ snapshot: true, present: [person], states: [cursor(x)] })),
    status: (mode: "flat" | "hierarchical", shed: number) =>
      carryOut(audience.receiveStatus({ mode, participants: 1, presencePerSecond: 30, shed }, at(now))),
    pass: (ms: number) => carryOut(audience.receiveTick(at((now += ms)))),
    /** Returns what the connection has received since the last call. */
    received: (connection: ConnectionId) => received.get(connection)!.splice(0),
  };
}

test("[REA1] in a small room every member receives every delta immediately, except its own", () => {
  const { audience, enter, move, received } = room({ sender: ann });
  enter(ann, "editors", HERE);
  enter(bob, "spectators");
  move(5_000);
  expect([received(ann), received(bob)]).toEqual([[], ["move"]]);
  expect(audience.dueAt).toBe(Number.POSITIVE_INFINITY);
});

test("[REA2] in a hierarchical room members receive presence by view and lane, and in a flat one again what they lacked", () => {
  const { enter, status, move, received, topics, joined } = room();
  enter(ann, "editors", HERE);
  enter(bob, "editors");
  status("hierarchical", 0);
  move(5_000);
  expect([received(ann), received(bob)]).toEqual([["move"], ["move"]]); // The cursor left the view.
  move(5_200);
  joined();
  expect([received(ann), received(bob)]).toEqual([["members"], ["move", "members"]]);
  status("flat", 0);
  expect([received(ann), received(bob)]).toEqual([["snapshot"], ["snapshot"]]);
  move(9_000);
  expect([received(ann), received(bob)]).toEqual([["move"], ["move"]]);
  expect([...topics.get(ann)!]).toEqual(["everybody"]);
});

test("[REA3] a spectator receives presence at its interval, and the remaining changes at the next tick", () => {
  const { audience, enter, status, move, pass, received } = room();
  enter(ann, "spectators");
  status("hierarchical", 0);
  move(1);
  move(2);
  expect(received(ann)).toEqual([]);
  expect(audience.dueAt).toBe(200);
  pass(100);
  expect(received(ann)).toEqual(["move"]);
});

test("[REA4] a shedding gateway uses lanes in a small room too, and sends what was left out when the load is over", () => {
  const { enter, status, move, joined, received } = room();
  enter(ann, "editors", HERE);
  status("flat", 5);
  status("flat", 6);
  move(7);
  for (let ticks = 0; ticks < 4; ticks++) joined();
  expect(received(ann)).toEqual(["members"]);
  status("flat", 0);
  expect(received(ann)).toEqual(["snapshot"]);
});

test("[REA12] no shed level, of the gateway or of the owner, stops presence: every member receives the newest state within two seconds", () => {
  for (const shed of [1, 2, 3, 4, 5, 6, 7, 8]) {
    for (const lane of ["editors", "spectators"] as const) {
      const { enter, status, move, pass, received } = room();
      enter(ann, lane);
      status("flat", shed);
      for (let turn = 1; turn <= 3; turn++) {
        move(turn);
        pass(2_000);
        expect(received(ann), `${lane} at level ${shed}`).toEqual(["move"]);
      }
    }
  }
});

test("[REA5] the first snapshot of a new owner reaches every lane", () => {
  const { audience, enter, status, newOwner, received, move } = room();
  enter(ann, "editors", HERE);
  enter(bob, "spectators", HERE);
  status("hierarchical", 0);
  move(3);
  newOwner();
  expect([received(ann), received(bob)]).toEqual([["move", "snapshot"], ["snapshot"]]);
  expect(audience.dueAt).toBe(Number.POSITIVE_INFINITY);
});

test("[REA7] a member who becomes a spectator in a small room is in the lane of spectators once the room has lanes", () => {
  const { audience, topics, carryOut, enter, become } = room();
  enter(ann, "editors");
  become(ann, "spectators");
  enter(bob, "editors");
  carryOut(audience.receiveBehind(bob));
  become(bob, "spectators");
  carryOut(audience.receiveShed(1, at(1_000)));
  expect([topics.get(ann), topics.get(bob)], "bob first has to receive the snapshot").toEqual([
    new Set(["everybody", "spectators", "spectators/*"]),
    new Set(),
  ]);
});

test("[REA6] a connection that leaves listens to no topic", () => {
  const { audience, enter, carryOut, status, topics } = room();
  status("hierarchical", 0);
  enter(ann, "editors", HERE);
  carryOut(audience.receiveLeave(ann, undefined));
  carryOut(audience.receiveLeave(ann, undefined));
  expect(topics.get(ann)!.size).toBe(0);
});

test("[REA8] a connection that leaves before its snapshot, or while it is behind, receives none", () => {
  const { audience } = room();
  audience.receiveEntry(ann, undefined);
  audience.receiveLeave(ann, undefined);
  expect(audience.receiveTick(at(0)), "before its snapshot").toEqual([]);
  audience.receiveBehind(ann);
  audience.receiveKeepingUp(ann);
  expect(audience.receiveTick(at(0)), "while it is no member").toEqual([]);
  const { audience: other, enter } = room();
  enter(ann, "editors");
  other.receiveBehind(ann);
  other.receiveLeave(ann, undefined);
  other.receiveKeepingUp(ann);
  expect(other.receiveTick(at(0)), "while it is behind").toEqual([]);
});

test("[REA9] a member that comes back without a view looks at the whole canvas", () => {
  const { audience, enter, status, carryOut, topics } = room();
  status("hierarchical", 0);
  enter(ann, "editors", HERE);
  expect([...topics.get(ann)!]).not.toContain("editors/*");
  carryOut(audience.receiveLeave(ann, `client${ann}`.padEnd(16, "0") as ClientId));
  enter(ann, "editors");
  expect([...topics.get(ann)!]).toContain("editors/*");
});

test("[REA10] a spectator who becomes an editor alone receives what its lane left out", () => {
  const { enter, status, move, become, pass, received, topics } = room();
  status("flat", 2);
  enter(ann, "spectators");
  enter(bob, "spectators");
  move(7);
  become(ann, "editors");
  pass(1_000);
  expect([received(ann), received(bob)]).toEqual([["snapshot"], []]);
  expect([...topics.get(ann)!]).toEqual(["everybody", "editors", "editors/*"]);
});

test("[REA11] members are sent the mode when it changes, and not when only the number of participants does", () => {
  const { audience, enter } = room();
  enter(ann, "editors");
  const modesAfter = (change: Partial<PresenceStatus>): number =>
    audience
      .receiveStatus({ mode: "flat", participants: 1, presencePerSecond: 30, shed: 0, ...change }, at(0))
      .filter(({ kind }) => kind === "publish-mode").length;
  expect([
    modesAfter({ participants: 2 }),
    modesAfter({ presencePerSecond: 20 }),
    modesAfter({ presencePerSecond: 20, shed: 1 }),
    modesAfter({ presencePerSecond: 20, shed: 1, mode: "hierarchical" }),
    modesAfter({ presencePerSecond: 20, shed: 1, mode: "hierarchical" }),
  ]).toEqual([0, 1, 1, 1, 0]);
});

test("[PRG49] a lane's flush with very many field names is split into several frames that lack nothing", () => {
  const { audience, enter, status } = room();
  status("hierarchical", 0);
  enter(ann, "spectators");
  const names = Array.from({ length: 4_000 }, (_, index) => `${index}`.padEnd(63, "\u2654"));
  const shown = delta({ states: [{ number: 1, fields: names.map((name) => ({ name, value: Uint8Array.of(1) })) }] });
  audience.sendUpdate({ bytes: encodeDelta(shown), delta: shown }, at(10));
  const received = audience.receiveTick(at(1_000)).flatMap((effect) => (effect.kind === "publish" ? [effect.delta] : []));
  expect(received.length).toBeGreaterThan(2);
  for (const { byteLength } of received) expect(byteLength).toBeLessThanOrEqual(256 * 1024);
  expect(received.flatMap((bytes) => decodeDelta(bytes)!.states.flatMap(({ fields }) => fields.map(({ name }) => name)))).toEqual(names);
});
