/**
 * Carries out the owner searches of all rooms, a limited number at a time. Further searches wait, and tenants take turns.
 * When a room server fails, thousands of rooms search for an owner at once, which would overload placement. A tenant that
 * opens a thousand rooms at once must not delay the others'.
 */

import { assertNever } from "../../shared/assert.ts";
import { type Epoch, type RoomKey, tenantOf } from "../../shared/ids.ts";
import type { Log } from "../../shared/process/log.ts";
import { TenantTurns } from "../limits/tenant-turns.ts";
import type { GatewayMetrics } from "../metrics.ts";
import type { Placement } from "../ports.ts";
import type { SearchOutcome, SearchStep } from "./owner-search.ts";

/**
 * A room has one step at a time. A step of a room that is no longer followed is skipped. `epochOf`: the epoch of the
 * last known owner, 0 for none; undefined: the room is not followed. `presenceEpochOf`: the same epoch according to the
 * room's presence. Presence has a separate connection, so it may know an owner whose epoch record the log lost before
 * the room received it.
 */
type SearchingRooms = {
  readonly epochOf: (room: RoomKey) => Epoch | undefined;
  readonly presenceEpochOf: (room: RoomKey) => Epoch | undefined;
  readonly receiveOutcome: (room: RoomKey, outcome: SearchOutcome) => void;
};

export class OwnerSearches {
  readonly #placement: Placement;
  readonly #rooms: SearchingRooms;
  readonly #turns: TenantTurns;
  readonly #deps: { readonly log: Log; readonly metrics: GatewayMetrics };
  /** A room's newer step replaces its older one. */
  readonly #waiting = new Map<RoomKey, SearchStep>();

  constructor(placement: Placement, rooms: SearchingRooms, options: { searchesMax: number }, deps: { log: Log; metrics: GatewayMetrics }) {
    this.#placement = placement;
    this.#rooms = rooms;
    this.#turns = new TenantTurns(options.searchesMax);
    this.#deps = deps;
  }

  carryOut(room: RoomKey, step: SearchStep): void {
    const isWaiting = this.#waiting.has(room);
    this.#waiting.set(room, step);
    if (!isWaiting) this.#turns.take(tenantOf(room), () => this.#start(room));
    this.#noteWaiting();
  }

  #start(room: RoomKey): void {
    const step = this.#waiting.get(room)!;
    this.#waiting.delete(room);
    if (this.#rooms.epochOf(room) === undefined) return this.#turns.release(tenantOf(room));
    void this.#ask(room, step).then((outcome) => {
      this.#rooms.receiveOutcome(room, outcome);
      this.#turns.release(tenantOf(room));
      this.#noteWaiting();
    });
  }

  #noteWaiting(): void {
    this.#deps.metrics.searchesWaiting.set(this.#waiting.size);
  }

  async #ask(room: RoomKey, step: SearchStep): Promise<SearchOutcome> {
    switch (step.kind) {
      case "check":
        return { kind: "checked", server: step.server, isGone: await this.#placement.isGone(step.server) };
      case "locate": {
        const reply = await this.#placement.locate({ room, suspects: [...step.suspects] });
        return { kind: "located", reply, candidates: this.#placement.candidates(room) };
      }
      case "claim": {
        const { server, suspect } = step;
        const above = Math.max(this.#rooms.epochOf(room) ?? 0, this.#rooms.presenceEpochOf(room) ?? 0) as Epoch;
        const reply = await this.#placement.claim(server, {
          room,
          ...(suspect === undefined ? {} : { suspect }),
          ...(above > 0 ? { above } : {}),
        });
        this.#deps.metrics.claims.inc({ answer: reply?.kind ?? "none" });
        this.#deps.log.info({ room, server, suspect, answer: reply }, "asked a room server to take a room");
        if (reply === undefined) void this.#placement.isGone(server); // The server may be lost, and with it the owner of other rooms.
        return { kind: "claimed", server, reply };
      }
      default:
        return assertNever(step);
    }
  }
}
