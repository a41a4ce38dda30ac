/** Publishes watched boards: passes inputs to `LiveBoards`, which decides, and carries out its effects. */

import { assertNever } from "../../shared/assert.ts";
import type { BoardWatch } from "../../shared/bus/board-messages.ts";
import type { RoomKey } from "../../shared/ids.ts";
import type { Log } from "../../shared/process/log.ts";
import type { Clock } from "../../shared/time/clock.ts";
import { rethrowMistake } from "../../shared/time/pause.ts";
import type { LeaderboardMetrics } from "../metrics.ts";
import type { BoardPublisher } from "../ports.ts";
import { LiveBoards, type LiveEffect, type LiveInput, type LiveOptions, type LiveTime, type BoardPush } from "./live-boards.ts";
import type { BoardReader, NamesHost } from "./reads-host.ts";
import type { Counted } from "./watched-boards.ts";

type LivePorts = {
  readonly reader: Pick<BoardReader, "readNow" | "readRecent" | "ownPlaces">;
  readonly names: Pick<NamesHost, "namesOf">;
  readonly shown: BoardPublisher;
};
type LiveDeps = {
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: LeaderboardMetrics;
  readonly counted: (room: RoomKey) => Counted;
  /** Resolves once everything that the streams now contain for the room is counted, or after a time limit. */
  readonly countNow: (room: RoomKey) => Promise<void>;
};

export class LiveHost {
  readonly #ports: LivePorts;
  readonly #deps: LiveDeps;
  readonly #boards: LiveBoards;
  #isStopped = false;
  #timerAt: number | undefined;
  #callOff: () => void = () => {};

  constructor(ports: LivePorts, options: LiveOptions, deps: LiveDeps) {
    this.#ports = ports;
    this.#deps = deps;
    this.#boards = new LiveBoards(options, deps.counted, this.#time());
  }

  get watchedRooms(): MapIterator<RoomKey> {
    return this.#boards.rooms;
  }

  stop(): void {
    this.#isStopped = true;
    this.#callOff();
  }

  receiveWatch(watch: BoardWatch): void {
    this.#receiveLiveInput({ kind: "watch", watch });
    this.#deps.metrics.watches.set(this.#boards.size);
  }

  /** Entries were counted in the room, or a name in it changed. */
  receiveChange(room: RoomKey): void {
    this.#receiveLiveInput({ kind: "changed", room });
  }

  #time(): LiveTime {
    const { clock } = this.#deps;
    return { now: clock.now(), wallNow: clock.wallNow() };
  }

  #receiveLiveInput(input: LiveInput): void {
    for (const effect of this.#boards.receiveInput(input, this.#time())) this.#carryOut(effect);
    this.#setTimer();
  }

  #setTimer(): void {
    const at = this.#boards.nextTickAt;
    if (at === this.#timerAt || this.#isStopped) return;
    this.#callOff();
    this.#timerAt = at;
    if (at === undefined) return;
    const { clock } = this.#deps;
    this.#callOff = clock.after(Math.max(0, at - clock.now()), () => {
      this.#timerAt = undefined;
      this.#receiveLiveInput({ kind: "tick" });
      this.#deps.metrics.watches.set(this.#boards.size);
    });
  }

  #carryOut(effect: LiveEffect): void {
    const { metrics, countNow } = this.#deps;
    switch (effect.kind) {
      case "count-room": {
        const { push, room } = effect;
        return this.#await(
          push,
          countNow(room).then(() => ({ kind: "room-counted", push })),
        );
      }
      case "read-board":
        return this.#await(effect.push, this.#read(effect));
      case "publish":
        if (effect.update.kind === "shown") metrics.pushes.inc();
        return this.#ports.shown.publish(effect.update);
      case "watch-refused":
        return metrics.refusedWatches.inc();
      default:
        return assertNever(effect);
    }
  }

  #await(push: BoardPush, outcome: Promise<LiveInput>): void {
    outcome.then(
      (input) => this.#receiveLiveInput(input),
      (cause: unknown) => {
        rethrowMistake(cause);
        this.#deps.log.debug({ cause }, "a watched board could not be read; it is tried again");
        this.#receiveLiveInput({ kind: "failed", push });
      },
    );
  }

  async #read({ push, room, board, window, from, sought }: LiveEffect & { kind: "read-board" }): Promise<LiveInput> {
    const { reader, names } = this.#ports;
    const state = await (from === "redis" ? reader.readNow(room, board.role, window) : reader.readRecent(room, board.role, window));
    const users = state.hot.map(({ member }) => member);
    const listed = new Set(users);
    const others = sought.filter((user) => !listed.has(user));
    const [named, own] = await Promise.all([names.namesOf(room, users), reader.ownPlaces(room, board.role, window, others)]);
    return { kind: "board-read", push, board, window, state, names: named, own };
  }
}
