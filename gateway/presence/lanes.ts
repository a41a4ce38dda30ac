/**
 * Sends a large room's presence to its members on this gateway: editors receive it at the owner's rate, spectators a
 * few times a second, and each client receives only the moves near its view. A small room has no lanes: every member
 * receives all presence.
 *
 * LANE1: a member knows each state shown in its view, at the rate of its lane.
 *
 * LANE2: no view shows a participant that is not there. The viewers of a cell that a cursor leaves receive the cursor
 * once more.
 *
 * LANE3: all members receive joins, leaves, and all fields that are not a position.
 */

import { LazyMap, LazySet } from "../../shared/collections/lazy-map.ts";
import type { Millis } from "../../shared/ids.ts";
import { decodePoint, type Point, type Rectangle } from "../../shared/wire/positions.ts";
import {
  CURSOR,
  type ParticipantEntry,
  type ParticipantNumber,
  type PresenceDelta,
  type PresenceField,
  type PresenceState,
  VIEWPORT,
} from "../../shared/wire/presence.ts";
import type { ConnectionId } from "../ports.ts";
import { type Cell, cellAt, cellsOf, Cursors, type Level, levelOf, Viewers } from "./cells.ts";
import type { LaneDepth, LaneName, LaneRates } from "./shed-ladder.ts";

/** A connection listens to the topic of its lane. In that lane it listens to all moves, or to the cells of its view. */
export type LaneTopic = LaneName | `${LaneName}/${string}`;

export type LanesEffect =
  | { kind: "publish"; topic: LaneTopic; delta: PresenceDelta }
  | { kind: "send"; to: ConnectionId; delta: PresenceDelta }
  /** `to`: undefined for all recipients. The recipients lack a part of presence. */
  | { kind: "send-snapshot"; to: ConnectionId | undefined }
  | { kind: "listen" | "unlisten"; connection: ConnectionId; topic: LaneTopic };

/** `sentThrough`: the recipient knows all cursors up to this version. */
type Recipient = { readonly connection: ConnectionId; lane: LaneName; view: View | undefined; sentThrough: number };
type View = { readonly level: Level; readonly cells: readonly Cell[] };

const NAMES: readonly LaneName[] = ["editors", "spectators"];
const DEPTHS: readonly LaneDepth[] = ["members-only", "without-viewports", "all"];

export class Lanes {
  readonly #byView: boolean;
  readonly #cursors = new Cursors();
  readonly #lanes: Readonly<Record<LaneName, Lane>> = { editors: new Lane(), spectators: new Lane() };
  readonly #sentAt: Record<LaneName, Millis>;
  readonly #recipients = new Map<ConnectionId, Recipient>();
  readonly #sizes: Record<LaneName, number> = { editors: 0, spectators: 0 };
  /** Connections that change lanes once both lanes have received everything. */
  readonly #changing = new LazyMap<ConnectionId, LaneName>();
  #rates: LaneRates;

  /**
   * `snapshot`: all new recipients already have this presence. `byView`: a cursor is sent to the viewers of its cells,
   * otherwise to all.
   */
  constructor(snapshot: PresenceDelta, options: { byView: boolean; rates: LaneRates }, now: Millis) {
    this.#byView = options.byView;
    this.#rates = options.rates;
    this.#sentAt = { editors: now, spectators: now };
    this.#cursors.receiveDelta(snapshot);
  }

  /** Time at which there is something to send. Undefined: not before the next delta. */
  get dueAt(): Millis | undefined {
    const dues = NAMES.filter((name) => !this.#lanes[name].isEmpty || (name === "spectators" && this.#changing.size > 0)).map((name) =>
      this.#dueAt(name),
    );
    return dues.length === 0 ? undefined : (Math.min(...dues) as Millis);
  }

