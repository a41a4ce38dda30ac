import fc from "fast-check";
import { expect, test } from "vitest";

import type { ClientId, Millis, UserId } from "../../shared/ids.ts";
import { decodePoint, encodePoint, type Point, type Rectangle } from "../../shared/wire/positions.ts";
import { CURSOR, type ParticipantEntry, type PresenceDelta, type PresenceState, VIEWPORT } from "../../shared/wire/presence.ts";
import type { ConnectionId } from "../ports.ts";
import { Lanes, type LanesEffect } from "./lanes.ts";
import type { LaneName, LaneRates } from "./shed-ladder.ts";

const TICK_MS = 50;
const RATES: LaneRates = { editors: { everyMs: 0, depth: "all" }, spectators: { everyMs: 200, depth: "all" } };
const SLOW: LaneRates = { editors: { everyMs: 2_000, depth: "all" }, spectators: { everyMs: 2_000, depth: "all" } };
const SLOW_SPECTATORS: LaneRates = { ...RATES, spectators: SLOW.spectators };
const NO_VIEWPORTS: LaneRates = { ...RATES, spectators: { everyMs: 200, depth: "without-viewports" } };
const at = (ms: number) => ms as Millis;
const connection = (number: number) => number as ConnectionId;
const own = (text: string) => new TextEncoder().encode(text);

function participant(number: number): ParticipantEntry {
  return {
    number,
    client: `client${String(number).padStart(10, "0")}` as ClientId,
    user: "ann" as UserId,
    name: "Ann",
    canWrite: true,
    spectator: false,
  };
}

/** Participants and fields that a client knows after the frames that it has received. */
class Knowledge {
  present = new Set<number>();
  fields = new Map<string, Uint8Array>();
  /** How often the client has received the removal of a cursor. */
  takenBack = 0;

  learn({ snapshot, present, gone, states }: PresenceDelta): void {
    if (snapshot) this.present.clear();
    if (snapshot) this.fields.clear();
    for (const { number } of present) this.present.add(number);
    for (const number of gone) {
      this.present.delete(number);
      for (const key of this.fields.keys()) if (key.startsWith(`${number} `)) this.fields.delete(key);
    }
    for (const { number, fields } of states) {
      for (const { name, value } of fields) {
        this.fields.set(`${number} ${name}`, value);
        if (name === CURSOR && value.byteLength === 0) this.takenBack += 1;
      }
    }
  }

  snapshot(): PresenceDelta {
    const states: PresenceState[] = [...this.fields].map(([key, value]) => ({
      number: Number(key.split(" ")[0]),
      fields: [{ name: key.split(" ")[1]!, value }],
    }));
    return { snapshot: true, present: [...this.present].map(participant), gone: [], states };
  }

  cursor(number: number): Point | undefined {
    return decodePoint(this.fields.get(`${number} ${CURSOR}`) ?? own(""));
  }

  color(number: number): string {
    return new TextDecoder().decode(this.fields.get(`${number} color`) ?? own(""));
  }
}

type Client = { readonly knows: Knowledge; lane: LaneName; view: Rectangle | undefined; readonly topics: Set<string> };

/** A room with its lanes and its clients. */
class Room {
  readonly truth = new Knowledge();
  readonly clients = new Map<ConnectionId, Client>();
  readonly lanes: Lanes;
  now = 0;
  frames = 0;
  #lastNumber = 0;
  #delta: { present: ParticipantEntry[]; gone: number[]; states: PresenceState[] } = { present: [], gone: [], states: [] };

  constructor(byView = true, rates = RATES) {
    this.lanes = new Lanes(this.truth.snapshot(), { byView, rates }, at(0));
  }

  /** A number is never reused. */
  join(): void {
    this.#delta.present.push(participant((this.#lastNumber += 1)));
  }

