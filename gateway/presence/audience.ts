/**
 * The members of a room on this gateway who receive its presence. A new member, or one that was behind, receives a
 * snapshot first. In a small room all members receive the owner's own bytes. In a hierarchical room, or while the
 * gateway sheds load, members receive presence in lanes (lanes.ts).
 *
 * A room changes between the two modes only between two deltas, so no presence is lost. Other gateways do not affect
 * this.
 */

import type { PresenceMember, PresenceMemberState, PresenceStatus } from "../../shared/bus/presence-messages.ts";
import { LazyMap, LazySet } from "../../shared/collections/lazy-map.ts";
import type { ClientId, Millis } from "../../shared/ids.ts";
import { encodeSplitDelta } from "../../shared/presence/split-delta.ts";
import { decodeRectangle, type Rectangle } from "../../shared/wire/positions.ts";
import { encodeDelta, type PresenceDelta, VIEWPORT } from "../../shared/wire/presence.ts";
import type { ConnectionId } from "../ports.ts";
import { Lanes, type LanesEffect, type LaneTopic } from "./lanes.ts";
import type { PresenceMembers } from "./presence-members.ts";
import { isSameStatus, type PresenceUpdate, type PresenceView } from "./presence-view.ts";
import { type LaneName, laneRatesOf } from "./shed-ladder.ts";

/** All members listen to `everybody`; some listen to topics of their lane as well. */
export type AudienceTopic = "everybody" | LaneTopic;

export type AudienceEffect =
  | { kind: "publish"; topic: AudienceTopic; delta: Uint8Array; except: ConnectionId | undefined }
  | { kind: "send"; to: ConnectionId; delta: Uint8Array }
  | { kind: "listen" | "unlisten"; connection: ConnectionId; topic: AudienceTopic }
  | { kind: "publish-mode"; status: PresenceStatus }
  /** The snapshot for members who are new. */
  | { kind: "welcome"; connections: readonly ConnectionId[]; snapshot: Uint8Array; status: PresenceStatus };

type MembersHere = Pick<PresenceMembers, "of" | "connectionsOf" | "soleConnection">;
type RoomNow = Pick<PresenceView, "isEmpty" | "everything" | "snapshot" | "clientOf">;

/** The last level of shedding, which only a room's owner reaches. */
const FULL_FROM_SHED = 8;
const INITIAL_STATUS: PresenceStatus = { mode: "flat", participants: 0, presencePerSecond: 30, shed: 0 };
const IMMEDIATELY = Number.NEGATIVE_INFINITY as Millis;
const NEVER = Number.POSITIVE_INFINITY as Millis;

export class Audience {
  readonly #members: MembersHere;
  readonly #view: RoomNow;
  /** Connections that have the snapshot, with their lane. */
  readonly #lanesOf = new Map<ConnectionId, LaneName>();
  /** Connections that wait for the snapshot. */
  readonly #arrived = new LazySet<ConnectionId>();
  /** Connections that receive no presence until they have read what was sent to them. */
  readonly #behind = new LazySet<ConnectionId>();
  /** The place at which each member on this gateway looks. */
  readonly #viewports = new LazyMap<ClientId, Rectangle>();
  /** Undefined: all members receive the owner's bytes. */
  #lanes: Lanes | undefined;
  /** The mode that the owner sent. */
  #ownerStatus = INITIAL_STATUS;
  /** The shed level of this gateway. */
  #shedLevel = 0;

  constructor(members: MembersHere, view: RoomNow) {
    this.#members = members;
    this.#view = view;
  }

  /** As the owner announced it last. */
  get ownerStatus(): PresenceStatus {
    return this.#ownerStatus;
  }

  /** The room is over its budget and temporarily admits no new member. */
  get isFull(): boolean {
    return this.#ownerStatus.shed >= FULL_FROM_SHED;
  }

  /** Time at which the next tick has something to send. */
  get dueAt(): Millis {
    return this.#hasToWelcome ? IMMEDIATELY : (this.#lanes?.dueAt ?? NEVER);
  }

