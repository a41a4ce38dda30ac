/**
 * The way down of a room's presence on this gateway: what the owner tells of everybody, to those who are in the room
 * here. Who is new, or was behind, is told the whole first; then news reach it as the room's standing and this
 * gateway's own pressure allow.
 */

import type { Member, MemberState, Standing } from "../../shared/bus/presence-messages.ts";
import type { ClientId, Millis } from "../../shared/ids.ts";
import { SeldomMap, SeldomSet } from "../../shared/seldom.ts";
import { decodeRectangle, type Rectangle } from "../../shared/wire/positions.ts";
import { type PresenceNews, VIEWPORT } from "../../shared/wire/presence.ts";
import type { LaneName } from "./lanes.ts";
import type { ConnectionId } from "../ports.ts";
import type { PresenceMembers } from "./presence-members.ts";
import { Reach, type ReachEffect } from "./presence-reach.ts";
import { isSameStanding, type PresenceView, type Tidings } from "./presence-view.ts";

export type DownwardEffect =
  | ReachEffect
  | { kind: "publish-mode"; standing: Standing }
  /** Everything there is, to those who are new. */
  | { kind: "welcome"; connections: readonly ConnectionId[]; whole: Uint8Array; standing: Standing };

/** The last step of the drop order, which only a room's owner takes. */
const FULL_FROM_SHED = 8;

const AT_FIRST: Standing = { mode: "flat", participants: 0, presencePerSecond: 30, shed: 0 };
const AT_ONCE = Number.NEGATIVE_INFINITY as Millis;
const NEVER = Number.POSITIVE_INFINITY as Millis;

export class PresenceDownward {
  readonly #members: Pick<PresenceMembers, "of" | "connectionsOf" | "soleConnection">;
  readonly #view: PresenceView;
  readonly #reach: Reach;
  /** Where each member of here looks. */
  readonly #looks = new SeldomMap<ClientId, Rectangle>();
  /** Those who have not been told the whole yet. */
  readonly #arrived = new SeldomSet<ConnectionId>();
  /** Those who are told nothing until they have taken what they were sent. */
  readonly #behind = new SeldomSet<ConnectionId>();
  /** The owner's, and how far down the drop order this gateway is itself. */
  #standing = AT_FIRST;
  #shedLevel = 0;

  constructor(members: Pick<PresenceMembers, "of" | "connectionsOf" | "soleConnection">, view: PresenceView) {
    this.#members = members;
    this.#view = view;
    this.#reach = new Reach(view);
  }

  get presencePerSecond(): number {
    return this.#standing.presencePerSecond;
  }

  /** Over its budget the room takes nobody new for a moment. */
  get isFull(): boolean {
    return this.#standing.shed >= FULL_FROM_SHED;
  }

  get dueAt(): Millis {
    return this.#hasToWelcome ? AT_ONCE : (this.#reach.dueAt ?? NEVER);
  }

  /** It may have been here before, and knows nothing any more: it is told the whole. `gone`: whom else it was the last connection of. */
  enter(connection: ConnectionId, gone: ClientId | undefined): DownwardEffect[] {
    if (gone !== undefined) this.#looks.delete(gone);
    if (!this.#behind.has(connection)) this.#arrived.add(connection);
    return this.#reach.exit(connection);
  }

  /** `gone`: the member whose last connection it was. */
  leave(connection: ConnectionId, gone: ClientId | undefined): DownwardEffect[] {
    this.#arrived.delete(connection);
    this.#behind.delete(connection);
    if (gone !== undefined) this.#looks.delete(gone);
    return this.#reach.exit(connection);
  }

  /** Presence goes first: what else waits for it must not wait longer. Once it keeps up again it is told the whole. */
  receiveBehind(connection: ConnectionId): DownwardEffect[] {
    if (this.#members.of(connection) === undefined) return [];
    this.#behind.add(connection);
    this.#arrived.delete(connection);
    return this.#reach.exit(connection);
  }

  receiveKeepingUp(connection: ConnectionId): void {
    if (this.#behind.delete(connection)) this.#arrived.add(connection);
  }

  tell(tidings: Tidings, now: Millis): DownwardEffect[] {
    return this.#reach.tell(tidings, this.#soleSenderOf(tidings.news), now);
  }

  receiveStanding(standing: Standing, now: Millis): DownwardEffect[] {
    return this.#change(standing, this.#shedLevel, now);
  }

  receiveShed(level: number, now: Millis): DownwardEffect[] {
    return this.#change(this.#standing, level, now);
  }

  /** Members of here who are new, or another than before. */
  changeLanes(members: readonly Member[]): void {
    for (const member of members)
      for (const connection of this.#members.connectionsOf(member.client)) this.#reach.changeLane(connection, laneOf(member));
  }

  /** What members of here have just shown, among it where they look. */
  look(states: readonly MemberState[]): DownwardEffect[] {
    const effects: DownwardEffect[] = [];
    for (const { client, fields } of states) {
      const viewport = fields.find(({ name }) => name === VIEWPORT);
      if (viewport === undefined) continue;
      const view = decodeRectangle(viewport.value);
      if (view === undefined) this.#looks.delete(client);
      else this.#looks.set(client, view);
      for (const connection of this.#members.connectionsOf(client)) effects.push(...this.#reach.look(connection, view));
    }
    return effects;
  }

  tick(now: Millis): DownwardEffect[] {
    const effects: DownwardEffect[] = this.#reach.tick(now);
    if (!this.#hasToWelcome) return effects;
    const connections = [...this.#arrived];
    this.#arrived.clear();
    effects.push({ kind: "welcome", connections, whole: this.#view.whole, standing: this.#told });
    for (const connection of connections) effects.push(...this.#enterReach(connection));
    return effects;
  }

  get #hasToWelcome(): boolean {
    return this.#arrived.size > 0 && !this.#view.isEmpty;
  }

  /** The members are told, and reached accordingly from now on. */
  #change(standing: Standing, shedLevel: number, now: Millis): DownwardEffect[] {
    const before = this.#told;
    this.#standing = standing;
    this.#shedLevel = shedLevel;
    const told = this.#told;
    const effects: DownwardEffect[] =
      this.#reach.reachesNobody || isSameStanding(before, told) ? [] : [{ kind: "publish-mode", standing: told }];
    effects.push(...this.#reach.changeRule(told, now));
    return effects;
  }

  /** As the members are told it. */
  get #told(): Standing {
    return { ...this.#standing, shed: Math.max(this.#standing.shed, this.#shedLevel) };
  }

  #enterReach(connection: ConnectionId): DownwardEffect[] {
    const member = this.#members.of(connection);
    return member === undefined ? [] : this.#reach.enter(connection, laneOf(member), this.#looks.get(member.client));
  }

  /** The one here whose doing all of it is, and who knows it already. */
  #soleSenderOf({ whole, present, gone, states }: PresenceNews): ConnectionId | undefined {
    const [state] = states;
    if (whole || present.length > 0 || gone.length > 0 || states.length > 1 || state === undefined) return undefined;
    const client = this.#view.clientOf(state.number);
    return client === undefined ? undefined : this.#members.soleConnection(client);
  }
}

function laneOf({ spectator }: Member): LaneName {
  return spectator ? "spectators" : "editors";
}