  /** A random participant. */
  someone(index: number): number | undefined {
    const here = [...this.truth.present].filter((number) => !this.#delta.gone.includes(number));
    return here[index % here.length];
  }

  leave(number: number): void {
    const states = this.#delta.states.filter((state) => state.number !== number);
    this.#delta = {
      present: this.#delta.present.filter((present) => present.number !== number),
      gone: [...this.#delta.gone, number],
      states,
    };
  }

  show(number: number, name: string, value: Uint8Array): void {
    this.#delta.states.push({ number, fields: [{ name, value }] });
  }

  point(number: number, point: Point | undefined): void {
    this.show(number, CURSOR, point === undefined ? own("") : encodePoint(point));
  }

  enter(id: number, lane: LaneName, view: Rectangle | undefined): void {
    const client: Client = { knows: new Knowledge(), lane, view, topics: new Set() };
    client.knows.learn(this.truth.snapshot());
    this.clients.set(connection(id), client);
    this.carryOut(this.lanes.add(connection(id), lane, view));
  }

  look(id: number, view: Rectangle | undefined): void {
    const client = this.clients.get(connection(id));
    if (client === undefined) return;
    client.view = view;
    this.carryOut(this.lanes.changeView(connection(id), view));
  }

  /** The owner's tick sends all changes since the last one. */
  tick(): void {
    this.now += TICK_MS;
    const { present, gone, states } = this.#delta;
    this.#delta = { present: [], gone: [], states: [] };
    if (present.length + gone.length + states.length === 0) return this.carryOut(this.lanes.receiveTick(at(this.now)));
    const delta: PresenceDelta = { snapshot: false, present, gone, states };
    this.truth.learn(delta);
    this.carryOut(this.lanes.receiveDelta(delta, at(this.now)));
  }

  carryOut(effects: readonly LanesEffect[]): void {
    for (const effect of effects) {
      if (effect.kind === "listen") this.clients.get(effect.connection)?.topics.add(effect.topic);
      else if (effect.kind === "unlisten") this.clients.get(effect.connection)?.topics.delete(effect.topic);
      else if (effect.kind === "publish")
        for (const { topics, knows } of this.clients.values()) if (topics.has(effect.topic)) this.#deliver(knows, effect.delta);
      if (effect.kind === "send") this.#deliver(this.clients.get(effect.to)!.knows, effect.delta);
      if (effect.kind === "send-snapshot") this.#sendSnapshot(effect.to);
    }
  }

  /** Checks that each client of the lane knows what it must know, and shows nothing else. */
  judge(lane: LaneName): void {
    for (const client of this.clients.values()) {
      if (client.lane !== lane || !client.topics.has(lane)) continue; // A member changes lanes at the spectators' interval.
      expect([...client.knows.present].sort()).toEqual([...this.truth.present].sort());
      for (const number of this.truth.present) {
        expect(client.knows.color(number)).toBe(this.truth.color(number));
        const [shown, real] = [client.knows.cursor(number), this.truth.cursor(number)];
        if (isSeen(client.view, shown) || isSeen(client.view, real)) expect(shown).toEqual(real);
      }
    }
  }

  #deliver(knows: Knowledge, delta: PresenceDelta): void {
    this.frames += 1;
    knows.learn(delta);
  }

  #sendSnapshot(to: ConnectionId | undefined): void {
    const snapshot = this.truth.snapshot();
    for (const [id, { knows }] of this.clients) if (to === undefined || to === id) this.#deliver(knows, snapshot);
    if (to === undefined) this.lanes.receiveSnapshot(snapshot);
  }
}

function isSeen(view: Rectangle | undefined, point: Point | undefined): boolean {
  if (point === undefined) return false;
  return (
    view === undefined || (point.x >= view.x && point.x <= view.x + view.width && point.y >= view.y && point.y <= view.y + view.height)
  );
}

const point = fc.record({ x: fc.integer({ min: -600, max: 600 }), y: fc.integer({ min: -600, max: 600 }) });
const view = fc.option(
  fc.record({
    x: fc.integer({ min: -600, max: 500 }),
    y: fc.integer({ min: -600, max: 500 }),
    width: fc.nat({ max: 500 }),
    height: fc.nat({ max: 500 }),
  }),
  { nil: undefined },
);
const who = fc.integer({ min: 1, max: 6 });
const lane = fc.constantFrom<LaneName>("editors", "spectators");

