/**
 * Holds the presence of the rooms that this server owns. Passes gateways' messages to each room and carries out its
 * effects, with separate timers, so that edits never wait. Presence begins and ends with a room's ownership.
 */

import { assertNever } from "../../shared/assert.ts";
import type { Operations } from "../../shared/bus/operations-events.ts";
import { PairBatches, type PresenceUp } from "../../shared/bus/presence-batches.ts";
import {
  decodePresenceToOwner,
  encodePresenceFromServer,
  type PresenceFromServer,
  type PresenceToOwner,
} from "../../shared/bus/presence-messages.ts";
import { fnv1a } from "../../shared/collections/hash.ts";
import type { Epoch, Millis, RoomKey, GatewayId } from "../../shared/ids.ts";
import type { Log } from "../../shared/process/log.ts";
import { Alarm, type AlarmDeps, Alarms } from "../../shared/time/alarm.ts";
import type { RoomMode } from "../../shared/wire/frames.ts";
import type { BudgetLevel } from "../load/fair-share.ts";
import type { RoomServerMetrics } from "../metrics.ts";
import type { RoomActivityReports, PresenceBus } from "../ports.ts";
import { PresenceTicks } from "./presence-ticks.ts";
import {
  OwnerPresence,
  type PresenceAccount,
  type OwnerPresenceEffect,
  type OwnerPresenceInput,
  type OwnerPresenceOptions,
} from "./presence.ts";

/** `presenceTickMs`: minimum time between two deltas of a room. */
export type OwnerPresenceHostOptions = OwnerPresenceOptions & { readonly gatewaySilenceMsMax: number; readonly presenceTickMs: number };

type OwnerPresenceHostDeps = AlarmDeps & {
  readonly log: Log;
  readonly metrics: RoomServerMetrics;
  readonly operations: Operations;
  /** A gateway knows a later owner of a room. */
  readonly onDeposed: (room: RoomKey) => void;
  readonly activity: RoomActivityReports;
  /** Counts the messages that are sent for a room. */
  readonly presenceSent: (room: RoomKey, bytes: number) => void;
};

type Hosted = {
  readonly key: RoomKey;
  readonly presence: OwnerPresence;
  readonly alarm: Alarm;
  /** As announced last. */
  mode: RoomMode;
};

const WATCH_MS = 250;
/** A room searches for silent gateways only once in this many checks, because there are very many rooms. */
const WATCHES_PER_ROUND = 4;
/** Delay of a timer that proves that the process was paused and received nothing. */
const PAUSED_MS = 1_000;

const TICK = { kind: "tick" } as const;

export class OwnerPresenceHost {
  readonly #bus: PresenceBus;
  readonly #options: OwnerPresenceHostOptions;
  readonly #deps: OwnerPresenceHostDeps;
  readonly #alarms: Alarms;
  readonly #rooms = new Map<RoomKey, Hosted>();
  readonly #alive: GatewaysAlive;
  readonly #ticks: PresenceTicks;
  readonly #batches = new PairBatches<GatewayId>();
  readonly #sending: Alarm;
  #watches = 0;
  /** Number of connection losses when all rooms last requested their members. */
  #lossesRepaired = 0;
  #stopWatching: () => void = () => {};

