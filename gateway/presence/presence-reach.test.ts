import { expect, test } from "vitest";

import type { ClientId, Millis, UserId } from "../../shared/ids.ts";
import { CURSOR, decodeNews, encodeNews, type Participant, type PresenceNews } from "../../shared/wire/presence.ts";
import { encodePoint } from "../../shared/wire/positions.ts";
import type { ConnectionId } from "../ports.ts";
import { Reach, type ReachEffect } from "./presence-reach.ts";

const at = (ms: number) => ms as Millis;
const [ann, bob] = [1 as ConnectionId, 2 as ConnectionId];
const HERE = { x: 0, y: 0, width: 100, height: 100 };
const cursor = (x: number) => ({ number: 1, fields: [{ name: CURSOR, value: encodePoint({ x, y: 0 }) }] });
const person: Participant = {
  number: 1,
  client: "client0000000001" as ClientId,
  user: "ann" as UserId,
  name: "Ann",
  canWrite: true,
  spectator: false,
};
const news = (change: Partial<PresenceNews>): PresenceNews => ({ whole: false, present: [], gone: [], states: [], ...change });

function nameOf(bytes: Uint8Array): string {
  const { whole, states } = decodeNews(bytes)!;
  if (whole) return "whole";
  return states.length > 0 ? "move" : "members";
}

/** A room of one who moves, and what those who listen are told: a cursor's place, "whole" or "members". */
function room() {
  let x = 0;
  let now = 0;
  const reach = new Reach({
    get everything() {
      return news({ whole: true, present: [person], states: [cursor(x)] });
    },
  });
  const topics = new Map<ConnectionId, Set<string>>([
    [ann, new Set()],
    [bob, new Set()],
  ]);
  const told = new Map<ConnectionId, string[]>([
    [ann, []],
    [bob, []],
  ]);
  const carryOut = (effects: readonly ReachEffect[]): void => {
    for (const effect of effects) {
      switch (effect.kind) {
        case "listen":
          topics.get(effect.connection)!.add(effect.topic);
          break;
        case "unlisten":
          topics.get(effect.connection)!.delete(effect.topic);
          break;
        case "send":
          told.get(effect.to)!.push(nameOf(effect.news));
          break;
        default:
          for (const [connection, listens] of topics)
            if (listens.has(effect.topic) && effect.except !== connection) told.get(connection)!.push(nameOf(effect.news));
      }
    }
  };
  const tell = (change: PresenceNews, except?: ConnectionId): void => {
    now += 50;
    carryOut(reach.tell({ bytes: encodeNews(change), news: change }, except, at(now)));
  };
  return {
    reach,
    topics,
    carryOut,
    move: (to: number, except?: ConnectionId) => tell(news({ states: [cursor((x = to))] }), except),
    joined: () => tell(news({ present: [person] })),
    newOwner: () => tell(news({ whole: true, present: [person], states: [cursor(x)] })),
    rule: (mode: "flat" | "hierarchical", shed: number) => carryOut(reach.changeRule({ mode, shed }, at(now))),
    pass: (ms: number) => carryOut(reach.tick(at((now += ms)))),
    /** Since it was last asked. */
    told: (connection: ConnectionId) => told.get(connection)!.splice(0),
  };
}

test("[REA1] in a small room everybody is told everything at once, but not its own doing", () => {
  const { reach, carryOut, move, told } = room();
  carryOut([...reach.enter(ann, "editors", HERE), ...reach.enter(bob, "spectators", undefined)]);
  move(5_000, ann);
  expect([told(ann), told(bob)]).toEqual([[], ["move"]]);
  expect(reach.dueAt).toBeUndefined();
});

test("[REA2] from the switch on, members are told by view and pace; at the switch back, all that was kept from them", () => {
  const { reach, carryOut, rule, move, told, topics, joined } = room();
  carryOut([...reach.enter(ann, "editors", HERE), ...reach.enter(bob, "editors", undefined)]);
  rule("hierarchical", 0);
  move(5_000);
  expect([told(ann), told(bob)]).toEqual([["move"], ["move"]]); // It left the view.
  move(5_200);
  joined();
  expect([told(ann), told(bob)]).toEqual([["members"], ["move", "members"]]);
  rule("flat", 0);
  expect([told(ann), told(bob)]).toEqual([["whole"], ["whole"]]);
  move(9_000);
  expect([told(ann), told(bob)]).toEqual([["move"], ["move"]]);
  expect([...topics.get(ann)!]).toEqual(["everybody"]);
});

test("[REA3] a spectator waits for its turn, and what is left waits for a tick", () => {
  const { reach, carryOut, rule, move, pass, told } = room();
  carryOut(reach.enter(ann, "spectators", undefined));
  rule("hierarchical", 0);
  move(1);
  move(2);
  expect(told(ann)).toEqual([]);
  expect(reach.dueAt).toBe(200);
  pass(100);
  expect(told(ann)).toEqual(["move"]);
});

test("[REA4] under pressure a small room has its lanes too, and calm gives back what was left out", () => {
  const { reach, carryOut, rule, move, joined, told } = room();
  carryOut(reach.enter(ann, "editors", HERE));
  rule("flat", 5);
  rule("flat", 6);
  move(7);
  for (let ticks = 0; ticks < 4; ticks++) joined();
  expect(told(ann)).toEqual(["members"]);
  rule("flat", 5);
  expect(told(ann)).toEqual(["whole"]);
  rule("flat", 0);
  expect(told(ann)).toEqual(["whole"]);
});

test("[REA5] what a new owner says first reaches everybody, in whatever lane", () => {
  const { reach, carryOut, rule, newOwner, told, move } = room();
  carryOut([...reach.enter(ann, "editors", HERE), ...reach.enter(bob, "spectators", HERE)]);
  rule("hierarchical", 0);
  move(3);
  newOwner();
  expect([told(ann), told(bob)]).toEqual([["move", "whole"], ["whole"]]);
  expect(reach.dueAt).toBeUndefined();
});

test("[REA6] whoever leaves listens to nothing any more", () => {
  const { reach, carryOut, rule, topics } = room();
  rule("hierarchical", 0);
  carryOut(reach.enter(ann, "editors", HERE));
  carryOut(reach.exit(ann));
  carryOut(reach.exit(ann));
  expect(topics.get(ann)!.size).toBe(0);
});

test("[PRG49] what very many names make of a lane's news is told in several frames, with nothing missing", () => {
  const reach = new Reach({ everything: news({ whole: true, present: [person], states: [] }) });
  reach.changeRule({ mode: "hierarchical", shed: 0 }, at(0));
  reach.enter(ann, "spectators", undefined);
  const names = Array.from({ length: 4_000 }, (_, index) => `${index}`.padEnd(63, "\u2654"));
  const shown = news({ states: [{ number: 1, fields: names.map((name) => ({ name, value: Uint8Array.of(1) })) }] });
  reach.tell({ bytes: encodeNews(shown), news: shown }, undefined, at(10));
  const told = reach.tick(at(1_000)).flatMap((effect) => (effect.kind === "publish" ? [effect.news] : []));
  expect(told.length).toBeGreaterThan(2);
  for (const { byteLength } of told) expect(byteLength).toBeLessThanOrEqual(256 * 1024);
  expect(told.flatMap((bytes) => decodeNews(bytes)!.states.flatMap(({ fields }) => fields.map(({ name }) => name)))).toEqual(names);
});
