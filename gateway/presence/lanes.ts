/**
 * How a large room's presence reaches the members of this gateway: those who take part at the room's pace, spectators
 * a few times a second, each only what moves near where they look. A room of few members has no lanes: everybody is
 * told everything as the owner said it.
 *
 * LANE1 what somebody shows in a member's view is what that member knows of it, within the member's pace;
 * LANE2 nobody is seen in a member's view who is not there: who leaves a cell is told of in it once more;
 * LANE3 whatever is no position, and who comes and goes, is told to everybody.
 */

import type { Millis } from "../../shared/ids.ts";
import { SeldomMap } from "../../shared/seldom.ts";
import type { PresenceNews, PresenceState } from "../../shared/wire/presence.ts";
import type { Rectangle } from "../../shared/wire/positions.ts";
import { type Cell, cellsOf, type Level, levelOf } from "./cells.ts";
import { Cursors } from "./cursors.ts";
import { Lane, type LaneDepth } from "./lane.ts";
import type { ConnectionId } from "../ports.ts";

export type LaneName = "editors" | "spectators";
/** `everyMs`: 0 for as often as the owner tells. */
export type Pace = { readonly everyMs: number; readonly depth: LaneDepth };
export type Paces = Readonly<Record<LaneName, Pace>>;

/** What a connection listens to: its lane, and there everything that moves or the cells it looks at. */
export type LaneTopic = LaneName | `${LaneName}/${string}`;

export type LanesEffect =
  | { kind: "publish"; topic: LaneTopic; news: PresenceNews }
  | { kind: "send"; to: ConnectionId; news: PresenceNews }
  /** Undefined: to everybody. What there is was kept from them. */
  | { kind: "tell-whole"; to: ConnectionId | undefined }
  | { kind: "listen" | "unlisten"; connection: ConnectionId; topic: LaneTopic };

/** `toldThrough`: the version of the cursors up to which it knows where everybody was. */
type Recipient = { readonly connection: ConnectionId; lane: LaneName; view: View | undefined; toldThrough: number };
type View = { readonly level: Level; readonly cells: readonly Cell[] };

const NAMES: readonly LaneName[] = ["editors", "spectators"];
const DEPTHS: readonly LaneDepth[] = ["members-only", "without-viewports", "all"];

export class Lanes {
  readonly #byView: boolean;
  readonly #cursors = new Cursors();
  readonly #lanes: Readonly<Record<LaneName, Lane>> = { editors: new Lane(), spectators: new Lane() };
  readonly #toldAt: Record<LaneName, Millis>;
  readonly #recipients = new Map<ConnectionId, Recipient>();
  readonly #sizes: Record<LaneName, number> = { editors: 0, spectators: 0 };
  /** They change lanes when both have been told everything. */
  readonly #changing = new SeldomMap<ConnectionId, LaneName>();
  #paces: Paces;

  /** `whole`: what everybody who enters has been told. `byView`: cursors are told to those who look there, else to all. */
  constructor(whole: PresenceNews, options: { byView: boolean; paces: Paces }, now: Millis) {
    this.#byView = options.byView;
    this.#paces = options.paces;
    this.#toldAt = { editors: now, spectators: now };
    this.#cursors.receiveNews(whole);
  }

  /** When there is something to tell. Undefined: not before more news. */
  get dueAt(): Millis | undefined {
    const dues = NAMES.filter((name) => !this.#lanes[name].isEmpty || (name === "spectators" && this.#changing.size > 0)).map((name) =>
      this.#dueAt(name),
    );
    return dues.length === 0 ? undefined : (Math.min(...dues) as Millis);
  }

