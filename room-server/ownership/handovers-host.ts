/**
 * Hands rooms over to other servers, and takes over the rooms of lost servers. Asks the other servers and the rooms of
 * this process, and passes their answers to `handovers.ts`, which decides.
 */

import type { ServerCommandReply, ServerCommand } from "../../shared/bus/placement-messages.ts";
import { assertNever } from "../../shared/assert.ts";
import type { Clock } from "../../shared/time/clock.ts";
import type { Millis, RoomKey, ServerId } from "../../shared/ids.ts";
import type { Log } from "../../shared/process/log.ts";
import type { RoomServerMetrics } from "../metrics.ts";
import type { OtherServers } from "../ports.ts";
import {
  CommandCheck,
  Drain,
  type DrainEffect,
  type DrainInput,
  expectReply,
  followReply,
  Handover,
  type HandoverEffect,
  type HandoverInput,
  Takeover,
} from "./handovers.ts";
import type { Replicas } from "./replicas-host.ts";
import type { OwnedRooms } from "./owned-rooms-host.ts";

/** The parts of the ports that handovers use. */
type HandoverParts = {
  readonly rooms: Pick<OwnedRooms, "isStopping" | "has" | "owned" | "drain" | "unfollow" | "expect" | "beginHandOver" | "endHandOver">;
  readonly replicas: Pick<Replicas, "follow">;
  readonly others: OtherServers;
};
type HandoverDeps = {
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: RoomServerMetrics;
  readonly available: () => readonly ServerId[];
};

/** One handover: the callback for its outcomes, and its timer. */
type HandoverRun = {
  readonly room: RoomKey;
  readonly to: ServerId;
  readonly handover: Handover;
  readonly resolve: (reply: ServerCommandReply) => void;
  readonly reject: (cause: unknown) => void;
  cancelTimeout: () => void;
};

type DrainRun = { readonly drain: Drain; readonly resolve: () => void; readonly reject: (cause: unknown) => void };

export class RoomHandovers {
  readonly #server: ServerId;
  readonly #rooms: HandoverParts["rooms"];
  readonly #replicas: HandoverParts["replicas"];
  readonly #others: OtherServers;
  readonly #options: { readonly handOverMsMax: number };
  readonly #deps: HandoverDeps;
  readonly #check = new CommandCheck();
  #draining: Promise<void> | undefined;

  constructor(server: ServerId, parts: HandoverParts, options: { handOverMsMax: number }, deps: HandoverDeps) {
    this.#server = server;
    this.#rooms = parts.rooms;
    this.#replicas = parts.replicas;
    this.#others = parts.others;
    this.#options = options;
    this.#deps = deps;
  }