  /** Call after the connection has received the snapshot. */
  add(connection: ConnectionId, lane: LaneName, view: Rectangle | undefined): LanesEffect[] {
    const recipient: Recipient = { connection, lane, view: this.#viewOf(view), sentThrough: this.#cursors.version };
    this.#recipients.set(connection, recipient);
    return this.#attach(recipient);
  }

  /** The socket may be closed already. */
  remove(connection: ConnectionId): LanesEffect[] {
    const recipient = this.#recipients.get(connection);
    if (recipient === undefined) return [];
    this.#recipients.delete(connection);
    this.#changing.delete(connection);
    return this.#detach(recipient);
  }

  removeAll(): LanesEffect[] {
    return [...this.#recipients.keys()].flatMap((connection) => this.remove(connection));
  }

  /** Sends the cursors in the new view immediately. `view`: undefined for the whole canvas. */
  changeView(connection: ConnectionId, view: Rectangle | undefined): LanesEffect[] {
    const recipient = this.#recipients.get(connection);
    const next = this.#viewOf(view);
    if (recipient === undefined || isSame(recipient.view, next)) return [];
    const effects = this.#turn(recipient, next);
    const states = this.#rates[recipient.lane].depth === "members-only" ? [] : this.#cursors.since(recipient.sentThrough);
    recipient.sentThrough = this.#cursors.version;
    if (states.length > 0) effects.push({ kind: "send", to: connection, delta: ofStates(states) });
    return effects;
  }

  changeLane(connection: ConnectionId, lane: LaneName): void {
    if (this.#recipients.get(connection)?.lane === lane) this.#changing.delete(connection);
    else if (this.#recipients.has(connection)) this.#changing.set(connection, lane);
  }

  /** A lane whose depth increases receives a snapshot, because it lacks the presence that was left out. */
  changeRates(rates: LaneRates): LanesEffect[] {
    const deeper = NAMES.some((name) => DEPTHS.indexOf(rates[name].depth) > DEPTHS.indexOf(this.#rates[name].depth));
    this.#rates = rates;
    return deeper ? [{ kind: "send-snapshot", to: undefined }] : [];
  }

  /** Call when all recipients have received this snapshot. */
  receiveSnapshot(snapshot: PresenceDelta): void {
    this.#cursors.receiveDelta(snapshot);
    for (const name of NAMES) this.#lanes[name].forget();
    for (const recipient of this.#recipients.values()) recipient.sentThrough = this.#cursors.version;
  }

  receiveDelta(delta: PresenceDelta, now: Millis): LanesEffect[] {
    for (const name of NAMES)
      if (this.#sizes[name] > 0) this.#lanes[name].receiveDelta(delta, (number) => this.#cursors.at(number), this.#rates[name].depth);
    this.#cursors.receiveDelta(delta);
    return this.receiveTick(now);
  }

  receiveTick(now: Millis): LanesEffect[] {
    const change = this.#changing.size > 0 && now >= this.#dueAt("spectators");
    const effects = NAMES.filter((name) => change || (!this.#lanes[name].isEmpty && now >= this.#dueAt(name))).flatMap((name) =>
      this.#flush(name, now),
    );
    if (change) effects.push(...this.#changeLanes());
    return effects;
  }

  #dueAt(name: LaneName): Millis {
    return (this.#sentAt[name] + this.#rates[name].everyMs) as Millis;
  }

  #flush(name: LaneName, now: Millis): LanesEffect[] {
    this.#sentAt[name] = now;
    const { everybody, everywhere, near } = this.#lanes[name].take();
    const effects: LanesEffect[] = [];
    if (everybody !== undefined) effects.push({ kind: "publish", topic: name, delta: everybody });
    if (everywhere.length > 0) effects.push({ kind: "publish", topic: `${name}/*`, delta: ofStates(everywhere) });
    for (const [cell, states] of near) effects.push({ kind: "publish", topic: `${name}/${cell}`, delta: ofStates(states) });
    return effects;
  }

  #changeLanes(): LanesEffect[] {
    const effects: LanesEffect[] = [];
    for (const [connection, lane] of this.#changing) {
      const recipient = this.#recipients.get(connection)!;
      effects.push(...this.#detach(recipient));
      if (DEPTHS.indexOf(this.#rates[lane].depth) > DEPTHS.indexOf(this.#rates[recipient.lane].depth))
        effects.push({ kind: "send-snapshot", to: connection });
      recipient.lane = lane;
      effects.push(...this.#attach(recipient));
    }
    this.#changing.clear();
    return effects;
  }

  #attach(recipient: Recipient): LanesEffect[] {
    this.#sizes[recipient.lane] += 1;
    if (recipient.view !== undefined) this.#lanes[recipient.lane].viewers.add(recipient.view.level, recipient.view.cells);
    return topicsOf(recipient).map((topic) => ({ kind: "listen", connection: recipient.connection, topic }));
  }

  #detach(recipient: Recipient): LanesEffect[] {
    const { lane, view, connection } = recipient;
    this.#sizes[lane] -= 1;
    if (this.#sizes[lane] === 0) this.#lanes[lane].forget();
    if (view !== undefined) this.#lanes[lane].viewers.remove(view.level, view.cells);
    return topicsOf(recipient).map((topic) => ({ kind: "unlisten", connection, topic }));
  }

  /** Cells in both views stay subscribed. */
  #turn(recipient: Recipient, view: View | undefined): LanesEffect[] {
    const { connection, lane } = recipient;
    const { viewers } = this.#lanes[lane];
    const before = topicsOf(recipient);
    if (recipient.view !== undefined) viewers.remove(recipient.view.level, recipient.view.cells);
    if (view !== undefined) viewers.add(view.level, view.cells);
    recipient.view = view;
    const after = topicsOf(recipient);
    return [
      ...before.filter((topic) => !after.includes(topic)).map((topic): LanesEffect => ({ kind: "unlisten", connection, topic })),
      ...after.filter((topic) => !before.includes(topic)).map((topic): LanesEffect => ({ kind: "listen", connection, topic })),
    ];
  }

  #viewOf(view: Rectangle | undefined): View | undefined {
    return view === undefined || !this.#byView ? undefined : { level: levelOf(view), cells: cellsOf(view) };
  }
}

function topicsOf({ lane, view }: Recipient): LaneTopic[] {
  return view === undefined ? [lane, `${lane}/*`] : [lane, ...view.cells.map((cell): LaneTopic => `${lane}/${cell}`)];
}

function ofStates(states: readonly PresenceState[]): PresenceDelta {
  return { snapshot: false, present: [], gone: [], states };
}

function isSame(a: View | undefined, b: View | undefined): boolean {
  return (
    a === b ||
    (a !== undefined && b !== undefined && a.cells.length === b.cells.length && a.cells.every((cell, index) => cell === b.cells[index]))
  );
}

/** `everybody`: to all of the lane. `everywhere`: moves, to viewers without a view. `near`: moves, to viewers of a cell. */
type LaneFlush = {
  readonly everybody: PresenceDelta | undefined;
  readonly everywhere: readonly PresenceState[];
  readonly near: ReadonlyMap<Cell, readonly PresenceState[]>;
};

/** Places of a cursor since the last flush, and its newest value. Undefined: the participant removed the cursor. */
type Move = { value: Uint8Array | undefined; readonly points: Point[] };

/**
 * Collects the presence that a lane has not received yet, so that several deltas become one. A cursor is sent to each
 * cell that it was in since the last flush. So no client shows the cursor at a former place.
 */
class Lane {
  readonly viewers = new Viewers();
  readonly #present = new LazyMap<ParticipantNumber, ParticipantEntry>();
  readonly #gone = new LazySet<ParticipantNumber>();
  readonly #fields = new LazyMap<ParticipantNumber, Map<string, Uint8Array>>();
  readonly #moves = new LazyMap<ParticipantNumber, Move>();

  get isEmpty(): boolean {
    return this.#present.size === 0 && this.#gone.size === 0 && this.#fields.size === 0 && this.#moves.size === 0;
  }

  /** `at`: the place of each cursor before this delta. The delta is not a snapshot. */
  receiveDelta(delta: PresenceDelta, at: (number: ParticipantNumber) => Point | undefined, depth: LaneDepth): void {
    for (const participant of delta.present) this.#present.set(participant.number, participant);
    for (const number of delta.gone) {
      this.#present.delete(number);
      this.#fields.delete(number);
      this.#moves.delete(number);
      this.#gone.add(number);
    }
    if (depth === "members-only") return;
    for (const { number, fields } of delta.states)
      for (const field of fields) if (field.name !== VIEWPORT || depth === "all") this.#receiveField(number, field, at(number));
  }

  take(): LaneFlush {
    const [present, gone] = [[...this.#present.values()], [...this.#gone]];
    const states = [...this.#fields]
      .filter(([, fields]) => fields.size > 0)
      .map(([number, fields]) => ({ number, fields: [...fields].map(([name, value]) => ({ name, value })) }));
    const everybody = present.length + gone.length + states.length === 0 ? undefined : { snapshot: false, present, gone, states };
    const everywhere: PresenceState[] = [];
    for (const [number, { value }] of this.#moves) if (value !== undefined) everywhere.push({ number, fields: [{ name: CURSOR, value }] });
    const near = this.#byCell(everywhere);
    this.forget();
    return { everybody, everywhere, near };
  }

  /** Call when the lane has received a snapshot instead. */
  forget(): void {
    this.#present.clear();
    this.#gone.clear();
    this.#fields.clear();
    this.#moves.clear();
  }

  #receiveField(number: ParticipantNumber, { name, value }: PresenceField, from: Point | undefined): void {
    if (name === CURSOR && this.#receiveCursor(number, value, from)) return;
    const fields = this.#fields.get(number) ?? new Map<string, Uint8Array>();
    this.#fields.set(number, fields.set(name, value.slice()));
  }

  /** False: the cursor was removed. The removal goes to all of the lane, like any other field. */
  #receiveCursor(number: ParticipantNumber, value: Uint8Array, from: Point | undefined): boolean {
    const to = decodePoint(value);
    const move = this.#moves.get(number) ?? { value: undefined, points: from === undefined ? [] : [from] };
    this.#moves.set(number, move);
    move.value = to === undefined ? undefined : value.slice();
    if (to === undefined) return false;
    move.points.push(to);
    this.#fields.get(number)?.delete(CURSOR);
    return true;
  }

  #byCell(states: readonly PresenceState[]): Map<Cell, PresenceState[]> {
    const near = new Map<Cell, PresenceState[]>();
    for (const level of this.viewers.levels) {
      for (const state of states) {
        const cells = this.#moves.get(state.number)!.points.map((point) => cellAt(level, point));
        cells.forEach((cell, index) => {
          if (cells.indexOf(cell) < index || !this.viewers.has(cell)) return;
          const there = near.get(cell);
          if (there === undefined) near.set(cell, [state]);
          else there.push(state);
        });
      }
    }
    return near;
  }
}