type Step = (room: Room) => void;
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.tuple(who, fc.option(point, { nil: undefined, freq: 3 })).map(
      ([number, point]): Step =>
        (room) =>
          room.someone(number) !== undefined && room.point(room.someone(number)!, point),
    ),
  },
  {
    weight: 2,
    arbitrary: fc.tuple(who, point).map(
      ([number, point]): Step =>
        (room) =>
          takeBackAndShow(room, number, point),
    ),
  },
  {
    weight: 2,
    arbitrary: fc.tuple(who, fc.string()).map(
      ([number, color]): Step =>
        (room) =>
          room.someone(number) !== undefined && room.show(room.someone(number)!, "color", own(color)),
    ),
  },
  { weight: 2, arbitrary: fc.constant<Step>((room) => room.join()) },
  {
    weight: 1,
    arbitrary: who.map(
      (number): Step =>
        (room) =>
          room.someone(number) !== undefined && room.leave(room.someone(number)!),
    ),
  },
  {
    weight: 2,
    arbitrary: fc.tuple(who, lane, view).map(
      ([id, lane, view]): Step =>
        (room) =>
          !room.clients.has(connection(id)) && room.enter(id, lane, view),
    ),
  },
  {
    weight: 4,
    arbitrary: fc.tuple(who, view).map(
      ([id, view]): Step =>
        (room) =>
          room.look(id, view),
    ),
  },
  {
    weight: 1,
    arbitrary: fc.tuple(who, lane).map(
      ([id, lane]): Step =>
        (room) =>
          changeLane(room, id, lane),
    ),
  },
  { weight: 8, arbitrary: fc.constant<Step>((room) => room.tick()) },
);

/** Within one interval of the spectators. */
function takeBackAndShow(room: Room, index: number, point: Point): void {
  const number = room.someone(index);
  if (number === undefined) return;
  room.point(number, undefined);
  room.tick();
  if (room.truth.present.has(number)) room.point(number, point);
}

function changeLane(room: Room, id: number, lane: LaneName): void {
  const client = room.clients.get(connection(id));
  if (client === undefined) return;
  client.lane = lane;
  room.lanes.changeLane(connection(id), lane);
}

test("[LANE1] [LANE2] [LANE3] a view shows every cursor in it within two ticks and no other one, and everybody is listed", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 120, size: "max" }), (steps) => {
      const room = afterSteps(steps, RATES);
      room.judge("editors");
      for (let ticks = 0; ticks < 5; ticks++) room.tick();
      room.judge("editors");
      room.judge("spectators");
      expect(room.lanes.dueAt).toBeUndefined();
    }),
    { numRuns: 300 },
  );
});

test("[LANE1] [LANE2] [LANE3] in slow lanes too, a view shows every cursor in it, and no other one, after their interval", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 120, size: "max" }), fc.constantFrom(SLOW, SLOW_SPECTATORS), (steps, rates) => {
      const room = afterSteps(steps, rates);
      for (let ticks = 0; ticks < 45; ticks++) room.tick();
      room.judge("editors");
      room.judge("spectators");
      expect(room.lanes.dueAt).toBeUndefined();
    }),
    { numRuns: 300 },
  );
});

function afterSteps(steps: readonly Step[], rates: LaneRates): Room {
  const room = new Room(true, rates);
  for (let joined = 0; joined < 3; joined++) room.join();
  room.tick();
  for (const take of steps) take(room);
  room.tick();
  return room;
}

const LEFT: Rectangle = { x: 0, y: 0, width: 100, height: 100 };
const RIGHT: Rectangle = { x: 5_000, y: 0, width: 100, height: 100 };
const ELSEWHERE: Rectangle = { x: 0, y: 5_000, width: 100, height: 100 };

