/**
 * Holds the rooms that this gateway follows, and feeds each what happens. The only caller of `Room`; what one of its
 * effects leads to (room-effects-host.ts) comes back as another input, and is dropped if its room is gone.
 */

import { decodeAnswer, type SubmittedEdit } from "../../shared/bus/envelope.ts";
import { type Position, type RoomKey, type ServerId, tenantOf, type UserId } from "../../shared/ids.ts";
import { BackboneLine } from "./backbone-line.ts";
import { readFromOwner } from "./from-owner.ts";
import type { HostDeps } from "../host-deps.ts";
import type { SearchOutcome } from "./owner-search.ts";
import { OwnerSearches } from "./owner-searches-host.ts";
import type { PresenceHost } from "../presence/presence-host.ts";
import type { Backbone, ConnectionId, Placement, Rooms, Sockets } from "../ports.ts";
import type { Quotas } from "../limits/quotas.ts";
import type { FollowedRoom, RoomDirectory } from "./room-directory.ts";
import { RoomEffectsHost } from "./room-effects-host.ts";
import type { RoomInput } from "./room-messages.ts";
import { Seats } from "./seats.ts";
import type { Session } from "../sessions/session.ts";
import type { UnackedBudget } from "./unacked.ts";
import type { WritesHost } from "./writes-host.ts";

export type RoomHostPorts = {
  readonly sockets: Sockets;
  readonly rooms: Rooms;
  readonly placement: Placement;
  readonly sessions: ReadonlyMap<ConnectionId, Session>;
  readonly presence: PresenceHost;
  readonly writes: WritesHost;
  readonly boards: { receiveLeft(connection: ConnectionId, room: RoomKey): void };
  readonly expel: (room: RoomKey, connection: ConnectionId) => void;
  readonly onWriter: (room: RoomKey, user: UserId, name: string) => void;
};

const TICK_MS = 100;
/** Rooms that only have something to forget are ticked every so many times. */
const TICKS_AT_LEISURE = 10;

export class RoomHost implements Backbone {
  readonly backbone = new BackboneLine();
  readonly #ports: RoomHostPorts;
  readonly #directory: RoomDirectory;
  readonly #unacked: UnackedBudget;
  readonly #quotas: Quotas;
  readonly #seats: Seats;
  readonly #effects: RoomEffectsHost;
  readonly #deps: HostDeps;
  /** Rooms with something to look after, soon or at leisure. */
  #restless = new Set<FollowedRoom>();
  #lingering = new Set<FollowedRoom>();
  #ticks = 0;
  /** Rooms that were sent edits in this turn. */
  #busy = new Set<FollowedRoom>();
  #isTurnEnding = false;
  /** Undefined: no room wants a tick. */
  #stopTicking: (() => void) | undefined;

