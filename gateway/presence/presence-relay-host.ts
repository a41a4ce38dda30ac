/**
 * Holds the presence of the rooms that have members on this gateway: passes each input to its room, and carries out the
 * effects. Presence has separate messages and timers, so edits never wait for it.
 */

import { assertNever } from "../../shared/assert.ts";
import { decodePresenceDown, PairBatches } from "../../shared/bus/presence-batches.ts";
import {
  decodePresenceFromServer,
  encodePresenceToOwner,
  type PresenceMember,
  type PresenceStatus,
} from "../../shared/bus/presence-messages.ts";
import { fnv1a } from "../../shared/collections/hash.ts";
import { OneRound } from "../../shared/collections/one-round.ts";
import { type ClientId, type Epoch, type Millis, type RoomKey, type ServerId, tenantOf } from "../../shared/ids.ts";
import { nextMoment, type SendTiming, phaseOf } from "../../shared/presence/send-timing.ts";
import { Alarm, Alarms } from "../../shared/time/alarm.ts";
import { CLOSE } from "../../shared/wire/close-codes.ts";
import { encodeFrame, encodePresenceDeltaFrame } from "../../shared/wire/codec.ts";
import type { Channel } from "../../shared/wire/frames.ts";
import type { PresenceField } from "../../shared/wire/presence.ts";
import { every } from "../../shared/time/every.ts";
import type { HostDeps } from "../host-deps.ts";
import type { Dispatch } from "../part-effects.ts";
import type { ConnectionId, PresenceBackbone, PresenceServers, Sockets, Topics } from "../ports.ts";
import type { UsageMeter } from "../usage/usage-meter.ts";
import type { AudienceTopic } from "./audience.ts";
import type { PresenceRelayOptions } from "./presence-outbox.ts";
import { PresenceRelay, type PresenceRelayEffect, type PresenceRelayInput } from "./presence-relay.ts";

type PresenceRelayPorts = {
  readonly sockets: Sockets;
  readonly topics: Topics;
  readonly servers: PresenceServers;
  readonly usage: UsageMeter;
  readonly dispatch: Dispatch;
};
type PresenceRelayHostOptions = PresenceRelayOptions & { readonly heartbeatMs: number };

/** `place`: the room's place among the slots of its server's tick. */
type Hosted = { readonly key: RoomKey; readonly place: number; channel: Channel; readonly presence: PresenceRelay; readonly alarm: Alarm };

const TICK = { kind: "tick" } as const;
/** As long as members of a lost gateway stay, who also move to another one. */
const MOVE_MS_MAX = 2_000;
/** A new shed level reaches the rooms in this many turns. In one turn, thousands of rooms would make a late gateway later. */
const SHED_TURNS = 10;
const SHED_TURN_MS = 10;
/** Used until the first message of a room server gives the time to send. */
const UNKNOWN_TIMING: SendTiming = { tickMs: 50, slots: 1, sendAtMs: 0 };

export class PresenceRelayHost implements PresenceBackbone {
  readonly #ports: PresenceRelayPorts;
  readonly #options: PresenceRelayHostOptions;
  readonly #deps: HostDeps;
  readonly #alarms: Alarms;
  readonly #rooms = new Map<RoomKey, Hosted>();
  readonly #batches = new PairBatches<ServerId>();
  readonly #sending: Alarm;
  readonly #timings = new Map<ServerId, SendTiming>();
  /**
   * Connections that receive no presence until they have read their unread data. This applies to all rooms that they
   * join in the meantime.
   */
  readonly #behind = new Set<ConnectionId>();
  /** Higher than all numbers in rooms that are no longer held, because an owner may still know those numbers. */
  #lastNumber = 0;
  #shedLevel = 0;
  #cancelShedTurn: () => void = () => {};
  #stopBeating: () => void = () => {};
  #isUp = true;
  #isStopped = false;

  constructor(ports: PresenceRelayPorts, options: PresenceRelayHostOptions, deps: HostDeps) {
    this.#ports = ports;
    this.#options = options;
    this.#deps = deps;
    this.#alarms = new Alarms(deps);
    this.#sending = new Alarm(() => this.#sendDue(), this.#alarms);
  }

  start(): void {
    const { servers } = this.#ports;
    servers.publishHeartbeat();
    this.#stopBeating = every(this.#deps.clock, this.#options.heartbeatMs, () => servers.publishHeartbeat());
  }