for (const lane of ["editors", "spectators"] as const) {
  test(`[LANE2] a cursor that is removed and shown elsewhere within one interval of ${lane} appears there and not at its old place`, () => {
    const room = new Room();
    room.join();
    room.tick();
    [LEFT, RIGHT, ELSEWHERE, undefined].forEach((view, index) => room.enter(index + 1, lane, view));
    room.point(1, { x: 50, y: 50 });
    for (let ticks = 0; ticks < 5; ticks++) room.tick();
    room.judge(lane);
    room.point(1, undefined);
    room.tick();
    room.point(1, { x: 5_050, y: 50 });
    for (let ticks = 0; ticks < 5; ticks++) room.tick();
    room.judge(lane);
    expect(room.clients.get(connection(1))!.knows.cursor(1)).not.toEqual({ x: 50, y: 50 });
    for (const { knows } of room.clients.values())
      expect(knows.takenBack, "overtaken values are not sent").toBe(lane === "editors" ? 1 : 0);
  });
}

test("[LANE4] spectators receive five times a second what editors receive immediately", () => {
  const room = new Room();
  room.join();
  room.tick();
  room.enter(1, "editors", undefined);
  room.enter(2, "spectators", undefined);
  const seen: Record<LaneName, Set<number>> = { editors: new Set(), spectators: new Set() };
  for (let ticks = 1; ticks <= 40; ticks++) {
    room.point(1, { x: ticks, y: 0 });
    room.tick();
    for (const { lane, knows } of room.clients.values()) seen[lane].add(knows.cursor(1)?.x ?? 0);
  }
  expect(seen.editors.size).toBe(40);
  expect([...seen.spectators]).toEqual([0, 3, 7, 11, 15, 19, 23, 27, 31, 35, 39]);
});

test("[LANE5] a lane that receives more again first receives a snapshot", () => {
  const room = new Room();
  room.join();
  room.tick();
  room.enter(7, "spectators", undefined);
  room.carryOut(room.lanes.changeRates(NO_VIEWPORTS));
  room.show(1, VIEWPORT, own("somewhere"));
  for (let ticks = 0; ticks < 5; ticks++) room.tick();
  const knowsViewport = () => room.clients.get(connection(7))!.knows.fields.has(`1 ${VIEWPORT}`);
  expect(knowsViewport()).toBe(false);
  room.carryOut(room.lanes.changeRates(RATES));
  expect(knowsViewport()).toBe(true);
});

test("[LANE12] a slow lane knows joins and leaves within a fifth of a second, and every state at its interval", () => {
  const room = new Room(true, SLOW);
  room.join();
  room.tick();
  for (const id of [1, 2]) room.enter(id, "editors", undefined);
  const { knows } = room.clients.get(connection(1))!;
  const places = new Set<number | undefined>();
  for (let ticks = 1; ticks <= 120; ticks++) {
    room.point(1, { x: ticks, y: 0 });
    if (ticks === 50) room.join();
    room.tick();
    if (ticks === 54) expect(knows.present.size).toBe(2);
    places.add(knows.cursor(1)?.x);
  }
  expect([...places]).toEqual([undefined, 39, 79, 119]);
});

test("[LANE13] a view that moves in a slow lane receives the cursors in it at the interval of the lane", () => {
  const room = new Room(true, SLOW);
  room.join();
  room.point(1, { x: 5_050, y: 50 });
  room.tick();
  room.enter(1, "editors", LEFT);
  room.point(1, { x: 5_060, y: 50 });
  for (let ticks = 0; ticks < 40; ticks++) room.tick();
  const { knows } = room.clients.get(connection(1))!;
  expect(knows.cursor(1), "it is not in the view").toEqual({ x: 5_050, y: 50 });
  room.look(1, RIGHT);
  room.tick();
  expect(knows.cursor(1)).toEqual({ x: 5_050, y: 50 });
  for (let ticks = 0; ticks < 40; ticks++) room.tick();
  expect(knows.cursor(1)).toEqual({ x: 5_060, y: 50 });
  expect(room.lanes.dueAt).toBeUndefined();
});

test("[LANE6] without views every member receives every move, and a member that leaves listens to nothing", () => {
  const room = new Room(false);
  room.join();
  room.tick();
  room.enter(1, "editors", { x: 0, y: 0, width: 10, height: 10 });
  room.point(1, { x: 500, y: 500 });
  room.tick();
  expect(room.clients.get(connection(1))!.knows.cursor(1)).toEqual({ x: 500, y: 500 });
  room.carryOut(room.lanes.removeAll());
  expect(room.clients.get(connection(1))!.topics.size).toBe(0);
});