  constructor(
    ports: RoomHostPorts,
    directory: RoomDirectory,
    unacked: UnackedBudget,
    quotas: Quotas,
    { searchesMax }: { searchesMax: number },
    deps: HostDeps,
  ) {
    this.#ports = ports;
    this.#directory = directory;
    this.#unacked = unacked;
    this.#quotas = quotas;
    this.#seats = new Seats({
      quotas,
      presence: ports.presence,
      linesOf: (room, client) => directory.get(room)?.room.linesOf(client) ?? 0,
    });
    this.#deps = deps;
    const receive = (room: RoomKey, outcome: SearchOutcome): void => this.receive(room, { kind: "search", outcome });
    const searches = new OwnerSearches(
      ports.placement,
      { epochOf: (room) => directory.get(room)?.room.epoch, receive },
      { searchesMax },
      deps,
    );
    this.#effects = new RoomEffectsHost(
      {
        ...ports,
        search: (room, step) => searches.carryOut(room, step),
        onOut: (room, connection) => this.#receiveOut(room, connection),
        onTold: () => this.#endTurnLater(),
      },
      deps,
    );
    deps.metrics.backboneConnected.set(1);
    ports.placement.onServerLost((server) => this.#receiveServerLost(server));
  }

  /** Rooms that its members are in, or were a moment ago. */
  get followed(): number {
    return this.#directory.size;
  }

  /** Up to where the room's edits have come here. Undefined: what comes there is not heard here now. */
  positionOf(room: RoomKey): Position | undefined {
    return this.backbone.isUp ? this.#directory.get(room)?.room.position : undefined;
  }

  /** Resolves once every edit taken is in the log or refused, or the time is up. */
  settled(msMax: number): Promise<void> {
    const { clock } = this.#deps;
    const until = clock.now() + msMax;
    return new Promise((resolve) => {
      const check = (): void => {
        if (this.#unacked.edits === 0 || clock.now() >= until) resolve();
        else clock.after(TICK_MS, check);
      };
      check();
    });
  }

  stop(): void {
    this.#endTurn();
    this.#stopTicking?.();
    this.#stopTicking = () => {}; // Nothing sets it again.
  }

  /** Rooms are followed from the first join on. */
  receiveJoin(room: RoomKey, join: RoomInput & { kind: "join" }): void {
    const followed = this.#directory.get(room);
    const limit = followed?.room.has(join.connection) === true ? undefined : this.#seats.limitOf(room, join);
    if (limit !== undefined) {
      this.#deps.metrics.limitsReached.inc({ limit });
      return this.#effects.refuseJoin(room, join, "room-full");
    }
    if (followed === undefined) this.#follow(room);
    this.receive(room, join);
  }

  receiveEdit(room: RoomKey, edit: RoomInput & { kind: "edit" }): void {
    const followed = this.#directory.get(room);
    if (followed === undefined) return; // Left for so long that nobody follows it: its client joins again and repeats it.
    if (!this.#quotas.takeEdit(room)) return this.#effects.refuseEdit(followed, edit);
    this.#ports.presence.receiveInput(room, edit.connection);
    this.#takeEdit(followed, edit);
  }

  /** Whether anybody is in the room or not. */
  receiveWrite(room: RoomKey, edit: SubmittedEdit): void {
    if (!this.#quotas.takeEdit(room)) {
      this.#deps.metrics.limitsReached.inc({ limit: "tenant-edits" });
      return this.#ports.writes.receiveRefused(room, edit.author.client, "tenant-rate");
    }
    this.#takeEdit(this.#directory.get(room) ?? this.#follow(room), { kind: "write", edit });
  }

  #takeEdit(followed: FollowedRoom, input: RoomInput & { readonly edit: SubmittedEdit }): void {
    this.#deps.hops?.taken(followed.key, input.edit);
    this.#deps.metrics.edits.inc();
    this.#busy.add(followed);
    this.#endTurnLater();
    this.#feed(followed, input);
  }

  receive(room: RoomKey, input: RoomInput): void {
    if (input.kind === "leave") this.#receiveOut(room, input.connection);
    const followed = this.#directory.get(room);
    if (followed !== undefined) this.#feed(followed, input);
  }

  /** Asked for, or in it. */
  isIn(room: RoomKey, connection: ConnectionId): boolean {
    return this.#directory.get(room)?.room.has(connection) === true;
  }

  receiveFromOwner(room: RoomKey, bytes: Uint8Array): void {
    const message = readFromOwner(bytes);
    if (message === undefined) return this.#noteUnreadable(room, bytes);
    this.receive(room, { kind: "from-owner", message });
  }

  receiveAnswer(room: RoomKey, bytes: Uint8Array): void {
    const answer = decodeAnswer(bytes);
    if (answer === undefined) return this.#noteUnreadable(room, bytes);
    this.#deps.hops?.answered(room, answer);
    this.receive(room, { kind: "answer", answer });
  }

  receiveNoResponders(room: RoomKey): void {
    // Known from before: open, and between two owners.
    const isNew = this.#directory.get(room)?.room.position === undefined;
    if (!isNew || this.#quotas.mayOpenRoomOf(tenantOf(room))) return this.receive(room, { kind: "no-responders" });
    this.#deps.metrics.limitsReached.inc({ limit: "tenant-rooms" });
    this.receive(room, { kind: "not-opened" });
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

  /** To be called every second or so. */
  closeIdle(): void {
    for (const key of this.#directory.closeIdle(this.#deps.clock.now())) this.#ports.rooms.unfollow(key);
    const { rooms, unackedEdits, unackedBytes } = this.#deps.metrics;
    rooms.set(this.#directory.size);
    unackedEdits.set(this.#unacked.edits);
    unackedBytes.set(this.#unacked.bytes);
  }

  /** Nobody is in a room's presence, or watches its boards, who is not in the room: a room that nobody is in is forgotten, and with it the channel that both go by. */
  #receiveOut(room: RoomKey, connection: ConnectionId): void {
    this.#ports.presence.receive(room, { kind: "leave", connection });
    this.#ports.boards.receiveLeft(connection, room);
  }

  #follow(key: RoomKey): FollowedRoom {
    const followed = this.#directory.open(key, this.#deps.clock.now());
    this.#deps.metrics.rooms.set(this.#directory.size);
    this.#ports.rooms.follow(key).then(
      () => {
        if (this.#directory.get(key) === followed && this.backbone.isUp) this.#feed(followed, { kind: "attached" });
      },
      // The line was lost: `receiveBackboneFound` attaches the room with all others.
      (cause: unknown) => this.#deps.log.debug({ room: key, cause }, "a room is followed once NATS is back"),
    );
    return followed;
  }

  #receiveServerLost(server: ServerId): void {
    this.#deps.log.info({ server }, "a room server is no longer heard");
    for (const followed of this.#directory.all()) this.#feed(followed, { kind: "server-lost", server });
  }

  #endTurnLater(): void {
    if (this.#isTurnEnding) return;
    this.#isTurnEnding = true;
    this.#deps.endOfTurn(() => this.#endTurn());
  }

  /** Edits of one room that came in one turn travel together, and so does all that owners are told. */
  #endTurn(): void {
    const busy = this.#busy;
    this.#busy = new Set();
    for (const followed of busy) this.#feed(followed, { kind: "turn-ended" });
    this.#effects.tellAll();
    this.#isTurnEnding = false;
  }

  #tickLater(): void {
    this.#stopTicking ??= this.#deps.clock.after(TICK_MS, () => {
      this.#stopTicking = undefined;
      this.#tick();
    });
  }

  #tick(): void {
    this.#ticks += 1;
    const restless = this.#restless;
    this.#restless = new Set();
    for (const followed of restless) {
      if (followed.room.pace === "soon") this.#tickRoom(followed);
      else this.#look(followed); // What it waited for has come meanwhile.
    }
    if (this.#ticks % TICKS_AT_LEISURE === 0) {
      const lingering = this.#lingering;
      this.#lingering = new Set();
      for (const followed of lingering) this.#tickRoom(followed);
    }
    if (this.#restless.size + this.#lingering.size > 0) this.#tickLater();
  }

  #tickRoom(followed: FollowedRoom): void {
    if (this.#directory.get(followed.key) === followed) this.#feed(followed, { kind: "tick" });
  }

  #feed(followed: FollowedRoom, input: RoomInput): void {
    const membersBefore = followed.room.members;
    for (const effect of followed.room.receive(input, this.#deps.clock.now())) this.#effects.carryOut(followed, effect);
    this.#look(followed);
    if (followed.room.members !== membersBefore) this.#quotas.receiveMembers(followed.key, followed.room.members);
  }

  #look(followed: FollowedRoom): void {
    const { pace } = followed.room;
    if (pace === "never") return;
    if (pace === "soon") this.#restless.add(followed);
    else this.#lingering.add(followed);
    this.#tickLater();
  }

  #noteUnreadable(room: RoomKey, bytes: Uint8Array): void {
    this.#deps.metrics.unreadable.inc();
    this.#deps.log.warn({ room, bytes: bytes.byteLength, tag: bytes[0] }, "a message on the bus did not decode; it is dropped");
  }
}