  /** Stops permanently. Later messages of owners and clients find no room, and set no timer. */
  stop(): void {
    this.#isStopped = true;
    this.#stopBeating();
    this.#sending.callOff();
    this.#cancelShedTurn();
    for (const { alarm } of this.#rooms.values()) alarm.callOff();
    this.#rooms.clear();
  }

  receiveEntry(room: RoomKey, channel: Channel, connection: ConnectionId, member: PresenceMember): void {
    if (this.#isStopped) return;
    const hosted = this.#rooms.get(room) ?? this.#open(room, channel);
    hosted.channel = channel;
    this.#feed(hosted, { kind: "enter", connection, member });
    if (this.#behind.has(connection)) this.#feed(hosted, { kind: "behind", connection });
  }

  /** `rooms`: the rooms of the connection. When a connection that is behind closes, call this once more with "keeping-up". */
  receiveReadProgress(connection: ConnectionId, progress: "behind" | "keeping-up", rooms: readonly RoomKey[]): void {
    if (progress === "behind") this.#behind.add(connection);
    else this.#behind.delete(connection);
    for (const room of rooms) this.receiveInput(room, { kind: progress, connection });
  }

  /** `isMoving`: the client enters over another gateway. Others see it throughout, unless that takes too long. */
  receiveLeave(room: RoomKey, connection: ConnectionId, isMoving: boolean): void {
    const leave = (): void => this.receiveInput(room, { kind: "leave", connection });
    if (isMoving) this.#deps.clock.after(MOVE_MS_MAX, leave);
    else leave();
  }

  receiveInput(room: RoomKey, input: PresenceRelayInput): void {
    const hosted = this.#rooms.get(room);
    if (hosted !== undefined) this.#feed(hosted, input);
  }

  /** Call for an edit or any other input of a user. */
  receiveActivity(room: RoomKey, connection: ConnectionId): void {
    const hosted = this.#rooms.get(room);
    if (hosted?.presence.receiveActivity(connection, this.#deps.clock.now()) === true) this.#setAlarm(hosted);
  }

  receiveFields(room: RoomKey, connection: ConnectionId, fields: readonly PresenceField[]): void {
    this.#deps.metrics.presenceFrames.inc();
    this.#ports.usage.add(tenantOf(room), "presenceMessages", 1);
    this.receiveInput(room, { kind: "fields", connection, fields });
  }

  receiveBatch(server: ServerId, bytes: Uint8Array): void {
    const batch = decodePresenceDown(bytes);
    if (batch === undefined) return this.#deps.metrics.unreadable.inc();
    this.#timings.set(server, batch.timing);
    for (const { room, message } of batch.entries) {
      const hosted = this.#rooms.get(room);
      if (hosted !== undefined) this.#receiveFromServer(hosted, server, message);
    }
  }

  #receiveFromServer(hosted: Hosted, server: ServerId, bytes: Uint8Array): void {
    const message = decodePresenceFromServer(bytes);
    switch (message?.kind) {
      case undefined:
        return this.#deps.metrics.unreadable.inc();
      case "not-owner":
        return this.#feed(hosted, { kind: "not-owner", server });
      case "delta":
      case "head":
        return this.#feed(hosted, { kind: "from-owner", server, message });
      case "acked":
      case "missed":
      case "snapshot":
        return this.#feed(hosted, { kind: "answer", server, answer: message });
      default:
        return assertNever(message);
    }
  }

  /** The room has an owner in that epoch. Undefined: its name is unknown. */
  receiveOwner(room: RoomKey, server: ServerId | undefined, epoch: Epoch): void {
    this.receiveInput(room, { kind: "owner", server, epoch });
  }

  receiveServerGone(server: ServerId): void {
    this.#timings.delete(server);
    this.#batches.forget(server);
    for (const hosted of this.#rooms.values()) if (hosted.presence.owner === server) this.#feed(hosted, { kind: "server-gone", server });
  }

  receiveNoOwner(room: RoomKey): void {
    this.receiveInput(room, { kind: "no-responders" });
    this.#ports.dispatch({ kind: "owner-missing", room });
  }

  /** Whether the client is in the room over any gateway, according to the owner's last messages. */
  knows(room: RoomKey, client: ClientId): boolean {
    return this.#rooms.get(room)?.presence.knows(client) === true;
  }

  /** The highest epoch that an owner has sent. Undefined: this gateway has no member in the room. */
  epochOf(room: RoomKey): Epoch | undefined {
    return this.#rooms.get(room)?.presence.epoch;
  }

  /** Undefined: the owner has sent this gateway nothing about the room yet. */
  isFullFor(room: RoomKey, client: ClientId): boolean | undefined {
    return this.#rooms.get(room)?.presence.isFullFor(client);
  }

  /** `level`: the shed level of this gateway. */
  receiveShed(level: number): void {
    if (this.#isStopped) return;
    this.#shedLevel = level;
    this.#cancelShedTurn();
    this.#takeShedTurn(new OneRound(this.#rooms, SHED_TURNS));
  }

  /** Rooms that open meanwhile have the new level. */
  #takeShedTurn(round: OneRound<RoomKey, Hosted>): void {
    for (const hosted of round.take()) this.#feed(hosted, { kind: "shed", level: this.#shedLevel });
    if (!round.isDone) this.#cancelShedTurn = this.#deps.clock.after(SHED_TURN_MS, () => this.#takeShedTurn(round));
  }

  receiveBackboneLost(): void {
    this.#isUp = false;
    for (const hosted of this.#rooms.values()) this.#feed(hosted, { kind: "detached" });
  }

  receiveBackboneFound(): void {
    this.#isUp = true;
    for (const hosted of this.#rooms.values()) this.#feed(hosted, { kind: "attached" });
  }

  #open(key: RoomKey, channel: Channel): Hosted {
    const presence = new PresenceRelay(this.#options, this.#lastNumber, this.#deps.clock.now());
    const alarm = new Alarm(() => this.#feed(hosted, TICK), this.#alarms);
    const hosted: Hosted = { key, place: fnv1a(key), channel, presence, alarm };
    this.#rooms.set(key, hosted);
    presence.receiveInput({ kind: "shed", level: this.#shedLevel }, this.#deps.clock.now());
    if (this.#isUp) presence.receiveInput({ kind: "attached" }, this.#deps.clock.now());
    return hosted;
  }

  #feed(hosted: Hosted, input: PresenceRelayInput): void {
    for (const effect of hosted.presence.receiveInput(input, this.#deps.clock.now())) this.#carryOut(hosted, effect);
    if (hosted.presence.isDone) this.#close(hosted);
    else this.#setAlarm(hosted);
  }

  /** Fields of members are sent in the slot of the room, so that they arrive just before the owner's tick. */
  #setAlarm({ place, presence, alarm }: Hosted): void {
    const { owner, dueAt, fieldsDueAt } = presence;
    const { tickMs, slots, sendAtMs } = (owner === undefined ? undefined : this.#timings.get(owner)) ?? UNKNOWN_TIMING;
    const from = Math.max(fieldsDueAt, this.#deps.clock.now());
    alarm.setFor(Math.min(dueAt, nextMoment(from, tickMs, sendAtMs + phaseOf(place, tickMs, slots))) as Millis);
  }

  #send(server: ServerId, room: RoomKey, message: Uint8Array): void {
    this.#batches.add(server, { room, message });
    this.#sending.setFor(this.#batches.dueAt);
  }

  #sendDue(): void {
    const now = this.#deps.clock.now();
    for (const { peer, entries } of this.#batches.takeDue(now)) this.#ports.servers.sendBatch(peer, { sentAtMs: Math.floor(now), entries });
    this.#sending.setFor(this.#batches.dueAt);
  }

  #close({ key, presence, alarm }: Hosted): void {
    this.#lastNumber = Math.max(this.#lastNumber, presence.lastNumber);
    alarm.callOff();
    this.#rooms.delete(key);
  }

  #carryOut({ key, channel }: Hosted, effect: PresenceRelayEffect): void {
    const { sockets, topics, servers, usage } = this.#ports;
    const { metrics } = this.#deps;
    switch (effect.kind) {
      case "send-to-server":
        return this.#send(effect.server, key, encodePresenceToOwner(effect.message));
      case "ask-owner":
        return servers.askOwner(key, encodePresenceToOwner(effect.message));
      case "publish": {
        const frame = encodePresenceDeltaFrame(channel, effect.delta);
        metrics.presenceDeltas.inc();
        metrics.presenceDeltaBytes.inc(frame.byteLength);
        const recipients = topics.publishTo(topicOf(channel, effect.topic), frame, effect.except);
        return usage.add(tenantOf(key), "deliveredBytes", recipients * frame.byteLength);
      }
      case "send": {
        const frame = encodePresenceDeltaFrame(channel, effect.delta);
        metrics.presenceDeltaBytes.inc(frame.byteLength);
        usage.add(tenantOf(key), "deliveredBytes", frame.byteLength);
        return sockets.send(effect.to, frame);
      }
      case "listen":
        return topics.listenTo(effect.connection, topicOf(channel, effect.topic));
      case "unlisten":
        return topics.unlistenTo(effect.connection, topicOf(channel, effect.topic));
      case "publish-mode":
        return void topics.publishTo(topicOf(channel, "everybody"), modeFrame(channel, effect.status), undefined);
      case "welcome": {
        const frames = [encodePresenceDeltaFrame(channel, effect.snapshot), modeFrame(channel, effect.status)];
        for (const connection of effect.connections) for (const frame of frames) sockets.send(connection, frame);
        usage.add(tenantOf(key), "deliveredBytes", effect.connections.length * frames[0]!.byteLength);
        return;
      }
      case "refuse": {
        metrics.presenceRefused.inc({ limit: "bytes" });
        usage.add(tenantOf(key), "refusals", 1);
        const message = `what one participant shows may have ${this.#options.memberBytesMax} bytes in ${this.#options.memberFieldsMax} fields: show less`;
        return sockets.send(effect.connection, encodeFrame({ type: "error", code: CLOSE.frameTooLarge.code, message }));
      }
      case "delayed":
        return metrics.presenceDelayed.inc(effect.states);
      case "owner-silent":
        return this.#ports.dispatch({ kind: "owner-missing", room: key });
      case "synced":
        return metrics.presenceSyncs.inc();
      default:
        return assertNever(effect);
    }
  }
}

/** Presence topics are separate from the channel's own topic, which carries edits. */
function topicOf(channel: Channel, topic: AudienceTopic): string {
  return `${channel}p/${topic}`;
}

function modeFrame(channel: Channel, status: PresenceStatus): Uint8Array {
  return encodeFrame({ type: "mode", channel, ...status });
}
