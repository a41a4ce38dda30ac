/**
 * Carries out what rooms decide: frames to connections and topics, words to the room's owner, and what all of it
 * counts as. What somebody is told who is refused is said here.
 */

import { assertNever } from "../../shared/assert.ts";
import { encodeToOwner, type ToOwner } from "../../shared/bus/envelope.ts";
import type { RoomKey, UserId } from "../../shared/ids.ts";
import { encodeCommittedFrame, encodeFrame } from "../../shared/wire/codec.ts";
import type { Channel, JoinRefusal } from "../../shared/wire/frames.ts";
import type { HostDeps } from "../host-deps.ts";
import type { SearchStep } from "./owner-search.ts";
import type { ConnectionId, Rooms, Sockets } from "../ports.ts";
import type { PresenceHost } from "../presence/presence-host.ts";
import type { FollowedRoom } from "./room-directory.ts";
import type { Noted, RoomEffect, RoomInput } from "./room-messages.ts";
import { READ_ONLY } from "../sessions/identity.ts";
import type { Session } from "../sessions/session.ts";
import { ROOM_DELETED } from "../sessions/session-effects.ts";
import type { WritesHost } from "./writes-host.ts";

export type RoomEffectPorts = {
  readonly sockets: Sockets;
  readonly rooms: Rooms;
  readonly sessions: ReadonlyMap<ConnectionId, Session>;
  readonly presence: PresenceHost;
  readonly writes: WritesHost;
  readonly search: (room: RoomKey, step: SearchStep) => void;
  /** The room is deleted: the connection leaves it, and is told. */
  readonly expel: (room: RoomKey, connection: ConnectionId) => void;
  /** The connection is not in the room, or not any more. */
  readonly onOut: (room: RoomKey, connection: ConnectionId) => void;
  /** Somebody is in the room who may come to stand on its boards. */
  readonly onWriter: (room: RoomKey, user: UserId, name: string) => void;
  /** Something waits to be told: `tellAll` is wanted before this turn of the event loop ends. */
  readonly onTold: () => void;
};

const NO_OWNER = { retryAfterMs: 1_000, message: "no room server takes the room right now: try again" };
/** For the first two somebody has to leave first. */
const TURNED_AWAY = {
  "room-full": { retryAfterMs: 10_000, message: "the room has as many participants as it may: try again later" },
  "tenant-rooms": { retryAfterMs: 10_000, message: "the tenant has as many open rooms as it may: close others, or try again later" },
  "deleted": { retryAfterMs: 0, message: ROOM_DELETED },
} as const;
const TENANT_RATE_RETRY_MS = 1_000;

export class RoomEffectsHost {
  readonly #ports: RoomEffectPorts;
  readonly #deps: HostDeps;
  #untold: { readonly room: RoomKey; readonly message: ToOwner }[] = [];

  constructor(ports: RoomEffectPorts, deps: HostDeps) {
    this.#ports = ports;
    this.#deps = deps;
  }

  /** Together: said one by one, each would be a write to NATS of its own, which costs more than all else that a join does. */
  tellAll(): void {
    const untold = this.#untold;
    this.#untold = [];
    for (const { room, message } of untold) {
      this.#deps.hops?.told(room, message);
      this.#ports.rooms.tell(room, encodeToOwner(message));
    }
  }

  carryOut({ key, channel }: FollowedRoom, effect: RoomEffect): void {
    const { sockets, sessions, presence, search } = this.#ports;
    const { metrics, hops } = this.#deps;
    switch (effect.kind) {
      case "tell":
        this.#untold.push({ room: key, message: effect.message });
        return this.#ports.onTold();
      case "search":
        return search(key, effect.step);
      case "let-in": {
        const { connection, client, request, epoch, head } = effect;
        const session = sessions.get(connection);
        const rights = session?.receiveJoined({ room: key, channel, client }, this.#deps.clock.now()) ?? READ_ONLY;
        metrics.joins.inc({ outcome: "joined" });
        metrics.joinSeconds.observe(effect.waitedMs / 1000);
        sockets.send(connection, encodeFrame({ type: "joined", request, channel, client, epoch, head, rights }));
        const person = session?.identity;
        if (person === undefined || effect.toSnapshot) return; // A newcomer without the document is in the room once it has joined from its snapshot.
        presence.receiveEntry(key, channel, connection, {
          client,
          user: person.user,
          name: person.name,
          canWrite: rights.write,
          spectator: false,
        });
        if (rights.write) this.#ports.onWriter(key, person.user, person.name); // By the rights it has here: some may have been given since JOIN.
        return;
      }
      case "expel":
        return this.#ports.expel(key, effect.connection);
      case "refuse-writes":
        return this.#ports.writes.refuseRoom(key, effect.reason);
      case "turn-away":
        this.#ports.onOut(key, effect.connection); // It may have been in the room, and have asked again.
        return this.refuseJoin(key, effect, effect.reason);
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
        if (hops === undefined) return this.#publish(channel, effect);
        return hops.delivering(key, effect.batch, () => this.#publish(channel, effect));
      case "listen":
        return sockets.listen(effect.connection, channel);
      case "unlisten":
        return sockets.unlisten(effect.connection, channel);
      case "settled":
        hops?.committed(key, effect.batch);
        return this.#ports.writes.receiveCommitted(key, effect.batch);
      case "write-answered":
        return this.#ports.writes.settle(key, effect.client, effect.outcome);
      case "write-refused":
        return this.#ports.writes.receiveRefused(key, effect.client, effect.reason);
      case "noted":
        return this.#note(effect.what, effect.count);
      default:
        return assertNever(effect);
    }
  }

  refuseJoin(room: RoomKey, { connection, request }: { connection: ConnectionId; request: number }, reason: JoinRefusal): void {
    const { sockets, sessions } = this.#ports;
    sessions.get(connection)?.receiveJoinRefused(room);
    this.#deps.metrics.joins.inc({ outcome: reason });
    const { retryAfterMs, message } = reason in TURNED_AWAY ? TURNED_AWAY[reason as keyof typeof TURNED_AWAY] : NO_OWNER;
    sockets.send(connection, encodeFrame({ type: "join-refused", request, reason, retryAfterMs, message }));
  }

  /** Its client sends it again, and all behind it. */
  refuseEdit({ channel }: FollowedRoom, { connection, edit: { counter } }: RoomInput & { kind: "edit" }): void {
    this.#deps.metrics.limitsReached.inc({ limit: "tenant-edits" });
    this.#deps.metrics.nacks.inc({ reason: "tenant-rate" });
    this.#ports.sockets.send(
      connection,
      encodeFrame({ type: "nack", channel, counter, reason: "tenant-rate", expected: counter, retryAfterMs: TENANT_RATE_RETRY_MS }),
    );
  }

  #publish(channel: Channel, { batch, except }: RoomEffect & { kind: "publish-edits" }): void {
    const { metrics } = this.#deps;
    metrics.committedFrames.inc();
    metrics.committedEdits.inc(batch.lastSeq - batch.firstSeq + 1);
    this.#ports.sockets.publish(channel, encodeCommittedFrame(channel, batch.bytes), except);
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
      case "search-unheard":
        return metrics.searches.inc({ cause: "no-responders" }, count);
      case "search-lost":
        return metrics.searches.inc({ cause: "lost" }, count);
      case "search-silent":
        return metrics.searches.inc({ cause: "silent" }, count);
      default:
        assertNever(what);
    }
  }
}
