/**
 * Hands rooms over to other servers, and takes over the rooms of lost servers. In a handover the next owner first
 * prepares a replica and subscribes to the room's edits. Then this server stops appending and sends the log's end, and
 * the next owner claims with one append. If any step fails, the room stays here or gateways find a new owner; the log's
 * fencing decides.
 */

import type { ServerCommandReply, ServerCommand } from "../../shared/bus/placement-messages.ts";
import { assertNever } from "../../shared/assert.ts";
import type { Clock } from "../../shared/time/clock.ts";
import type { RoomKey, ServerId } from "../../shared/ids.ts";
import type { Log } from "../../shared/process/log.ts";
import { rankServers } from "../../shared/cluster/rendezvous.ts";
import type { RoomServerMetrics } from "../metrics.ts";
import type { OtherServers } from "../ports.ts";
import type { Replicas } from "./replicas-host.ts";
import type { OwnedRooms } from "./owned-rooms-host.ts";

/** The part of each that handovers use. */
export type HandoverParts = {
  readonly rooms: Pick<OwnedRooms, "stopping" | "has" | "owned" | "drain" | "unfollow" | "expect" | "beginHandOver" | "endHandOver">;
  readonly replicas: Pick<Replicas, "follow">;
  readonly others: OtherServers;
};
export type HandoverDeps = {
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: RoomServerMetrics;
  readonly available: () => readonly ServerId[];
};

const DONE: ServerCommandReply = { kind: "done" };
/** Time for the append in flight to settle; after it the room continues here. */
const READY_MS_MAX = 1_000;
/** Rooms handed over at once during a drain. */
const AT_ONCE = 4;
/** Servers tried for one room before gateways look for an owner. */
const TARGETS_MAX = 3;

export class RoomHandovers {
  readonly #server: ServerId;
  readonly #rooms: HandoverParts["rooms"];
  readonly #replicas: HandoverParts["replicas"];
  readonly #others: OtherServers;
  readonly #options: { readonly handOverMsMax: number };
  readonly #deps: HandoverDeps;
  /** The newest plan's generation received so far. */
  #generation = 0;
  #draining: Promise<void> | undefined;

  constructor(server: ServerId, parts: HandoverParts, options: { handOverMsMax: number }, deps: HandoverDeps) {
    this.#server = server;
    this.#rooms = parts.rooms;
    this.#replicas = parts.replicas;
    this.#others = parts.others;
    this.#options = options;
    this.#deps = deps;
  }

