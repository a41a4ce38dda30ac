/**
 * Holds the rooms that this gateway follows, feeds each what happens and carries out what each decides. The
 * only caller of `Room`; what an effect leads to comes back as another input, and is dropped if its room is gone.
 */

import { assertNever } from "../shared/assert.ts";
import { decodeAnswer, encodeToOwner } from "../shared/bus/envelope.ts";
import type { Clock } from "../shared/clock.ts";
import { type ClientId, type Millis, type RoomKey, type ServerId, tenantOf } from "../shared/ids.ts";
import type { Log } from "../shared/log.ts";
import { encodeCommittedFrame, encodeFrame } from "../shared/wire/codec.ts";
import type { JoinRefusal } from "../shared/wire/frames.ts";
import { readFromOwner } from "./from-owner.ts";
import type { GatewayMetrics } from "./metrics.ts";
import type { SearchOutcome } from "./owner-search.ts";
import { OwnerSearches } from "./owner-searches-host.ts";
import type { PresenceHost } from "./presence-host.ts";
import type { Backbone, ConnectionId, Placement, Rooms, Sockets } from "./ports.ts";
import type { Quotas } from "./quotas.ts";
import type { FollowedRoom, RoomDirectory } from "./room-directory.ts";
import type { Noted, RoomEffect, RoomInput } from "./room.ts";
import type { Session } from "./session.ts";
import type { UnackedBudget } from "./unacked.ts";

export type RoomHostPorts = { readonly sockets: Sockets; readonly rooms: Rooms; readonly placement: Placement; readonly sessions: ReadonlyMap<ConnectionId, Session>; readonly presence: PresenceHost };

export type HostDeps = {
  readonly clock: Clock;
  /** Runs once whatever is at hand in this turn of the event loop is done. */
  readonly endOfTurn: (run: () => void) => void;
  readonly log: Log;
  readonly metrics: GatewayMetrics;
};

const TICK_MS = 100;
const NO_OWNER = { retryAfterMs: 1_000, message: "no room server takes the room right now: try again" };
/** Somebody has to leave first. */
const FULL = {
  "room-full": { retryAfterMs: 10_000, message: "the room has as many participants as it may: try again later" },
  "tenant-rooms": { retryAfterMs: 10_000, message: "the tenant has as many open rooms as it may: close others, or try again later" },
} as const;
const TENANT_RATE_RETRY_MS = 1_000;
/** For edits that nobody would send again: their page was closed meanwhile. */
const SETTLE_MS_MAX = 2_000;

export class RoomHost implements Backbone {
  readonly #ports: RoomHostPorts;
  readonly #directory: RoomDirectory;
  readonly #unacked: UnackedBudget;
  readonly #quotas: Quotas;
  readonly #searches: OwnerSearches;
  readonly #deps: HostDeps;
  /** Rooms with something to look after at the next tick. */
  #restless = new Set<FollowedRoom>();
  /** Rooms that were sent edits in this turn. */
  #busy = new Set<FollowedRoom>();
  #backboneLostAt: Millis | undefined;
  #stopTicking: () => void = () => {};

