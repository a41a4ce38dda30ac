/**
 * Hands rooms over to other servers. While everything goes on the other gets a warm copy ready and begins to hear the
 * room's edits; then this server stops appending, says where the log ends, and the other claims: one append, and it goes
 * on with what it heard meanwhile. Nobody has to look for the new owner: it announces itself. Whatever fails, the room
 * stays or is claimed by whom gateways find; the log's fencing settles who has it.
 */

import type { OrderReply, ServerOrder } from "../../shared/bus/placement-messages.ts";
import { assertNever } from "../../shared/assert.ts";
import type { Clock } from "../../shared/clock.ts";
import type { RoomKey, ServerId } from "../../shared/ids.ts";
import type { Log } from "../../shared/log.ts";
import { rendezvous } from "../../shared/rendezvous.ts";
import type { RoomServerMetrics } from "../metrics.ts";
import type { OtherServers } from "../ports.ts";
import type { Replicas } from "./replicas-host.ts";
import type { RoomHost } from "./room-host.ts";

/** As much of them as it takes. */
export type HandOversParts = {
  readonly rooms: Pick<RoomHost, "stopping" | "has" | "owned" | "drain" | "unfollow" | "expect" | "beginHandOver" | "endHandOver">;
  readonly replicas: Pick<Replicas, "follow">;
  readonly others: OtherServers;
};
export type HandOversDeps = {
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: RoomServerMetrics;
  readonly available: () => readonly ServerId[];
};

const DONE: OrderReply = { kind: "done" };
/** The append in flight has so long to settle; then the room goes on here. */
const READY_MS_MAX = 1_000;
/** Rooms handed over at a time when all are. */
const AT_ONCE = 4;
/** Servers tried for a room before it is left to those who look for an owner. */
const TARGETS_MAX = 3;

export class HandOvers {
  readonly #server: ServerId;
  readonly #rooms: HandOversParts["rooms"];
  readonly #replicas: HandOversParts["replicas"];
  readonly #others: OtherServers;
  readonly #options: { readonly handOverMsMax: number };
  readonly #deps: HandOversDeps;
  /** The newest plan heard of. */
  #generation = 0;
  #draining: Promise<void> | undefined;

  constructor(server: ServerId, parts: HandOversParts, options: { handOverMsMax: number }, deps: HandOversDeps) {
    this.#server = server;
    this.#rooms = parts.rooms;
    this.#replicas = parts.replicas;
    this.#others = parts.others;
    this.#options = options;
    this.#deps = deps;
  }

  async answer(order: ServerOrder): Promise<OrderReply> {
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

  async handOver(room: RoomKey, to: ServerId): Promise<OrderReply> {
    const { clock, log, metrics } = this.#deps;
    const failed = (outcome: string, reason: string): OrderReply => {
      metrics.handOvers.inc({ outcome });
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
    metrics.handOvers.inc({ outcome: "done" });
    metrics.handOverSeconds.observe((clock.now() - begun) / 1_000);
    log.info({ room, to, epoch: reply.epoch }, "handed a room over");
    return DONE;
  }

  /** Hands over all rooms, and takes no new ones. Resolves when none is left that could be, or the time is up: then it can be asked again. */
  drain(): Promise<void> {
    return (this.#draining ??= this.#handAllOver().finally(() => (this.#draining = undefined)));
  }

  async #handAllOver(): Promise<void> {
    this.#rooms.drain();
    const until = this.#deps.clock.now() + this.#options.handOverMsMax;
    const tried = new Set<RoomKey>();
    // Some are still being claimed when it begins.
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
        rendezvous(
          room,
          this.#deps.available().filter((server) => !tried.includes(server)),
        )[0];
      if (to === undefined || tried.includes(to)) return;
      if ((await this.handOver(room, to)).kind === "done") return;
      tried.push(to);
    }
  }
}