  async answer(order: ServerCommand): Promise<ServerCommandReply> {
    if ("generation" in order && order.generation > 0) {
      if (order.generation < this.#generation)
        return { kind: "refused", reason: `the plan of generation ${order.generation} is stale: ${this.#generation} was heard of` };
      this.#generation = order.generation;
    }
    switch (order.kind) {
      case "follow":
        if (this.#rooms.stopping) return { kind: "refused", reason: "the server is stopping" };
        if (this.#rooms.has(order.room)) return { kind: "refused", reason: "the server has the room itself" };
        return (await this.#replicas.follow(order.room))
          ? DONE
          : {
              kind: "refused",
              reason: "the copy did not become warm: the server has as many as it takes, or the room was claimed meanwhile",
            };
      case "unfollow":
        this.#rooms.unfollow(order.room);
        return DONE;
      case "expect":
        return (await this.#rooms.expect(order.room))
          ? DONE
          : { kind: "refused", reason: "the server has the room itself, or takes no more" };
      case "hand-over":
        return this.handOver(order.room, order.to);
      case "drain":
        void this.drain();
        return DONE;
      case "show-presence":
        return DONE;
      default:
        return assertNever(order);
    }
  }

  async handOver(room: RoomKey, to: ServerId): Promise<ServerCommandReply> {
    const { clock, log, metrics } = this.#deps;
    const failed = (outcome: string, reason: string): ServerCommandReply => {
      metrics.handovers.inc({ outcome });
      log.warn({ room, to, reason }, "a room was not handed over");
      return { kind: "refused", reason };
    };
    if (to === this.#server) return failed("not-owned", "the server has the room itself");
    if (!(await this.#others.follow(to, room))) return failed("not-warm", `${to} does not get ready for the room`);
    if (!(await this.#others.expect(to, room))) return failed("not-expected", `${to} does not hear the room's edits`);

    const begun = clock.now();
    const cancel = clock.after(READY_MS_MAX, () => this.#rooms.endHandOver(room, "keep"));
    const end = await this.#rooms.beginHandOver(room);
    cancel();
    if (end === undefined) return failed("not-owned", "the room is not this server's, or its log does not settle");
    const reply = await this.#others.claim(to, { room, suspect: this.#server, end });
    const taken = reply?.kind === "owned" && reply.server === to;
    this.#rooms.endHandOver(room, taken ? "handed-over" : "keep");
    if (!taken)
      return failed(
        "not-claimed",
        `${to} did not take the room: ${reply?.kind === "refused" ? reply.reason : (reply?.kind ?? "no answer")}`,
      );
    metrics.handovers.inc({ outcome: "done" });
    metrics.handOverSeconds.observe((clock.now() - begun) / 1_000);
    log.info({ room, to, epoch: reply.epoch }, "handed a room over");
    return DONE;
  }

  /**
   * Hands over all rooms and accepts no new ones. Resolves when none is left that can be handed over, or the time is
   * up; then it can be called again.
   */
  drain(): Promise<void> {
    return (this.#draining ??= this.#handAllOver().finally(() => (this.#draining = undefined)));
  }

  async #handAllOver(): Promise<void> {
    this.#rooms.drain();
    const until = this.#deps.clock.now() + this.#options.handOverMsMax;
    const tried = new Set<RoomKey>();
    // Some rooms are still being claimed at the start.
    const untried = (): RoomKey[] => this.#rooms.owned().filter((room) => !tried.has(room));
    for (let rooms = untried(); rooms.length > 0 && this.#deps.clock.now() < until; rooms = untried()) {
      for (const room of rooms) tried.add(room);
      this.#deps.log.info({ rooms: rooms.length }, "handing all rooms over");
      const next = async (): Promise<void> => {
        for (let room = rooms.pop(); room !== undefined && this.#deps.clock.now() < until; room = rooms.pop())
          await this.#handOverToAny(room);
      };
      await Promise.all(Array.from({ length: AT_ONCE }, next));
    }
  }

  async #handOverToAny(room: RoomKey): Promise<void> {
    const tried = [this.#server];
    while (tried.length <= TARGETS_MAX) {
      const named = await this.#others.locate(room, tried);
      const to =
        named ??
        rankServers(
          room,
          this.#deps.available().filter((server) => !tried.includes(server)),
        )[0];
      if (to === undefined || tried.includes(to)) return;
      if ((await this.handOver(room, to)).kind === "done") return;
      tried.push(to);
    }
  }
}

/**
 * Takes over the rooms of a lost server that have a replica here, each with one append. No order is needed. If two
 * servers do so at once, the log decides.
 */
type TakeOversParts = { readonly rooms: Pick<OwnedRooms, "takeOver">; readonly replicas: Pick<Replicas, "copiesOf"> };
type TakeOversDeps = { readonly clock: Clock; readonly log: Log; readonly metrics: RoomServerMetrics };

/** Claims under way at once. */
const TAKE_OVERS_AT_ONCE = 128;

export class RoomTakeovers {
  readonly #parts: TakeOversParts;
  readonly #deps: TakeOversDeps;

  constructor(parts: TakeOversParts, deps: TakeOversDeps) {
    this.#parts = parts;
    this.#deps = deps;
  }

  /** Resolves once all claims are settled. */
  async receiveLost(server: ServerId): Promise<void> {
    const { clock, log, metrics } = this.#deps;
    const rooms = this.#parts.replicas.copiesOf(server);
    if (rooms.length === 0) return;
    const begun = clock.now();
    let taken = 0;
    const waiting = rooms.values();
    const next = async (): Promise<void> => {
      for (const room of waiting) if (await this.#parts.rooms.takeOver(room, server)) taken += 1;
    };
    await Promise.all(Array.from({ length: TAKE_OVERS_AT_ONCE }, next));
    metrics.takeOverSeconds.observe((clock.now() - begun) / 1_000);
    log.info({ server, rooms: rooms.length, taken, tookMs: clock.now() - begun }, "took over from a room server that is gone");
  }
}
