/** Holds the rooms that this gateway follows, and sends their frames. An effect's outcome is an input, dropped if its room is gone. */

import { assertNever } from "../../shared/assert.ts";
import { decodeOwnerReply, type SubmittedEdit } from "../../shared/bus/envelope.ts";
import { type ClientId, type Position, type RoomKey, tenantOf } from "../../shared/ids.ts";
import { encodeCommittedFrame, encodeFrame } from "../../shared/wire/codec.ts";
import type { ServerFrame } from "../../shared/wire/frames.ts";
import { BackboneStatus } from "./backbone-status.ts";
import { limitedLog } from "../../shared/process/limited-log.ts";
import type { Log } from "../../shared/process/log.ts";
import { pause } from "../../shared/time/pause.ts";
import type { HostDeps } from "../host-deps.ts";
import { EditForwarding } from "./edit-forwarding-host.ts";
import type { FairForwardingOptions } from "./fair-forwarding.ts";
import type { FirstContents } from "./first-content-host.ts";
import { JoinAnswers } from "./join-answers-host.ts";
import type { SearchOutcome } from "./owner-search.ts";
import { OwnerSearches } from "./owner-searches-host.ts";
import type { Dispatch } from "../part-effects.ts";
import type { Backbone, ConnectionId, Placement, RoomOwners, Sockets } from "../ports.ts";
import type { PresenceRelayHost } from "../presence/presence-relay-host.ts";
import type { Quotas } from "../limits/quotas.ts";
import type { DirectoryEntry, RoomDirectory } from "./room-directory.ts";
import { readFromOwner, type FollowedRoomEffect, type FollowedRoomInput } from "./room-messages.ts";
import { FollowedRoomTicks } from "./room-ticks-host.ts";
import { Seats } from "./seats.ts";
import type { ClientSession } from "../sessions/client-session.ts";
import type { UnackedBudget } from "./unacked-budget.ts";
import type { UsageMeter } from "../usage/usage-meter.ts";
import type { WritesHost } from "./writes-host.ts";

type FollowedRoomsPorts = {
  readonly sockets: Sockets;
  readonly rooms: RoomOwners;
  readonly placement: Placement;
  readonly sessions: ReadonlyMap<ConnectionId, ClientSession>;
  readonly presence: PresenceRelayHost;
  readonly writes: WritesHost;
  /** Undefined: no room is gated. */
  readonly contents?: FirstContents | undefined;
  readonly quotas: Quotas;
  readonly usage: UsageMeter;
  readonly dispatch: Dispatch;
};

const SETTLE_CHECK_MS = 100;
const TENANT_RATE_RETRY_MS = 1_000;

export class FollowedRoomsHost implements Backbone {
  readonly backbone = new BackboneStatus();
  readonly #ports: FollowedRoomsPorts;
  readonly #directory: RoomDirectory;
  readonly #unacked: UnackedBudget;
  readonly #seats: Seats;
  readonly #searches: OwnerSearches;
  readonly #joins: JoinAnswers;
  readonly #ticks: FollowedRoomTicks;
  readonly #forwarding: EditForwarding;
  readonly #deps: HostDeps & { readonly log: Log };
  readonly #frames = new WeakMap<Uint8Array, Uint8Array>(); // By their edits: members may request a room's recent edits again and again.