  /** Somebody who has just been told the whole. */
  enter(connection: ConnectionId, lane: LaneName, view: Rectangle | undefined): LanesEffect[] {
    const recipient: Recipient = { connection, lane, view: this.#viewOf(view), toldThrough: this.#cursors.version };
    this.#recipients.set(connection, recipient);
    return this.#attach(recipient);
  }

  /** Its socket may be closed already. */
  exit(connection: ConnectionId): LanesEffect[] {
    const recipient = this.#recipients.get(connection);
    if (recipient === undefined) return [];
    this.#recipients.delete(connection);
    this.#changing.delete(connection);
    return this.#detach(recipient);
  }

  exitAll(): LanesEffect[] {
    return [...this.#recipients.keys()].flatMap((connection) => this.exit(connection));
  }

  /** It looks elsewhere, and gets to know at once what is to be seen there. Undefined: it sees all. */
  look(connection: ConnectionId, view: Rectangle | undefined): LanesEffect[] {
    const recipient = this.#recipients.get(connection);
    const next = this.#viewOf(view);
    if (recipient === undefined || isSame(recipient.view, next)) return [];
    const effects = this.#turn(recipient, next);
    const states = this.#paces[recipient.lane].depth === "members-only" ? [] : this.#cursors.since(recipient.toldThrough);
    recipient.toldThrough = this.#cursors.version;
    if (states.length > 0) effects.push({ kind: "send", to: connection, news: ofStates(states) });
    return effects;
  }

  changeLane(connection: ConnectionId, lane: LaneName): void {
    if (this.#recipients.get(connection)?.lane === lane) this.#changing.delete(connection);
    else if (this.#recipients.has(connection)) this.#changing.set(connection, lane);
  }

  /** Those who are told more than before are told what was kept from them. */
  changePaces(paces: Paces): LanesEffect[] {
    const deeper = NAMES.some((name) => DEPTHS.indexOf(paces[name].depth) > DEPTHS.indexOf(this.#paces[name].depth));
    this.#paces = paces;
    return deeper ? [{ kind: "tell-whole", to: undefined }] : [];
  }

  /** Everybody has been told this. */
  receiveWhole(whole: PresenceNews): void {
    this.#cursors.receiveNews(whole);
    for (const name of NAMES) this.#lanes[name].forget();
    for (const recipient of this.#recipients.values()) recipient.toldThrough = this.#cursors.version;
  }

  receiveNews(news: PresenceNews, now: Millis): LanesEffect[] {
    for (const name of NAMES)
      if (this.#sizes[name] > 0) this.#lanes[name].receiveNews(news, (number) => this.#cursors.at(number), this.#paces[name].depth);
    this.#cursors.receiveNews(news);
    return this.receiveTick(now);
  }

  receiveTick(now: Millis): LanesEffect[] {
    const change = this.#changing.size > 0 && now >= this.#dueAt("spectators");
    const effects = NAMES.filter((name) => change || (!this.#lanes[name].isEmpty && now >= this.#dueAt(name))).flatMap((name) =>
      this.#tell(name, now),
    );
    if (change) effects.push(...this.#changeLanes());
    return effects;
  }

  #dueAt(name: LaneName): Millis {
    return (this.#toldAt[name] + this.#paces[name].everyMs) as Millis;
  }

  #tell(name: LaneName, now: Millis): LanesEffect[] {
    this.#toldAt[name] = now;
    const { everybody, everywhere, near } = this.#lanes[name].take();
    const effects: LanesEffect[] = [];
    if (everybody !== undefined) effects.push({ kind: "publish", topic: name, news: everybody });
    if (everywhere.length > 0) effects.push({ kind: "publish", topic: `${name}/*`, news: ofStates(everywhere) });
    for (const [cell, states] of near) effects.push({ kind: "publish", topic: `${name}/${cell}`, news: ofStates(states) });
    return effects;
  }

  #changeLanes(): LanesEffect[] {
    const effects: LanesEffect[] = [];
    for (const [connection, lane] of this.#changing) {
      const recipient = this.#recipients.get(connection)!;
      effects.push(...this.#detach(recipient));
      if (DEPTHS.indexOf(this.#paces[lane].depth) > DEPTHS.indexOf(this.#paces[recipient.lane].depth))
        effects.push({ kind: "tell-whole", to: connection });
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

  /** Cells in both views are listened to all along. */
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

function ofStates(states: readonly PresenceState[]): PresenceNews {
  return { whole: false, present: [], gone: [], states };
}

function isSame(a: View | undefined, b: View | undefined): boolean {
  return (
    a === b ||
    (a !== undefined && b !== undefined && a.cells.length === b.cells.length && a.cells.every((cell, index) => cell === b.cells[index]))
  );
}