  async answerCommand(command: ServerCommand): Promise<ServerCommandReply> {
    const here = { isStopping: this.#rooms.isStopping, hasRoom: "room" in command && this.#rooms.has(command.room) };
    const refusal = this.#check.receiveCommand(command, here, this.#deps.clock.now());
    if (refusal !== undefined) return refusal;
    switch (command.kind) {
      case "follow":
        return followReply(await this.#replicas.follow(command.room));
      case "unfollow":
        this.#rooms.unfollow(command.room);
        return { kind: "done" };
      case "expect":
        return expectReply(await this.#rooms.expect(command.room));
      case "hand-over":
        return this.handOver(command.room, command.to);
      case "drain":
        void this.drain();
        return { kind: "done" };
      case "show-presence":
        return { kind: "done" };
      default:
        return assertNever(command);
    }
  }

  handOver(room: RoomKey, to: ServerId): Promise<ServerCommandReply> {
    return new Promise((resolve, reject) => {
      const run: HandoverRun = { room, to, handover: new Handover(this.#server, room, to), resolve, reject, cancelTimeout: () => {} };
      this.#receiveHandoverInput(run, { kind: "begun" });
    });
  }

  /**
   * Hands over all rooms and accepts no new ones. Resolves when no room is left that can be handed over, or when the
   * time is over. It can then be called again.
   */
  drain(): Promise<void> {
    return (this.#draining ??= this.#handAllOver().finally(() => (this.#draining = undefined)));
  }

  #receiveHandoverInput(run: HandoverRun, input: HandoverInput): void {
    for (const effect of run.handover.receiveHandoverInput(input, this.#deps.clock.now()))
      this.#carryOutHandover(run, effect).catch(run.reject);
  }

  async #carryOutHandover(run: HandoverRun, effect: HandoverEffect): Promise<void> {
    const { clock, log, metrics } = this.#deps;
    const { room, to } = run;
    const receive = (input: HandoverInput): void => this.#receiveHandoverInput(run, input);
    switch (effect.kind) {
      case "follow":
        return receive({ kind: "followed", isReady: await this.#others.follow(to, room) });
      case "expect":
        return receive({ kind: "expected", isReady: await this.#others.expect(to, room) });
      case "stop-appends": {
        run.cancelTimeout = clock.after(effect.msMax, () => receive({ kind: "timed-out" }));
        const end = await this.#rooms.beginHandOver(room);
        run.cancelTimeout();
        return receive({ kind: "stopped", end });
      }
      case "claim":
        return receive({ kind: "claim-answered", reply: await this.#others.claim(to, effect.request) });
      case "end-handover":
        return this.#rooms.endHandOver(room, effect.outcome);
      case "failed":
        metrics.handovers.inc({ outcome: effect.outcome });
        log.warn({ room, to, reason: effect.reply.reason }, "a room was not handed over");
        return run.resolve(effect.reply);
      case "done":
        metrics.handovers.inc({ outcome: "done" });
        metrics.handOverSeconds.observe(effect.tookMs / 1_000);
        log.info({ room, to, epoch: effect.epoch }, "handed a room over");
        return run.resolve(effect.reply);
      default:
        return assertNever(effect);
    }
  }

  #handAllOver(): Promise<void> {
    this.#rooms.drain();
    const until = (this.#deps.clock.now() + this.#options.handOverMsMax) as Millis;
    const drain = new Drain(this.#server, { until, ownedRooms: () => this.#rooms.owned() });
    return new Promise((resolve, reject) => this.#receiveDrainInput({ drain, resolve, reject }, { kind: "begun" }));
  }

  #receiveDrainInput(run: DrainRun, input: DrainInput): void {
    for (const effect of run.drain.receiveDrainInput(input, this.#deps.clock.now())) this.#carryOutDrain(run, effect).catch(run.reject);
  }

  async #carryOutDrain(run: DrainRun, effect: DrainEffect): Promise<void> {
    const receive = (input: DrainInput): void => this.#receiveDrainInput(run, input);
    switch (effect.kind) {
      case "round-begun":
        return this.#deps.log.info({ rooms: effect.rooms }, "handing all rooms over");
      case "locate": {
        const { room, suspects } = effect;
        const named = await this.#others.locate(room, suspects);
        return receive({ kind: "located", room, named, available: this.#deps.available() });
      }
      case "hand-over": {
        const { room, to } = effect;
        return receive({ kind: "handover-ended", room, isDone: (await this.handOver(room, to)).kind === "done" });
      }
      case "ended":
        return run.resolve();
      default:
        return assertNever(effect);
    }
  }
}

type TakeoverParts = { readonly rooms: Pick<OwnedRooms, "takeOver">; readonly replicas: Pick<Replicas, "roomsOf"> };
type TakeoverDeps = { readonly clock: Clock; readonly log: Log; readonly metrics: RoomServerMetrics };

/** Takes over the rooms of a lost server that have a replica here, each with one append. */
export class RoomTakeovers {
  readonly #parts: TakeoverParts;
  readonly #deps: TakeoverDeps;

  constructor(parts: TakeoverParts, deps: TakeoverDeps) {
    this.#parts = parts;
    this.#deps = deps;
  }

  /** Resolves once all claims are settled. */
  async receiveLost(server: ServerId): Promise<void> {
    const { clock, log, metrics } = this.#deps;
    const takeover = new Takeover(this.#parts.replicas.roomsOf(server));
    if (takeover.roomCount === 0) return;
    const begun = clock.now();
    await new Promise<void>((resolve, reject) => {
      const receiveSettled = (isTaken: boolean): void => {
        for (const room of takeover.receiveSettled(isTaken)) claim(room);
        if (takeover.hasEnded) resolve();
      };
      const claim = (room: RoomKey): void => void this.#parts.rooms.takeOver(room, server).then(receiveSettled, reject);
      for (const room of takeover.begin()) claim(room);
    });
    const tookMs = clock.now() - begun;
    metrics.takeOverSeconds.observe(tookMs / 1_000);
    log.info({ server, rooms: takeover.roomCount, taken: takeover.takenCount, tookMs }, "took over the rooms of a lost room server");
  }
}
