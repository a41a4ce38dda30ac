/**
 * Publishes the boards that somebody looks at: when they changed, at most once in the push interval, and at once for
 * a watch that is new. A gateway says again and again that it looks; when it stops, so does the publishing.
 */

import type { BoardWatch } from "../shared/bus/board-messages.ts";
import type { Clock } from "../shared/clock.ts";
import type { Millis, RoomKey } from "../shared/ids.ts";
import type { Log } from "../shared/log.ts";
import { unlessMistake } from "../shared/pause.ts";
import type { BoardState } from "./board.ts";
import { parseRole, type Role } from "./keys.ts";
import type { LeaderboardMetrics } from "./metrics.ts";
import type { Shown } from "./ports.ts";
import { checksumOf, rankAll } from "./ranking.ts";
import type { BoardReader } from "./reads-host.ts";
import { eachOf } from "./turns.ts";
import { type Window, windowAt, WINDOW_KINDS, type WindowKind } from "./windows.ts";

export type LiveOptions = { readonly boardRoles: readonly Role[]; readonly boardShownMax: number; readonly boardPushMs: number; readonly boardWatchMs: number; readonly boardWatchesMax: number; readonly boardWritesMax: number };

type Watched = { readonly room: RoomKey; readonly role: Role; readonly kind: WindowKind; until: Millis; windowId: string; publishedAt: Millis; checksum: number | undefined };

const TICK_MS = 50;

export class LiveHost {
  readonly #reader: BoardReader;
  readonly #shown: Shown;
  readonly #options: LiveOptions;
  readonly #deps: { readonly clock: Clock; readonly log: Log; readonly metrics: LeaderboardMetrics; readonly counts: (room: RoomKey) => boolean };
  readonly #watched = new Map<string, Watched>();
  readonly #byRoom = new Map<RoomKey, Set<Watched>>();
  /** May have changed since they were published. */
  readonly #due = new Set<Watched>();
  #swept = 0 as Millis;
  #isStopped = false;
  #callOff: () => void;

  /** `counts`: whether the room is counted here; of several leaderboards that hear of a watch one publishes. */
  constructor(reader: BoardReader, shown: Shown, options: LiveOptions, deps: { clock: Clock; log: Log; metrics: LeaderboardMetrics; counts: (room: RoomKey) => boolean }) {
    this.#reader = reader;
    this.#shown = shown;
    this.#options = options;
    this.#deps = deps;
    this.#callOff = deps.clock.after(TICK_MS, () => this.#push());
  }

  stop(): void {
    this.#isStopped = true;
    this.#callOff();
  }

  receiveWatch({ room, role: roleName, window }: BoardWatch): void {
    const { clock, metrics } = this.#deps;
    const [role, kind] = [parseRole(roleName), WINDOW_KINDS.find((known) => known === window)];
    if (role === undefined || kind === undefined || !this.#options.boardRoles.includes(role)) return;
    const key = `${room} ${role} ${kind}`;
    const until = (clock.now() + this.#options.boardWatchMs) as Millis;
    const known = this.#watched.get(key);
    if (known !== undefined) known.until = until;
    else if (this.#watched.size >= this.#options.boardWatchesMax) metrics.refusedWatches.inc();
    else this.#add(key, { room, role, kind, until, windowId: "", publishedAt: 0 as Millis, checksum: undefined });
    metrics.watches.set(this.#watched.size);
  }

  /** Something was counted in the room. */
  receiveChange(room: RoomKey): void {
    for (const watched of this.#byRoom.get(room) ?? []) this.#due.add(watched);
  }

  #add(key: string, watched: Watched): void {
    this.#watched.set(key, watched);
    const ofRoom = this.#byRoom.get(watched.room) ?? new Set();
    this.#byRoom.set(watched.room, ofRoom.add(watched));
    this.#due.add(watched);
  }

  #remove(key: string, watched: Watched): void {
    this.#watched.delete(key);
    this.#due.delete(watched);
    const ofRoom = this.#byRoom.get(watched.room);
    ofRoom?.delete(watched);
    if (ofRoom?.size === 0) this.#byRoom.delete(watched.room);
  }

  async #push(): Promise<void> {
    const { clock, log } = this.#deps;
    const now = clock.now();
    if (now - this.#swept >= this.#options.boardPushMs) this.#sweep(now);
    const due = [...this.#due].filter(({ publishedAt }) => now - publishedAt >= this.#options.boardPushMs);
    try {
      await eachOf(due, this.#options.boardWritesMax, (watched) => this.#publish(watched, now));
    } catch (cause) {
      unlessMistake(cause);
      log.debug({ cause }, "a watched board could not be read; it is tried again");
    }
    if (!this.#isStopped) this.#callOff = clock.after(TICK_MS, () => this.#push());
  }

  /** Who is not looked at any more goes; who has come into another window has changed. */
  #sweep(now: Millis): void {
    this.#swept = now;
    for (const [key, watched] of this.#watched) {
      if (watched.until < now) this.#remove(key, watched);
      else if (windowAt(watched.kind, this.#deps.clock.wallNow()).id !== watched.windowId) this.#due.add(watched);
    }
    this.#deps.metrics.watches.set(this.#watched.size);
  }

  async #publish(watched: Watched, now: Millis): Promise<void> {
    const { room, role, kind } = watched;
    this.#due.delete(watched);
    const window = windowAt(kind, this.#deps.clock.wallNow());
    watched.windowId = window.id;
    if (!this.#deps.counts(room)) return void (watched.checksum = undefined);
    const { applied, hot, members } = await this.#read(watched, window);
    if (applied === undefined) return;
    const ranked = rankAll(hot, "unique");
    const checksum = checksumOf([...ranked, { user: window.id, score: members }]);
    if (checksum === watched.checksum) return;
    watched.checksum = checksum;
    watched.publishedAt = now;
    this.#deps.metrics.pushes.inc();
    const shown = this.#options.boardShownMax;
    this.#shown.publish({ room, role, window: kind, windowId: window.id, epoch: applied.epoch, seq: applied.seq, members, shown, checksum: checksumOf(ranked.slice(0, shown)), ranking: ranked.map(({ user, score }) => [user, score]) });
  }

  async #read(watched: Watched, window: Window): Promise<BoardState> {
    try {
      return await this.#reader.readNow(watched.room, watched.role, window);
    } catch (error) {
      this.#due.add(watched); // Whatever it was: it is still to be shown.
      throw error;
    }
  }
}