  constructor(
    ports: FollowedRoomsPorts,
    directory: RoomDirectory,
    unacked: UnackedBudget,
    options: FairForwardingOptions & { readonly searchesMax: number },
    given: HostDeps & { readonly log: Log },
  ) {
    const deps = { ...given, log: limitedLog(given.log, given.clock) };
    const { quotas, presence, placement } = ports;
    this.#ports = ports;
    this.#directory = directory;
    this.#unacked = unacked;
    this.#deps = deps;
    const connectionCountOf = (room: RoomKey, client: ClientId): number => directory.get(room)?.room.connectionCountOf(client) ?? 0;
    this.#seats = new Seats({ quotas, presence, connectionCountOf });
    const receiveOutcome = (room: RoomKey, outcome: SearchOutcome): void => this.receiveInput(room, { kind: "search", outcome });
    this.#searches = new OwnerSearches(
      placement,
      { epochOf: (room) => directory.get(room)?.room.epoch, presenceEpochOf: (room) => presence.epochOf(room), receiveOutcome },
      options,
      deps,
    );
    this.#joins = new JoinAnswers(ports, deps);
    this.#ticks = new FollowedRoomTicks(deps.clock, (followed) => {
      if (directory.get(followed.key) === followed) this.#feed(followed, { kind: "tick" });
    });
    this.#forwarding = new EditForwarding((followed) => this.#feed(followed, { kind: "turn-ended" }), options, deps);
    deps.metrics.backboneConnected.set(1);
    placement.onServerLost((server) => {
      deps.log.info({ server }, "a room server sends no heartbeats any more");
      for (const followed of directory.all()) this.#feed(followed, { kind: "server-lost", server });
    });
  }

  /** Number of rooms that have members on this gateway, or had some a moment ago. */
  get followed(): number {
    return this.#directory.size;
  }

  /** The position up to which this gateway has the room's edits. Undefined: the gateway does not receive the room's edits now. */
  positionOf(room: RoomKey): Position | undefined {
    return this.backbone.isUp ? this.#directory.get(room)?.room.position : undefined;
  }

  /** Resolves when each accepted edit is in the log or refused, or when the time is over. */
  async settled(msMax: number): Promise<void> {
    const { clock } = this.#deps;
    const until = clock.now() + msMax;
    while (this.#unacked.edits > 0 && clock.now() < until) await pause(clock, SETTLE_CHECK_MS);
  }

  stop(): void {
    this.#forwarding.stop();
    this.#ticks.stop();
  }

  /** The first join makes the gateway follow the room. */
  receiveJoin(room: RoomKey, join: FollowedRoomInput & { kind: "join" }): void {
    const followed = this.#directory.get(room);
    const limit = followed?.room.has(join.connection) === true ? undefined : this.#seats.limitOf(room, join);
    if (limit !== undefined) {
      this.#deps.metrics.limitsReached.inc({ limit });
      return this.#joins.refuse(room, join, limit === "room" ? "room-full" : "room-busy");
    }
    if (followed === undefined) this.#follow(room);
    this.receiveInput(room, join);
  }

  receiveEdit(room: RoomKey, connection: ConnectionId, edit: SubmittedEdit): void {
    const followed = this.#directory.get(room);
    if (followed === undefined) return; // The room had no members for some time. The client joins again and repeats the edit.
    const limit = this.#ports.quotas.takeEdit(room, edit, this.#deps.clock.now());
    if (limit !== undefined) return this.#refuseEdit(followed, connection, edit, limit);
    this.#ports.presence.receiveActivity(room, connection);
    this.#takeEdit(followed, connection, edit);
  }

  /** An edit over HTTP, whose author need not be in the room. */
  receiveWrite(room: RoomKey, edit: SubmittedEdit): void {
    const limit = this.#ports.quotas.takeEdit(room, edit, this.#deps.clock.now());
    if (limit !== undefined) {
      this.#deps.metrics.limitsReached.inc({ limit });
      this.#ports.usage.add(tenantOf(room), "refusals", 1);
      return this.#ports.writes.receiveRefused(room, edit.author.client, "tenant-rate");
    }
    this.#takeEdit(this.#directory.get(room) ?? this.#follow(room), undefined, edit);
  }

  #takeEdit(followed: DirectoryEntry, connection: ConnectionId | undefined, edit: SubmittedEdit): void {
    this.#deps.hops?.received(followed.key, edit);
    this.#deps.metrics.edits.inc();
    this.#forwarding.receiveEdit(followed, edit.payload.byteLength);
    this.#feed(followed, { kind: "edit", connection, edit });
  }

  receiveInput(room: RoomKey, input: FollowedRoomInput): void {
    if (input.kind === "leave") this.#ports.dispatch({ kind: "left-room", room, connection: input.connection });
    const followed = this.#directory.get(room);
    if (followed !== undefined) this.#feed(followed, input);
  }

  /** The connection has asked to join the room, or is in it. */
  isIn(room: RoomKey, connection: ConnectionId): boolean {
    return this.#directory.get(room)?.room.has(connection) === true;
  }

  receiveFromOwner(room: RoomKey, bytes: Uint8Array): void {
    const message = readFromOwner(bytes);
    if (message === undefined) return this.#noteUnreadable(room, bytes);
    this.receiveInput(room, { kind: "from-owner", message });
  }

  receiveAnswer(room: RoomKey, bytes: Uint8Array): void {
    const answer = decodeOwnerReply(bytes);
    if (answer === undefined) return this.#noteUnreadable(room, bytes);
    this.#deps.hops?.answered(room, answer);
    this.receiveInput(room, { kind: "answer", answer });
  }

  receiveNoResponders(room: RoomKey): void {
    const isUnknown = this.#directory.get(room)?.room.position === undefined; // A room with a known position is open, without an owner.
    if (!isUnknown || this.#ports.quotas.mayOpenRoomOf(tenantOf(room))) return this.receiveInput(room, { kind: "no-responders" });
    this.#deps.metrics.limitsReached.inc({ limit: "tenant-rooms" });
    this.receiveInput(room, { kind: "not-opened" });
    this.#ports.writes.refuseRoom(room, "tenant-rooms");
  }

  receiveBackboneLost(): void {
    if (!this.backbone.isUp) return;
    this.backbone.receiveLost(this.#deps.clock.now());
    this.#deps.metrics.backboneConnected.set(0);
    this.#deps.log.warn({}, "NATS is out of reach; edits wait");
    for (const followed of this.#directory.all()) this.#feed(followed, { kind: "detached" });
  }

  receiveBackboneFound(): void {
    this.backbone.receiveFound();
    this.#deps.metrics.backboneConnected.set(1);
    this.#deps.log.info({}, "NATS is back; rooms catch up");
    for (const followed of this.#directory.all()) this.#feed(followed, { kind: "attached" });
  }

  /** The caller calls this about every second. */
  closeIdle(): void {
    for (const key of this.#directory.closeIdle(this.#deps.clock.now())) this.#ports.rooms.unfollow(key);
    const { rooms, unackedEdits, unackedBytes } = this.#deps.metrics;
    rooms.set(this.#directory.size);
    unackedEdits.set(this.#unacked.edits);
    unackedBytes.set(this.#unacked.bytes);
  }

  #follow(key: RoomKey): DirectoryEntry {
    const followed = this.#directory.open(key, this.#deps.clock.now());
    this.#deps.metrics.rooms.set(this.#directory.size);
    this.#ports.rooms.follow(key).then(
      () => {
        if (this.#directory.get(key) === followed && this.backbone.isUp) this.#feed(followed, { kind: "attached" });
      },
      // The connection to NATS is lost: `receiveBackboneFound` attaches the room with all others.
      (cause: unknown) => this.#deps.log.debug({ room: key, cause }, "a room is followed once NATS is back"),
    );
    return followed;
  }

  #feed(followed: DirectoryEntry, input: FollowedRoomInput): void {
    const { key, room } = followed;
    const { members, unackedBytes } = room;
    for (const effect of room.receiveInput(input, this.#deps.clock.now())) this.#carryOut(followed, effect);
    this.#ticks.schedule(followed);
    if (room.members !== members) this.#ports.quotas.receiveMembers(key, room.members);
    if (room.unackedBytes !== unackedBytes) this.#ports.quotas.receiveUnacked(key, room.unackedBytes);
  }

  #carryOut(followed: DirectoryEntry, effect: FollowedRoomEffect): void {
    const { key, channel } = followed;
    const { sockets, writes, presence, dispatch } = this.#ports;
    const { hops, metrics } = this.#deps;
    switch (effect.kind) {
      case "send-to-owner":
        hops?.forwarded(key, effect.message);
        return this.#ports.rooms.sendToOwner(key, effect.message, followed.room.epoch);
      case "search":
        return this.#searches.carryOut(key, effect.step);
      case "request-content":
        return void this.#ports.contents?.load(key).then((outcome) => this.receiveInput(key, { kind: "content", outcome }));
      case "owner-known":
        return presence.receiveOwner(key, effect.owner, effect.epoch);
      case "admit":
        return this.#joins.admit(followed, effect);
      case "expel":
        return dispatch({ kind: "expel", room: key, connection: effect.connection });
      case "reject":
        dispatch({ kind: "left-room", room: key, connection: effect.connection }); // The connection may have been in the room, and have joined again.
        return this.#joins.refuse(key, effect, effect.reason);
      case "send":
        return this.#send(key, effect.to, effect.frame);
      case "publish":
        return void sockets.publish(channel, encodeFrame(effect.frame), effect.except);
      case "send-edits":
        return this.#sendEdits(followed, effect);
      case "watch-read":
        return sockets.whenRead(effect.connection, () => this.receiveInput(key, { kind: "read", connection: effect.connection }));
      case "unwanted-catch-up":
        return this.#chargeCatchUp(effect.connection, effect.bytes);
      case "publish-edits":
        if (hops === undefined) return this.#publishEdits(followed, effect);
        return hops.delivering(key, effect.batch, () => this.#publishEdits(followed, effect));
      case "listen":
        return sockets.listen(effect.connection, channel);
      case "unlisten":
        return sockets.unlisten(effect.connection, channel);
      case "settled":
        hops?.committed(key, effect.batch);
        this.#ports.quotas.receiveOthersEdits(key, effect.batch.bytes.byteLength - effect.ownBytes, this.#deps.clock.now());
        this.#countAcked(key, effect.acked);
        return writes.receiveCommitted(key, effect.batch);
      case "refuse-writes":
        return writes.refuseRoom(key, effect.reason);
      case "write-answered":
        return writes.settle(key, effect.client, effect.counter, effect.outcome);
      case "write-refused":
        return writes.receiveRefused(key, effect.client, effect.reason);
      case "limit-reached":
        return metrics.limitsReached.inc({ limit: effect.limit });
      case "gap-found":
        return metrics.gaps.inc();
      case "edits-sent-again":
        return metrics.resends.inc(effect.count);
      case "search-begun":
        return metrics.searches.inc({ cause: effect.cause });
      default:
        return assertNever(effect);
    }
  }

  #send(room: RoomKey, to: readonly ConnectionId[], frame: ServerFrame): void {
    const { metrics } = this.#deps;
    if (frame.type === "nack") {
      metrics.nacks.inc({ reason: frame.reason });
      this.#ports.usage.add(tenantOf(room), "refusals", 1);
    }
    if (frame.type === "resync-required") metrics.joins.inc({ outcome: "resync" });
    const bytes = encodeFrame(frame);
    for (const connection of to) this.#ports.sockets.send(connection, bytes);
  }

  #sendEdits({ key, channel }: DirectoryEntry, { to, edits }: FollowedRoomEffect & { kind: "send-edits" }): void {
    const frame = this.#frames.get(edits) ?? encodeCommittedFrame(channel, edits);
    this.#frames.set(edits, frame);
    for (const connection of to) {
      this.#ports.sockets.send(connection, frame);
      this.#chargeCatchUp(connection, frame.byteLength);
    }
    this.#ports.usage.add(tenantOf(key), "deliveredBytes", to.length * frame.byteLength);
  }

  #publishEdits({ key, channel }: DirectoryEntry, { batch, except }: FollowedRoomEffect & { kind: "publish-edits" }): void {
    const frame = encodeCommittedFrame(channel, batch.bytes);
    this.#deps.metrics.committedFrames.inc();
    this.#deps.metrics.committedEdits.inc(batch.lastSeq - batch.firstSeq + 1);
    const recipients = this.#ports.sockets.publish(channel, frame, except);
    this.#ports.usage.add(tenantOf(key), "deliveredBytes", recipients * frame.byteLength);
  }

  /** Counts the bytes of a catch-up against the connection's rate. */
  #chargeCatchUp(connection: ConnectionId, bytes: number): void {
    this.#deps.metrics.catchUpBytes.inc(bytes);
    this.#ports.sessions.get(connection)?.receiveCaughtUp(bytes, this.#deps.clock.now());
  }

  /** The client sends the edit again, and all edits after it. */
  #refuseEdit({ key, channel }: DirectoryEntry, connection: ConnectionId, { counter }: SubmittedEdit, limit: string): void {
    this.#deps.metrics.limitsReached.inc({ limit });
    const frame = { type: "nack", channel, counter, reason: "tenant-rate", expected: counter, retryAfterMs: TENANT_RATE_RETRY_MS } as const;
    this.#send(key, [connection], frame);
  }

  /** A client that has moved to another gateway counts there. */
  #countAcked(room: RoomKey, edits: readonly SubmittedEdit[]): void {
    if (edits.length === 0) return;
    this.#ports.usage.add(tenantOf(room), "edits", edits.length);
    for (const { payload } of edits) this.#ports.usage.add(tenantOf(room), "editBytes", payload.byteLength);
  }

  #noteUnreadable(room: RoomKey, bytes: Uint8Array): void {
    this.#deps.metrics.unreadable.inc();
    this.#deps.log.warn({ room, bytes: bytes.byteLength, tag: bytes[0] }, "a message on the bus did not decode; it is dropped");
  }
}
