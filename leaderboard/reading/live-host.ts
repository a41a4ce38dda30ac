/**
 * Publishes the boards that somebody looks at: when they changed, a room's together and at most once in the push
 * interval, counted up to the moment they are read; and at once for a watch that is new, as they were told last.
 * A gateway says again and again that it looks; when it stops, so does the publishing.
 */

import type { BoardWatch } from "../../shared/bus/board-messages.ts";
import type { Clock } from "../../shared/clock.ts";
import type { Millis, RoomKey } from "../../shared/ids.ts";
import type { Log } from "../../shared/log.ts";
import { unlessMistake } from "../../shared/pause.ts";
import { type Applied, type BoardState, NOTHING_APPLIED, type Standing } from "../boards/board.ts";
import { parseRole, type Role } from "../boards/keys.ts";
import type { LeaderboardMetrics } from "../metrics.ts";
import type { NamesHost } from "./names-host.ts";
import type { Shown } from "../ports.ts";
import { checksumOf, rankAll } from "../boards/ranking.ts";
import type { BoardReader } from "./reads-host.ts";
import { type Counted, type WatchedBoard, WatchedBoards, type WatchedRoom } from "./watched-boards.ts";
import { type Window, windowAt, WINDOW_KINDS } from "../boards/windows.ts";

export type LiveOptions = {
  readonly boardRoles: readonly Role[];
  readonly boardShownMax: number;
  readonly boardPushMs: number;
  readonly boardWatchMs: number;
  readonly boardWatchesMax: number;
  readonly boardWritesMax: number;
};

export type LivePorts = {
  readonly reader: Pick<BoardReader, "readNow" | "readRecent">;
  readonly names: Pick<NamesHost, "of">;
  readonly shown: Shown;
};
export type LiveDeps = {
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: LeaderboardMetrics;
  readonly counted: (room: RoomKey) => Counted;
  /** Resolves once all that the streams have of the room now is counted, or after a moment. */
  readonly countNow: (room: RoomKey) => Promise<void>;
};

type Read = BoardReader["readNow"];

const TICK_MS = 5;

export class LiveHost {
  readonly #ports: LivePorts;
  readonly #options: LiveOptions;
  readonly #deps: LiveDeps;
  readonly #watched: WatchedBoards;
  #pushing = 0;
  #isStopped = false;
  #swept: Millis;
  /** Undefined while nobody looks at anything. */
  #callOff: (() => void) | undefined;

  constructor(ports: LivePorts, options: LiveOptions, deps: LiveDeps) {
    this.#ports = ports;
    this.#options = options;
    this.#deps = deps;
    this.#watched = new WatchedBoards(options);
    this.#swept = deps.clock.now();
  }

  /** Those with a board that somebody looks at. */
  get watchedRooms(): MapIterator<RoomKey> {
    return this.#watched.rooms;
  }

  stop(): void {
    this.#isStopped = true;
    this.#callOff?.();
  }