  constructor(ports: RoomHostPorts, directory: RoomDirectory, unacked: UnackedBudget, quotas: Quotas, { searchesMax }: { searchesMax: number }, deps: HostDeps) {
    this.#ports = ports;
    this.#directory = directory;
    this.#unacked = unacked;
    this.#quotas = quotas;
    this.#deps = deps;
    const receive = (room: RoomKey, outcome: SearchOutcome): void => this.receive(room, { kind: "search", outcome });
    this.#searches = new OwnerSearches(ports.placement, { isFollowed: (room) => directory.get(room) !== undefined, receive }, { searchesMax }, deps);
    deps.metrics.backboneConnected.set(1);
    ports.placement.onServerLost((server) => this.#receiveServerLost(server));
  }

  /** Undefined: NATS is there. */
  get backboneLostAt(): Millis | undefined {
    return this.#backboneLostAt;
  }

  start(): void {
    this.#stopTicking = this.#deps.clock.after(TICK_MS, () => {
      this.#tick();
      this.start();
    });
  }

  /** Resolves once every edit taken is in the log or refused, or the time is up. */
  settled(msMax: number): Promise<void> {
    const { clock } = this.#deps;
    const until = clock.now() + Math.min(msMax, SETTLE_MS_MAX);
    return new Promise((resolve) => {
      const check = (): void => {
        if (this.#unacked.edits === 0 || clock.now() >= until) resolve();
        else clock.after(TICK_MS, check);
      };
      check();
    });
  }

  stop(): void {
    this.#stopTicking();
    this.#endTurn();
  }

  /** Rooms are followed from the first join on. */
  receiveJoin(room: RoomKey, join: RoomInput & { kind: "join" }): void {
    const followed = this.#directory.get(room);
    const limit = followed?.room.has(join.connection) === true ? undefined : this.#limitOf(room, join.client);
    if (limit !== undefined) {
      this.#deps.metrics.limitsReached.inc({ limit });
      return this.#refuseJoin(room, join, "room-full");
    }
    if (followed === undefined) this.#follow(room);
    this.receive(room, join);
  }

  #limitOf(room: RoomKey, client: ClientId): "room" | "room-budget" | undefined {
    if (this.#quotas.isRoomFull(room)) return "room";
    return this.#ports.presence.isFullFor(room, client) ? "room-budget" : undefined;
  }

  receiveEdit(room: RoomKey, edit: RoomInput & { kind: "edit" }): void {
    const followed = this.#directory.get(room);
    if (followed === undefined) return; // Left for so long that nobody follows it: its client joins again and repeats it.
    if (!this.#quotas.takeEdit(room)) return this.#refuseEdit(followed, edit);
    this.#deps.metrics.edits.inc();
    if (this.#busy.size === 0) this.#deps.endOfTurn(() => this.#endTurn());
    this.#busy.add(followed);
    this.#ports.presence.receive(room, { kind: "input", connection: edit.connection });
    this.#feed(followed, edit);
  }

  receive(room: RoomKey, input: RoomInput): void {
    if (input.kind === "leave") this.#ports.presence.receive(room, input);
    const followed = this.#directory.get(room);
    if (followed !== undefined) this.#feed(followed, input);
  }

  receiveFromOwner(room: RoomKey, bytes: Uint8Array): void {
    const message = readFromOwner(bytes);
    if (message === undefined) return this.#noteUnreadable(room, bytes);
    this.receive(room, { kind: "from-owner", message });
  }

  receiveAnswer(room: RoomKey, bytes: Uint8Array): void {
    const answer = decodeAnswer(bytes);
    if (answer === undefined) return this.#noteUnreadable(room, bytes);
    this.receive(room, { kind: "answer", answer });
  }

  receiveNoResponders(room: RoomKey): void {
    // Known from before: open, and between two owners.
    const isNew = this.#directory.get(room)?.room.position === undefined;
    if (!isNew || this.#quotas.mayOpenRoomOf(tenantOf(room))) return this.receive(room, { kind: "no-responders" });
    this.#deps.metrics.limitsReached.inc({ limit: "tenant-rooms" });
    this.receive(room, { kind: "not-opened" });
  }

  receiveBackboneLost(): void {
    if (this.#backboneLostAt !== undefined) return;
    this.#backboneLostAt = this.#deps.clock.now();
    this.#deps.metrics.backboneConnected.set(0);
    this.#deps.log.warn({}, "NATS is out of reach; edits wait");
    for (const followed of this.#directory.all()) this.#feed(followed, { kind: "detached" });
  }

  receiveBackboneFound(): void {
    this.#backboneLostAt = undefined;
    this.#deps.metrics.backboneConnected.set(1);
    this.#deps.log.info({}, "NATS is back; rooms catch up");
    for (const followed of this.#directory.all()) this.#feed(followed, { kind: "attached" });
  }

  /** To be called every second or so. */
  closeIdle(): void {
    for (const key of this.#directory.closeIdle(this.#deps.clock.now())) this.#ports.rooms.unfollow(key);
    const { rooms, unackedEdits, unackedBytes } = this.#deps.metrics;
    rooms.set(this.#directory.size);
    unackedEdits.set(this.#unacked.edits);
    unackedBytes.set(this.#unacked.bytes);
  }

  #follow(key: RoomKey): void {
    const followed = this.#directory.open(key, this.#deps.clock.now());
    this.#deps.metrics.rooms.set(this.#directory.size);
    this.#ports.rooms.follow(key).then(
      () => {
        if (this.#directory.get(key) === followed && this.#backboneLostAt === undefined) this.#feed(followed, { kind: "attached" });
      },
      // The line was lost: `receiveBackboneFound` attaches the room with all others.
      (cause: unknown) => this.#deps.log.debug({ room: key, cause }, "a room is followed once NATS is back"),
    );
  }

  #receiveServerLost(server: ServerId): void {
    this.#deps.log.info({ server }, "a room server is no longer heard");
    for (const followed of this.#directory.all()) this.#feed(followed, { kind: "server-lost", server });
  }

  /** Edits of one room that came in one turn travel together. */
  #endTurn(): void {
    const busy = this.#busy;
    this.#busy = new Set();
    for (const followed of busy) this.#feed(followed, { kind: "turn-ended" });
  }

  #tick(): void {
    const restless = this.#restless;
    this.#restless = new Set();
    for (const followed of restless) if (this.#directory.get(followed.key) === followed) this.#feed(followed, { kind: "tick" });
  }

  #feed(followed: FollowedRoom, input: RoomInput): void {
    const membersBefore = followed.room.members;
    for (const effect of followed.room.receive(input, this.#deps.clock.now())) this.#carryOut(followed, effect);
    if (followed.room.restless) this.#restless.add(followed);
    if (followed.room.members !== membersBefore) this.#quotas.receiveMembers(followed.key, followed.room.members);
  }

  #carryOut({ key, channel }: FollowedRoom, effect: RoomEffect): void {
    const { sockets, rooms, sessions, presence } = this.#ports;
    const { metrics } = this.#deps;
    switch (effect.kind) {
      case "tell":
        return rooms.tell(key, encodeToOwner(effect.message));
      case "search":
        return this.#searches.carryOut(key, effect.step);
      case "let-in": {
        const { connection, client, rights, request, epoch, head } = effect;
        const session = sessions.get(connection);
        session?.receiveJoined({ room: key, channel, client, rights }, this.#deps.clock.now());
        metrics.joins.inc({ outcome: "joined" });
        metrics.joinSeconds.observe(effect.waitedMs / 1000);
        sockets.send(connection, encodeFrame({ type: "joined", request, channel, client, epoch, head, rights }));
        const person = session?.person;
        if (person !== undefined) presence.receiveEntry(key, channel, connection, { client, user: person.user, name: person.name, canWrite: rights.write, spectator: false });
        return;
      }
      case "turn-away":
        return this.#refuseJoin(key, effect, effect.reason);
      case "send": {
        if (effect.frame.type === "nack") metrics.nacks.inc({ reason: effect.frame.reason });
        if (effect.frame.type === "resync-required") metrics.joins.inc({ outcome: "resync" });
        const frame = encodeFrame(effect.frame);
        for (const connection of effect.to) sockets.send(connection, frame);
        return;
      }
      case "publish":
        return sockets.publish(channel, encodeFrame(effect.frame), effect.except);
      case "send-edits": {
        const frame = encodeCommittedFrame(channel, effect.edits);
        for (const connection of effect.to) {
          sockets.send(connection, frame);
          this.#charge(connection, frame.byteLength);
        }
        return;
      }
      case "asked-in-vain":
        return this.#charge(effect.connection, effect.bytes);
      case "publish-edits":
        metrics.committedFrames.inc();
        metrics.committedEdits.inc(effect.batch.lastSeq - effect.batch.firstSeq + 1);
        return sockets.publish(channel, encodeCommittedFrame(channel, effect.batch.bytes), effect.except);
      case "listen":
        return sockets.listen(effect.connection, channel);
      case "unlisten":
        return sockets.unlisten(effect.connection, channel);
      case "noted":
        return this.#note(effect.what, effect.count);
      default:
        return assertNever(effect);
    }
  }

  #refuseJoin(room: RoomKey, { connection, request }: { connection: ConnectionId; request: number }, reason: JoinRefusal): void {
    const { sockets, sessions } = this.#ports;
    sessions.get(connection)?.receiveJoinRefused(room);
    this.#deps.metrics.joins.inc({ outcome: reason });
    const { retryAfterMs, message } = reason === "room-full" || reason === "tenant-rooms" ? FULL[reason] : NO_OWNER;
    sockets.send(connection, encodeFrame({ type: "join-refused", request, reason, retryAfterMs, message }));
  }

  /** Its client sends it again, and all behind it. */
  #refuseEdit({ channel }: FollowedRoom, { connection, edit: { counter } }: RoomInput & { kind: "edit" }): void {
    this.#deps.metrics.limitsReached.inc({ limit: "tenant-edits" });
    this.#deps.metrics.nacks.inc({ reason: "tenant-rate" });
    this.#ports.sockets.send(connection, encodeFrame({ type: "nack", channel, counter, reason: "tenant-rate", expected: counter, retryAfterMs: TENANT_RATE_RETRY_MS }));
  }

  #charge(connection: ConnectionId, bytes: number): void {
    this.#deps.metrics.catchUpBytes.inc(bytes);
    this.#ports.sessions.get(connection)?.receiveCaughtUp(bytes, this.#deps.clock.now());
  }

  #note(what: Noted, count: number): void {
    const { metrics } = this.#deps;
    switch (what) {
      case "gap":
        return metrics.gaps.inc(count);
      case "edits-sent-again":
        return metrics.resends.inc(count);
      case "search-no-responders":
        return metrics.searches.inc({ cause: "no-responders" }, count);
      case "search-lost":
        return metrics.searches.inc({ cause: "lost" }, count);
      case "search-silent":
        return metrics.searches.inc({ cause: "silent" }, count);
      default:
        assertNever(what);
    }
  }

  #noteUnreadable(room: RoomKey, bytes: Uint8Array): void {
    this.#deps.metrics.unreadable.inc();
    this.#deps.log.warn({ room, bytes: bytes.byteLength, tag: bytes[0] }, "a message on the bus did not decode; it is dropped");
  }
}