  /**
   * A connection that joins again has lost its state, and receives the snapshot. `gone`: the other member whose last
   * connection it was.
   */
  receiveEntry(connection: ConnectionId, gone: ClientId | undefined): AudienceEffect[] {
    if (gone !== undefined) this.#viewports.delete(gone);
    if (!this.#behind.has(connection)) this.#arrived.add(connection);
    return this.#remove(connection);
  }

  /** `gone`: the member whose last connection it was. */
  receiveLeave(connection: ConnectionId, gone: ClientId | undefined): AudienceEffect[] {
    this.#arrived.delete(connection);
    this.#behind.delete(connection);
    if (gone !== undefined) this.#viewports.delete(gone);
    return this.#remove(connection);
  }

  /** Presence is dropped first, so that edits do not wait behind it. */
  receiveBehind(connection: ConnectionId): AudienceEffect[] {
    if (this.#members.of(connection) === undefined) return [];
    this.#behind.add(connection);
    this.#arrived.delete(connection);
    return this.#remove(connection);
  }

  receiveKeepingUp(connection: ConnectionId): void {
    if (this.#behind.delete(connection)) this.#arrived.add(connection);
  }

  /** Call after the view has applied the update. */
  sendUpdate({ bytes, delta }: PresenceUpdate, now: Millis): AudienceEffect[] {
    if (this.#lanes === undefined) return this.#publish(bytes, this.#soleSenderOf(delta));
    if (!delta.snapshot) return this.#encoded(this.#lanes.receiveDelta(delta, now));
    this.#lanes.receiveSnapshot(delta);
    return this.#publish(bytes, undefined);
  }

  receiveStatus(status: PresenceStatus, now: Millis): AudienceEffect[] {
    return this.#changeStatus(status, this.#shedLevel, now);
  }

  receiveShed(level: number, now: Millis): AudienceEffect[] {
    return this.#changeStatus(this.#ownerStatus, level, now);
  }

  /** Members of this gateway who have become spectators or editors. */
  changeLanes(members: readonly PresenceMember[]): void {
    for (const member of members) {
      const lane = laneOf(member);
      for (const connection of this.#members.connectionsOf(member.client)) {
        if ((this.#lanesOf.get(connection) ?? lane) === lane) continue;
        this.#lanesOf.set(connection, lane);
        this.#lanes?.changeLane(connection, lane);
      }
    }
  }

  /** Fields that members of this gateway have just changed, including the place at which they look. */
  receiveShown(states: readonly PresenceMemberState[]): AudienceEffect[] {
    const effects: AudienceEffect[] = [];
    for (const { client, fields } of states) {
      const viewport = fields.find(({ name }) => name === VIEWPORT);
      if (viewport === undefined) continue;
      const rectangle = decodeRectangle(viewport.value);
      if (rectangle === undefined) this.#viewports.delete(client);
      else this.#viewports.set(client, rectangle);
      for (const connection of this.#members.connectionsOf(client))
        if (this.#lanesOf.has(connection)) effects.push(...this.#encoded(this.#lanes?.changeView(connection, rectangle)));
    }
    return effects;
  }

  receiveTick(now: Millis): AudienceEffect[] {
    const effects = this.#encoded(this.#lanes?.receiveTick(now));
    if (!this.#hasToWelcome) return effects;
    const connections = [...this.#arrived];
    this.#arrived.clear();
    effects.push({ kind: "welcome", connections, snapshot: this.#view.snapshot, status: this.#status });
    for (const connection of connections) effects.push(...this.#add(connection));
    return effects;
  }

  get #hasToWelcome(): boolean {
    return this.#arrived.size > 0 && !this.#view.isEmpty;
  }

  /** The mode that the members receive. */
  get #status(): PresenceStatus {
    return { ...this.#ownerStatus, shed: Math.max(this.#ownerStatus.shed, this.#shedLevel) };
  }

  #changeStatus(ownerStatus: PresenceStatus, shedLevel: number, now: Millis): AudienceEffect[] {
    const before = this.#status;
    this.#ownerStatus = ownerStatus;
    this.#shedLevel = shedLevel;
    const status = this.#status;
    const effects: AudienceEffect[] = this.#lanesOf.size === 0 || isSameStatus(before, status) ? [] : [{ kind: "publish-mode", status }];
    if (status.mode === before.mode && status.shed === before.shed) return effects;
    if (this.#lanes !== undefined && status.mode === before.mode && hasLanes(status))
      return [...effects, ...this.#encoded(this.#lanes.changeRates(laneRatesOf(status.shed)))];
    effects.push(...this.#leaveLanes());
    if (hasLanes(status)) effects.push(...this.#enterLanes(status, now));
    return effects;
  }

  #add(connection: ConnectionId): AudienceEffect[] {
    const member = this.#members.of(connection);
    if (member === undefined) return [];
    const lane = laneOf(member);
    this.#lanesOf.set(connection, lane);
    const inLane = this.#lanes?.add(connection, lane, this.#viewports.get(member.client));
    return [{ kind: "listen", connection, topic: "everybody" }, ...this.#encoded(inLane)];
  }

  #remove(connection: ConnectionId): AudienceEffect[] {
    if (!this.#lanesOf.delete(connection)) return [];
    return [{ kind: "unlisten", connection, topic: "everybody" }, ...this.#encoded(this.#lanes?.remove(connection))];
  }

  #enterLanes({ mode, shed }: PresenceStatus, now: Millis): AudienceEffect[] {
    const lanes = new Lanes(this.#view.everything, { byView: mode === "hierarchical", rates: laneRatesOf(shed) }, now);
    this.#lanes = lanes;
    return [...this.#lanesOf].flatMap(([connection, lane]) => {
      const client = this.#members.of(connection)?.client;
      return this.#encoded(lanes.add(connection, lane, client === undefined ? undefined : this.#viewports.get(client)));
    });
  }

  /** Members in lanes lack a part of presence, so all of them receive the snapshot. */
  #leaveLanes(): AudienceEffect[] {
    if (this.#lanes === undefined) return [];
    const effects = this.#encoded(this.#lanes.removeAll());
    this.#lanes = undefined;
    return [...effects, { kind: "publish", topic: "everybody", delta: encodeDelta(this.#view.everything), except: undefined }];
  }

  #publish(delta: Uint8Array, except: ConnectionId | undefined): AudienceEffect[] {
    return this.#lanesOf.size === 0 ? [] : [{ kind: "publish", topic: "everybody", delta, except }];
  }

  #encoded(effects: readonly LanesEffect[] = []): AudienceEffect[] {
    return effects.flatMap((effect): AudienceEffect | AudienceEffect[] => {
      switch (effect.kind) {
        case "publish":
          return encodeSplitDelta(effect.delta).map((delta) => ({ kind: "publish", topic: effect.topic, delta, except: undefined }));
        case "send":
          return { kind: "send", to: effect.to, delta: encodeDelta(effect.delta) };
        case "send-snapshot":
          return this.#sendSnapshot(effect.to);
        default:
          return effect;
      }
    });
  }

  #sendSnapshot(to: ConnectionId | undefined): AudienceEffect {
    const snapshot = this.#view.everything;
    if (to !== undefined) return { kind: "send", to, delta: encodeDelta(snapshot) };
    this.#lanes?.receiveSnapshot(snapshot);
    return { kind: "publish", topic: "everybody", delta: encodeDelta(snapshot), except: undefined };
  }

  /** The only connection that caused the complete delta, and that therefore has it already. */
  #soleSenderOf({ snapshot, present, gone, states }: PresenceDelta): ConnectionId | undefined {
    const [state] = states;
    if (snapshot || present.length > 0 || gone.length > 0 || states.length > 1 || state === undefined) return undefined;
    const client = this.#view.clientOf(state.number);
    return client === undefined ? undefined : this.#members.soleConnection(client);
  }
}

function laneOf({ spectator }: PresenceMember): LaneName {
  return spectator ? "spectators" : "editors";
}

function hasLanes({ mode, shed }: PresenceStatus): boolean {
  return mode === "hierarchical" || shed > 0;
}