test("[LANE7] a member that leaves while it changes lanes is forgotten", () => {
  const room = new Room();
  room.enter(1, "editors", undefined);
  room.lanes.changeLane(connection(1), "spectators");
  room.lanes.remove(connection(1));
  expect([room.lanes.dueAt, room.lanes.receiveTick(at(1_000))]).toEqual([undefined, []]);
});

test("[LANE8] a member that moves its view receives only the cursors that moved since it had them all", () => {
  const room = new Room();
  room.join();
  room.join();
  room.point(1, { x: 5_000, y: 0 });
  room.tick();
  const lookAt = (x: number) =>
    room.lanes.changeView(connection(1), { x, y: 0, width: 100, height: 100 }).filter(({ kind }) => kind === "send");
  room.enter(1, "editors", { x: 0, y: 0, width: 100, height: 100 });
  expect(lookAt(4_990), "its snapshot has the cursor").toEqual([]);
  room.point(2, { x: 9_000, y: 0 });
  room.tick();
  expect(lookAt(8_990)).toMatchObject([{ delta: { states: [{ number: 2 }] } }]);
  expect(lookAt(4_990)).toEqual([]);
  room.point(1, { x: 4_995, y: 0 });
  room.tick();
  room.lanes.receiveSnapshot(room.truth.snapshot());
  expect(lookAt(8_990), "the snapshot for all has every cursor").toEqual([]);
});

test("[LANE9] a member that leaves a slow lane receives a snapshot if the lane still had states for it", () => {
  const room = new Room();
  room.join();
  room.tick();
  for (const id of [1, 2]) room.enter(id, "spectators", { x: 0, y: 0, width: 10, height: 10 });
  room.carryOut(room.lanes.changeRates(SLOW_SPECTATORS));
  room.point(1, { x: 500, y: 500 });
  room.tick();
  const snapshotsAfter = (ms: number) =>
    room.lanes.receiveTick(at(ms)).flatMap((effect) => (effect.kind === "send-snapshot" ? [effect.to] : []));
  room.lanes.changeLane(connection(1), "editors");
  expect(snapshotsAfter(1_000)).toEqual([connection(1)]);
  room.lanes.changeLane(connection(1), "spectators");
  expect(snapshotsAfter(1_900)).toEqual([]);
  room.lanes.changeLane(connection(2), "editors");
  room.lanes.changeLane(connection(2), "spectators");
  expect(snapshotsAfter(3_000), "a spectator again before it changed").toEqual([]);
  room.lanes.changeLane(connection(2), "editors");
  expect([snapshotsAfter(4_000), room.lanes.dueAt], "the lane had sent everything").toEqual([[], undefined]);
});

test("[LANE10] a member does not receive what its lane still had for members who have left", () => {
  const room = new Room();
  room.join();
  room.tick();
  room.enter(1, "spectators", undefined);
  room.point(1, { x: 1, y: 0 });
  room.tick();
  room.carryOut(room.lanes.remove(connection(1)));
  room.point(1, { x: 2, y: 0 });
  room.tick();
  room.enter(2, "spectators", undefined);
  for (let ticks = 0; ticks < 5; ticks++) room.tick();
  expect(room.clients.get(connection(2))!.knows.cursor(1)).toEqual({ x: 2, y: 0 });
});

test("[LANE11] nothing is published for a view that nobody has any more", () => {
  const room = new Room();
  room.join();
  room.tick();
  room.enter(1, "editors", { x: 0, y: 0, width: 10, height: 10 });
  room.look(1, { x: 9_000, y: 0, width: 10, height: 10 });
  const moves = room.lanes.receiveDelta(
    { snapshot: false, present: [], gone: [], states: [{ number: 1, fields: [{ name: CURSOR, value: encodePoint({ x: 5, y: 5 }) }] }] },
    at(1_000),
  );
  expect(moves.map((effect) => effect.kind === "publish" && effect.topic)).toEqual(["editors/*"]);
});