  receiveWatch({ room, role: roleName, window, isNew }: BoardWatch): void {
    const { clock, metrics, counted } = this.#deps;
    const [role, kind] = [parseRole(roleName), WINDOW_KINDS.find((known) => known === window)];
    const isKept = role !== undefined && kind !== undefined && this.#options.boardRoles.includes(role);
    const known = isKept ? this.#watched.find(room, role, kind) : undefined;
    if (!isKept || (known === undefined && this.#watched.size >= this.#options.boardWatchesMax)) {
      metrics.refusedWatches.inc();
      if (isNew && counted(room) !== "elsewhere") this.#ports.shown.publish({ kind: "unavailable", room, role: roleName, window });
      return;
    }
    const until = (clock.now() + this.#options.boardWatchMs) as Millis;
    if (known === undefined) this.#watched.add(room, role, kind, until);
    else {
      known.until = until;
      if (isNew) this.#watched.sayAnew(room, known);
    }
    metrics.watches.set(this.#watched.size);
    this.#tickOn();
  }

  /** Something was counted in the room, or somebody is called otherwise. */
  receiveChange(room: RoomKey): void {
    this.#watched.receiveChange(room);
  }

  #tickOn(): void {
    if (this.#isStopped || this.#watched.size === 0) return;
    this.#callOff ??= this.#deps.clock.after(TICK_MS, () => {
      this.#callOff = undefined;
      this.#tick();
    });
  }

  #tick(): void {
    const { clock, counted, metrics } = this.#deps;
    const now = clock.now();
    if (now - this.#swept >= this.#options.boardPushMs) {
      this.#swept = now;
      const date = clock.wallNow();
      this.#watched.sweep(now, { counted, windowIdOf: (kind) => windowAt(kind, date).id });
      metrics.watches.set(this.#watched.size);
    }
    const { due, anew } = this.#watched.take(now, this.#options.boardWritesMax - this.#pushing);
    for (const room of due) void this.#push(room, () => this.#showNow(room));
    for (const room of anew) void this.#push(room, () => this.#showAgain(room));
    this.#tickOn();
  }

  async #push(room: WatchedRoom, show: () => Promise<void>): Promise<void> {
    room.isPushing = true;
    this.#pushing += 1;
    try {
      room.counted = this.#deps.counted(room.room);
      if (room.counted === "current") await show();
      else if (room.counted === "behind") this.#sayBehind(room);
    } catch (cause) {
      unlessMistake(cause);
      this.#deps.log.debug({ cause }, "a watched board could not be read; it is tried again");
      room.pushedAt = this.#deps.clock.now();
      this.#watched.receiveChange(room.room);
      this.#sayBehind(room);
    } finally {
      this.#pushing -= 1;
      room.isPushing = false;
    }
  }

  /** As everything is that was done before now. */
  async #showNow(room: WatchedRoom): Promise<void> {
    await this.#deps.countNow(room.room);
    this.#watched.settle(room);
    await this.#show(room, [...room.boards.values()], (...board) => this.#ports.reader.readNow(...board));
    room.pushedAt = this.#deps.clock.now();
  }

  /** What was told last, for those who did not hear it; others are told nothing new before the interval is over. */
  #showAgain(room: WatchedRoom): Promise<void> {
    return this.#show(
      room,
      [...room.boards.values()].filter(({ said }) => said === undefined),
      (...board) => this.#ports.reader.readRecent(...board),
    );
  }

  async #show({ room }: WatchedRoom, boards: readonly WatchedBoard[], read: Read): Promise<void> {
    const date = this.#deps.clock.wallNow();
    await Promise.all(
      boards.map(async (board) => {
        const window = windowAt(board.kind, date);
        board.windowId = window.id;
        await this.#publish(room, board, window, await read(room, board.role, window));
      }),
    );
  }

  async #publish(
    room: RoomKey,
    board: WatchedBoard,
    window: Window,
    { applied = NOTHING_APPLIED, hot, members }: BoardState,
  ): Promise<void> {
    const names = await this.#ports.names.of(
      room,
      hot.map(({ member }) => member),
    );
    const ranked = rankAll(hot, "unique");
    const checksum = checksumOf([
      ...ranked,
      { user: window.id, score: members },
      ...[...names].map(([user, name]) => ({ user: `${user} ${name}`, score: 0 })),
    ]);
    if (checksum === board.said) return;
    board.said = checksum;
    this.#deps.metrics.pushes.inc();
    this.#ports.shown.publish({
      kind: "shown",
      room,
      role: board.role,
      window: board.kind,
      windowId: window.id,
      ...this.#shownOf(hot, applied),
      members,
      ranking: ranked.map(({ user, score }) => [user, score, names.get(user) ?? ""]),
    });
  }

  #shownOf(hot: readonly Standing[], { epoch, seq }: Applied) {
    const shown = this.#options.boardShownMax;
    return { epoch, seq, shown, checksum: checksumOf(rankAll(hot.slice(0, shown), "unique")) };
  }

  #sayBehind({ room, boards }: WatchedRoom): void {
    for (const board of boards.values()) {
      if (board.said === "behind") continue;
      board.said = "behind";
      this.#ports.shown.publish({ kind: "behind", room, role: board.role, window: board.kind });
    }
  }
}
