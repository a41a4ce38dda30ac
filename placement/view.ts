/** The world as a placement process has heard of it: servers by their heartbeats, rooms, plans and pins by their buckets. */

import { ownerReasonIn, type PlannedRoom, type RoomEntry, type RoomPin, type ServerHeartbeat } from "../shared/bus/placement-messages.ts";
import type { RoomKey, ServerId } from "../shared/ids.ts";
import type { Assignment, Placements } from "./plan.ts";
import type { Observed, RoomState, ServerState } from "./world.ts";

/** `ownerReason`: of the step that gave the room to `owner`, if a plan or an operator did. */
type Planned = Assignment & { readonly owner: ServerId; readonly ownerReason: string | undefined };

export class View {
  readonly #rooms = new Map<RoomKey, RoomState>();
  /** One for all rooms of a server: each of its own, and the server's name as often, was a third of what is kept of a room. */
  readonly #owned = new Map<ServerId, RoomState>();
  readonly #pins = new Map<RoomKey, RoomPin>();
  readonly #planned = new Map<RoomKey, Planned>();

  receiveEntry(room: RoomKey, entry: RoomEntry | undefined): void {
    if (entry === undefined) this.#rooms.delete(room);
    else this.#rooms.set(room, this.#ownedBy(entry.owner));
    this.#forgetCopyOfOwner(room);
  }

  receivePin(room: RoomKey, pin: RoomPin | undefined): void {
    if (pin === undefined) this.#pins.delete(room);
    else this.#pins.set(room, pin);
  }

  receivePlanned(room: RoomKey, planned: PlannedRoom | undefined): void {
    if (planned === undefined) this.#planned.delete(room);
    else if (planned.generation >= (this.#planned.get(room)?.generation ?? 0)) {
      this.#planned.set(room, {
        replica: planned.replica,
        reason: planned.reason,
        generation: planned.generation,
        owner: planned.owner,
        ownerReason: planned.ownerReason,
      });
    }
    this.#forgetCopyOfOwner(room);
  }

  ownerOf(room: RoomKey): ServerId | undefined {
    return this.#rooms.get(room)?.owner;
  }

  replicaOf(room: RoomKey): ServerId | undefined {
    return this.#planned.get(room)?.replica;
  }

  /** Why its owner has it, if a plan or an operator gave it the room, or its warm copy did. */
  ownerReasonOf(room: RoomKey): string | undefined {
    const [owner, planned] = [this.ownerOf(room), this.#planned.get(room)];
    return owner === undefined || planned === undefined ? undefined : ownerReasonIn(planned, owner);
  }

  /** Rooms that were planned for and that nobody owns any more. */
  *released(): Iterable<{ room: RoomKey; replica: ServerId | undefined }> {
    for (const [room, { replica }] of this.#planned) if (!this.#rooms.has(room)) yield { room, replica };
  }

  world(heartbeats: readonly ServerHeartbeat[]): Observed {
    this.#forgetServersBut(new Set(heartbeats.map(({ server }) => server)));
    const shares = new Map<RoomKey, number>();
    for (const { server, load } of heartbeats) {
      for (const { room, share } of load?.hot ?? []) if (this.ownerOf(room) === server) shares.set(room, share);
    }
    return { servers: heartbeats.map(stateOf), rooms: this.#rooms, pins: this.#pins, shares };
  }

  placements(generation: number): Placements {
    return { generation, rooms: this.#planned };
  }

  #ownedBy(owner: ServerId): RoomState {
    const known = this.#owned.get(owner);
    if (known !== undefined) return known;
    const state: RoomState = { owner };
    this.#owned.set(owner, state);
    return state;
  }

  #forgetServersBut(live: ReadonlySet<ServerId>): void {
    for (const server of this.#owned.keys()) if (!live.has(server)) this.#owned.delete(server);
  }

  /** Whoever keeps the copy has taken the room: nobody keeps one now, not even should another take the room next. */
  #forgetCopyOfOwner(room: RoomKey): void {
    const [owner, planned] = [this.ownerOf(room), this.#planned.get(room)];
    if (owner === undefined || planned?.replica !== owner) return;
    this.#planned.set(room, { ...planned, replica: undefined, owner, ownerReason: ownerReasonIn(planned, owner) });
  }
}

/** Of a server of an earlier version nothing is known but that it is there. */
function stateOf({ server, draining, labels, load }: ServerHeartbeat): ServerState {
  return { server, host: labels?.host ?? "", zone: labels?.zone ?? "", pool: labels?.pool ?? "", draining, used: load?.used ?? 0 };
}
