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
 * LANE3: all members receive joins, leaves, and all fields that are not a position. Joins and leaves do not wait for the
 * states of a slow lane.
 */

import { LazyMap } from "../../shared/collections/lazy-map.ts";
import type { Millis } from "../../shared/ids.ts";
import type { Rectangle } from "../../shared/wire/positions.ts";
import type { PresenceDelta, PresenceState } from "../../shared/wire/presence.ts";
import type { ConnectionId } from "../ports.ts";
import { type Cell, cellsOf, Cursors, type Level, levelOf } from "./cells.ts";
import { Lane } from "./lane.ts";
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
const DEPTHS: readonly LaneDepth[] = ["without-viewports", "all"];
/** Joins, leaves and changes of lanes wait no longer. A lane with a longer interval is slow: its states are sent separately. */
const MEMBERS_MS_MAX = 200;

export class Lanes {
  readonly #byView: boolean;
  readonly #cursors = new Cursors();
  readonly #lanes: Readonly<Record<LaneName, Lane>> = { editors: new Lane(), spectators: new Lane() };
  readonly #membersSentAt: Record<LaneName, Millis>;
  readonly #statesSentAt: Record<LaneName, Millis>;
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
    this.#membersSentAt = { editors: now, spectators: now };
    this.#statesSentAt = { editors: now, spectators: now };
    this.#cursors.receiveDelta(snapshot);
  }

  /** Time at which there is something to send. Undefined: not before the next delta. */
  get dueAt(): Millis | undefined {
    const dues = NAMES.flatMap((name) => [
      ...(this.#lanes[name].hasMembers || (name === "spectators" && this.#changing.size > 0) ? [this.#membersDueAt(name)] : []),
      ...(this.#lanes[name].hasStates ? [this.#statesDueAt(name)] : []),
    ]);
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

  /** Sends the cursors in the new view: immediately, or with the next states of a slow lane. `view`: undefined for the whole canvas. */
  changeView(connection: ConnectionId, view: Rectangle | undefined): LanesEffect[] {
    const recipient = this.#recipients.get(connection);
    const next = this.#viewOf(view);
    if (recipient === undefined || isSame(recipient.view, next)) return [];
    const effects = this.#turn(recipient, next);
    if (!this.#isSlow(recipient.lane)) return [...effects, ...this.#sendMissed(recipient)];
    this.#lanes[recipient.lane].turned.add(connection);
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
    const change = this.#changing.size > 0 && now >= this.#membersDueAt("spectators");
    const effects = NAMES.flatMap((name) => this.#flushDue(name, change, now));
    if (change) effects.push(...this.#changeLanes());
    return effects;
  }

  #isSlow(name: LaneName): boolean {
    return this.#rates[name].everyMs > MEMBERS_MS_MAX;
  }

  #membersDueAt(name: LaneName): Millis {
    return (this.#membersSentAt[name] + Math.min(this.#rates[name].everyMs, MEMBERS_MS_MAX)) as Millis;
  }

  #statesDueAt(name: LaneName): Millis {
    return (this.#statesSentAt[name] + this.#rates[name].everyMs) as Millis;
  }

  /** `change`: connections are about to change lanes. */
  #flushDue(name: LaneName, change: boolean, now: Millis): LanesEffect[] {
    const lane = this.#lanes[name];
    const membersDue = change || (lane.hasMembers && now >= this.#membersDueAt(name));
    const statesDue = lane.hasStates && now >= this.#statesDueAt(name);
    if (statesDue || (membersDue && !this.#isSlow(name))) return this.#flush(name, now);
    return membersDue ? this.#flushMembers(name, now) : [];
  }

  #flushMembers(name: LaneName, now: Millis): LanesEffect[] {
    this.#membersSentAt[name] = now;
    const members = this.#lanes[name].takeMembers();
    return members === undefined ? [] : [{ kind: "publish", topic: name, delta: members }];
  }

  #flush(name: LaneName, now: Millis): LanesEffect[] {
    this.#membersSentAt[name] = now;
    this.#statesSentAt[name] = now;
    const turned = [...this.#lanes[name].turned];
    const { everybody, everywhere, near } = this.#lanes[name].take();
    const effects: LanesEffect[] = [];
    if (everybody !== undefined) effects.push({ kind: "publish", topic: name, delta: everybody });
    if (everywhere.length > 0) effects.push({ kind: "publish", topic: `${name}/*`, delta: ofStates(everywhere) });
    for (const [cell, states] of near) effects.push({ kind: "publish", topic: `${name}/${cell}`, delta: ofStates(states) });
    for (const connection of turned) effects.push(...this.#sendMissed(this.#recipients.get(connection)!));
    return effects;
  }

  /** Sends the cursors that moved since the recipient had them all. */
  #sendMissed(recipient: Recipient): LanesEffect[] {
    const states = this.#cursors.since(recipient.sentThrough);
    recipient.sentThrough = this.#cursors.version;
    return states.length === 0 ? [] : [{ kind: "send", to: recipient.connection, delta: ofStates(states) }];
  }

  /** The states of a slow lane are not due yet, so a connection that leaves it receives the snapshot instead. */
  #changeLanes(): LanesEffect[] {
    const effects: LanesEffect[] = [];
    for (const [connection, lane] of this.#changing) {
      const recipient = this.#recipients.get(connection)!;
      const lacksStates = this.#lanes[recipient.lane].hasStates;
      effects.push(...this.#detach(recipient));
      if (lacksStates) effects.push({ kind: "send-snapshot", to: connection });
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
    this.#lanes[lane].turned.delete(connection);
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