  constructor(bus: PresenceBus, options: OwnerPresenceHostOptions, deps: OwnerPresenceHostDeps) {
    this.#bus = bus;
    this.#options = options;
    this.#deps = deps;
    this.#alarms = new Alarms(deps);
    this.#alive = new GatewaysAlive(options);
    this.#ticks = new PresenceTicks(options);
    this.#sending = new Alarm(() => this.#sendDue(), this.#alarms);
    bus.onHeartbeat((gateway) => this.#alive.receiveHeartbeat(gateway, deps.clock.now()));
    bus.onBatch((batch) => this.#receiveBatch(batch));
    this.#watch();
  }

  begin(key: RoomKey, epoch: Epoch): void {
    const presence = new OwnerPresence(epoch, this.#options, this.#ticks.momentsOf(fnv1a(key)), this.#deps.clock.now());
    const alarm = new Alarm(() => this.#feed(hosted, TICK), this.#alarms);
    const hosted: Hosted = { key, presence, alarm, mode: "flat" };
    this.#rooms.set(key, hosted);
    this.#setAlarm(hosted);
  }

  /** A gateway that does not know the owner asks on the room's subject. Dropped if this server does not own the room. */
  receivePresence(key: RoomKey, message: PresenceToOwner): void {
    const hosted = this.#rooms.get(key);
    if (hosted === undefined) return;
    this.#alive.receiveHeartbeat(message.gateway, this.#deps.clock.now());
    this.#feed(hosted, message);
  }

  #receiveBatch({ gateway, sentAtMs, entries }: PresenceUp): void {
    const now = this.#deps.clock.now();
    this.#alive.receiveHeartbeat(gateway, now);
    this.#ticks.receiveBatch(gateway, sentAtMs, now);
    for (const { room, message: bytes } of entries) {
      const hosted = this.#rooms.get(room);
      const message = hosted === undefined ? undefined : decodePresenceToOwner(bytes);
      if (hosted === undefined) this.#send(gateway, room, encodePresenceFromServer({ kind: "not-owner" }));
      else if (message === undefined) this.#deps.metrics.messagesUnread.inc();
      else this.#feed(hosted, message);
    }
  }

  end(key: RoomKey): void {
    const hosted = this.#rooms.get(key);
    if (hosted === undefined) return;
    this.#rooms.delete(key);
    hosted.alarm.callOff();
  }

  /** Undefined: this server does not own the room. */
  accountOf(key: RoomKey): PresenceAccount | undefined {
    return this.#rooms.get(key)?.presence.account;
  }

  isHere(key: RoomKey): boolean {
    return this.#rooms.has(key);
  }

  eachSize(receive: (key: RoomKey, participants: number) => void): void {
    for (const { key, presence } of this.#rooms.values()) receive(key, presence.participants);
  }

  eachCost(receive: (key: RoomKey, cost: number) => void): void {
    for (const { key, presence } of this.#rooms.values()) receive(key, presence.cost);
  }

  holdBack(key: RoomKey, level: BudgetLevel): void {
    const hosted = this.#rooms.get(key);
    if (hosted !== undefined) this.#feed(hosted, { kind: "hold-back", level });
  }

  isInhabited(key: RoomKey): boolean {
    return (this.#rooms.get(key)?.presence.participants ?? 0) > 0;
  }

  stop(): void {
    this.#stopWatching();
    this.#sending.callOff();
    for (const key of this.#rooms.keys()) this.end(key);
  }

  #feed(hosted: Hosted, input: OwnerPresenceInput): void {
    const before = hosted.presence.participants;
    for (const effect of hosted.presence.receivePresenceInput(input, this.#deps.clock.now())) this.#carryOut(hosted, effect);
    const after = hosted.presence.participants;
    if ((before === 0) !== (after === 0)) this.#deps.activity.report(hosted.key, after > 0 ? "room.occupied" : "room.vacated");
    this.#setAlarm(hosted);
  }

  /** Has no effect on a presence that has ended, even if the room has begun again. */
  #setAlarm(hosted: Hosted): void {
    const { dueAt } = hosted.presence;
    if (dueAt !== undefined && this.#rooms.get(hosted.key) === hosted) hosted.alarm.setFor(dueAt);
  }

  #carryOut(hosted: Hosted, effect: OwnerPresenceEffect): void {
    const { metrics, operations, onDeposed } = this.#deps;
    const { key } = hosted;
    switch (effect.kind) {
      case "broadcast":
        if (effect.message.kind === "delta") {
          metrics.presenceDeltas.inc();
          metrics.presenceDeltaBytes.inc(effect.message.delta.byteLength);
        }
        return this.#sendTo(effect.to, key, effect.message);
      case "answer":
        if (effect.answer.kind === "snapshot") metrics.presenceSyncs.inc();
        return this.#sendTo([effect.gateway], key, effect.answer);
      case "mode-changed":
        hosted.mode = effect.to;
        metrics.modeChanges.inc({ to: effect.to });
        return operations.report({ ...effect, kind: "mode_transition", room: key });
      case "deposed":
        return onDeposed(key);
      case "limit-reached":
        return metrics.limitsReached.inc({ limit: effect.limit });
      default:
        return assertNever(effect);
    }
  }

  #sendTo(gateways: readonly GatewayId[], key: RoomKey, message: PresenceFromServer): void {
    if (gateways.length === 0) return;
    const bytes = encodePresenceFromServer(message);
    this.#deps.presenceSent(key, bytes.byteLength * gateways.length);
    for (const gateway of gateways) this.#send(gateway, key, bytes);
  }

  #send(gateway: GatewayId, room: RoomKey, message: Uint8Array): void {
    this.#batches.add(gateway, { room, message });
    this.#sending.setFor(this.#batches.dueAt);
  }

  #sendDue(): void {
    for (const { peer, entries } of this.#batches.takeDue(this.#deps.clock.now()))
      this.#bus.sendBatch(peer, { timing: this.#ticks.timingOf(peer), entries });
    this.#sending.setFor(this.#batches.dueAt);
  }

  #watch(): void {
    const { clock } = this.#deps;
    const before = clock.now();
    this.#stopWatching = clock.after(WATCH_MS, () => {
      this.#lookAtGateways(before);
      this.#watch();
    });
  }

  #lookAtGateways(before: Millis): void {
    const { clock, log, metrics } = this.#deps;
    const now = clock.now();
    const { isUp, losses } = this.#bus.connectionStatus();
    const couldReceive = isUp && now - before <= PAUSED_MS;
    if (!couldReceive) this.#alive.excuseAll(now);
    if (isUp && losses > this.#lossesRepaired) {
      this.#lossesRepaired = losses;
      for (const hosted of this.#rooms.values()) this.#feed(hosted, { kind: "connection-lost" });
    }
    for (const gateway of this.#alive.takeLost(now)) {
      log.info({ gateway }, "a gateway is silent; its members are removed");
      metrics.gatewaysLost.inc();
      this.#ticks.forget(gateway);
      for (const hosted of this.#rooms.values()) this.#feed(hosted, { kind: "gateway-lost", gateway });
    }
    metrics.gatewaysAlive.set(this.#alive.size);
    this.#watches += 1;
    if (this.#watches % WATCHES_PER_ROUND === 0) this.#lookAtRooms(couldReceive, now);
  }

  #lookAtRooms(couldReceive: boolean, now: Millis): void {
    const { metrics } = this.#deps;
    let [participants, bytes, inhabited, hierarchical] = [0, 0, 0, 0];
    for (const hosted of this.#rooms.values()) {
      const { presence } = hosted;
      if (couldReceive && presence.hasSilent(now)) this.#feed(hosted, { kind: "look" });
      participants += presence.participants;
      bytes += presence.bytes;
      if (presence.participants > 0) inhabited += 1;
      if (hosted.mode === "hierarchical") hierarchical += 1;
    }
    this.#ticks.receiveRoomCount(inhabited);
    metrics.participants.set(participants);
    metrics.presenceBytes.set(bytes);
    metrics.roomsByMode.set({ mode: "flat" }, this.#rooms.size - hierarchical);
    metrics.roomsByMode.set({ mode: "hierarchical" }, hierarchical);
  }
}

/**
 * Decides from gateways' messages which gateways are alive. A gateway that was only paused announces its members again.
 * After a connection loss or a pause of this server, no gateway is declared lost.
 */
export class GatewaysAlive {
  readonly #silenceMsMax: number;
  readonly #lastHeartbeats = new Map<GatewayId, Millis>();

  constructor(options: { gatewaySilenceMsMax: number }) {
    this.#silenceMsMax = options.gatewaySilenceMsMax;
  }

  get size(): number {
    return this.#lastHeartbeats.size;
  }

  receiveHeartbeat(gateway: GatewayId, now: Millis): void {
    this.#lastHeartbeats.set(gateway, now);
  }

  /** This server could not receive until now. */
  excuseAll(now: Millis): void {
    for (const gateway of this.#lastHeartbeats.keys()) this.#lastHeartbeats.set(gateway, now);
  }

  /** The gateways that became silent since the last call. */
  takeLost(now: Millis): GatewayId[] {
    const lost = [...this.#lastHeartbeats].filter(([, at]) => now - at > this.#silenceMsMax).map(([gateway]) => gateway);
    for (const gateway of lost) this.#lastHeartbeats.delete(gateway);
    return lost;
  }
}
