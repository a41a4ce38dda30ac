/**
 * Publishes the boards that somebody looks at: when they changed, at most once in the push interval, and at once for
 * a watch that is new. A gateway says again and again that it looks; when it stops, so does the publishing.
 */

import type { BoardWatch } from "../shared/bus/board-messages.ts";
import type { Clock } from "../shared/clock.ts";
import type { Millis, RoomKey } from "../shared/ids.ts";
import type { Log } from "../shared/log.ts";
import { unlessMistake } from "../shared/pause.ts";
import { type Applied, NOTHING_APPLIED, type Standing } from "./board.ts";
import { parseRole, type Role } from "./keys.ts";
import type { LeaderboardMetrics } from "./metrics.ts";
import type { NamesHost } from "./names-host.ts";
import type { Shown } from "./ports.ts";
import { checksumOf, rankAll } from "./ranking.ts";
import type { BoardReader } from "./reads-host.ts";
import { eachOf } from "./turns.ts";
import { type Window, windowAt, WINDOW_KINDS, type WindowKind } from "./windows.ts";

export type LiveOptions = { readonly boardRoles: readonly Role[]; readonly boardShownMax: number; readonly boardPushMs: number; readonly boardWatchMs: number; readonly boardWatchesMax: number; readonly boardWritesMax: number };

/** Of a room, as this process sees it. Of several leaderboards that hear of a watch, the one that counts the room publishes. */
export type Counted = "elsewhere" | "behind" | "current";

export type LivePorts = { readonly reader: Pick<BoardReader, "readNow">; readonly names: Pick<NamesHost, "of">; readonly shown: Shown };
export type LiveDeps = { readonly clock: Clock; readonly log: Log; readonly metrics: LeaderboardMetrics; readonly counted: (room: RoomKey) => Counted };

/** `said`: what was told last; undefined: nothing, or to be told anew. */
type Watched = { readonly room: RoomKey; readonly role: Role; readonly kind: WindowKind; until: Millis; windowId: string; publishedAt: Millis | undefined; said: number | "behind" | undefined; counted: Counted };

const TICK_MS = 20;

export class LiveHost {
  readonly #ports: LivePorts;
  readonly #options: LiveOptions;
  readonly #deps: LiveDeps;
  readonly #watched = new Map<string, Watched>();
  readonly #byRoom = new Map<RoomKey, Set<Watched>>();
  /** May have changed since they were published. */
  readonly #due = new Set<Watched>();
  #swept: Millis;
  #isStopped = false;
  #callOff: () => void;

  constructor(ports: LivePorts, options: LiveOptions, deps: LiveDeps) {
    this.#ports = ports;
    this.#options = options;
    this.#deps = deps;
    this.#swept = deps.clock.now();
    this.#callOff = deps.clock.after(TICK_MS, () => this.#push());
  }

  /** Those with a board that somebody looks at. */
  get watchedRooms(): MapIterator<RoomKey> {
    return this.#byRoom.keys();
  }

  stop(): void {
    this.#isStopped = true;
    this.#callOff();
  }

  receiveWatch({ room, role: roleName, window, isNew }: BoardWatch): void {
    const { clock, metrics, counted } = this.#deps;
    const [role, kind] = [parseRole(roleName), WINDOW_KINDS.find((known) => known === window)];
    const key = `${room} ${roleName} ${window}`;
    const known = this.#watched.get(key);
    const isKept = role !== undefined && kind !== undefined && this.#options.boardRoles.includes(role);
    if (!isKept || (known === undefined && this.#watched.size >= this.#options.boardWatchesMax)) {
      metrics.refusedWatches.inc();
      if (isNew && counted(room) !== "elsewhere") this.#ports.shown.publish({ kind: "unavailable", room, role: roleName, window });
      return;
    }
    const until = (clock.now() + this.#options.boardWatchMs) as Millis;
    const watched = known ?? this.#add(key, { room, role, kind, until, windowId: "", publishedAt: undefined, said: undefined, counted: "elsewhere" });
    watched.until = until;
    if (isNew) this.#sayAnew(watched);
    metrics.watches.set(this.#watched.size);
  }

  /** Something was counted in the room. */
  receiveChange(room: RoomKey): void {
    for (const watched of this.#byRoom.get(room) ?? []) this.#due.add(watched);
  }

  #add(key: string, watched: Watched): Watched {
    this.#watched.set(key, watched);
    const ofRoom = this.#byRoom.get(watched.room) ?? new Set();
    this.#byRoom.set(watched.room, ofRoom.add(watched));
    this.#due.add(watched);
    return watched;
  }

  #remove(key: string, watched: Watched): void {
    this.#watched.delete(key);
    this.#due.delete(watched);
    const ofRoom = this.#byRoom.get(watched.room);
    ofRoom?.delete(watched);
    if (ofRoom?.size === 0) this.#byRoom.delete(watched.room);
  }

  #sayAnew(watched: Watched): void {
    watched.said = undefined;
    this.#due.add(watched);
  }

  async #push(): Promise<void> {
    const { clock, log } = this.#deps;
    const now = clock.now();
    if (now - this.#swept >= this.#options.boardPushMs) this.#sweep(now);
    const due = [...this.#due].filter(({ publishedAt }) => publishedAt === undefined || now - publishedAt >= this.#options.boardPushMs);
    try {
      await eachOf(due, this.#options.boardWritesMax, (watched) => this.#publish(watched, now));
    } catch (cause) {
      unlessMistake(cause);
      log.debug({ cause }, "a watched board could not be read; it is tried again");
    }
    if (!this.#isStopped) this.#callOff = clock.after(TICK_MS, () => this.#push());
  }

  /** Who is not looked at any more goes; who has come into another window, or is counted otherwise than it was, has changed. */
  #sweep(now: Millis): void {
    const { clock, counted } = this.#deps;
    this.#swept = now;
    for (const [key, watched] of this.#watched) {
      if (watched.until < now) this.#remove(key, watched);
      else if (counted(watched.room) !== watched.counted) this.#sayAnew(watched);
      else if (windowAt(watched.kind, clock.wallNow()).id !== watched.windowId) this.#due.add(watched);
    }
    this.#deps.metrics.watches.set(this.#watched.size);
  }

  async #publish(watched: Watched, now: Millis): Promise<void> {
    this.#due.delete(watched);
    watched.counted = this.#deps.counted(watched.room);
    if (watched.counted === "elsewhere") return;
    if (watched.counted === "behind") return this.#sayBehind(watched);
    const window = windowAt(watched.kind, this.#deps.clock.wallNow());
    watched.windowId = window.id;
    try {
      await this.#show(watched, window, now);
    } catch (error) {
      this.#due.add(watched); // Whatever it was: it is still to be shown.
      watched.publishedAt = now;
      this.#sayBehind(watched);
      throw error;
    }
  }

  async #show(watched: Watched, window: Window, now: Millis): Promise<void> {
    const { room, role, kind } = watched;
    const { applied = NOTHING_APPLIED, hot, members } = await this.#ports.reader.readNow(room, role, window);
    const names = await this.#ports.names.of(room, hot.map(({ member }) => member));
    const ranked = rankAll(hot, "unique");
    const checksum = checksumOf([...ranked, { user: window.id, score: members }, ...[...names].map(([user, name]) => ({ user: `${user} ${name}`, score: 0 }))]);
    if (checksum === watched.said) return;
    watched.said = checksum;
    watched.publishedAt = now;
    this.#deps.metrics.pushes.inc();
    this.#ports.shown.publish({ kind: "shown", room, role, window: kind, windowId: window.id, ...this.#shownOf(hot, applied), members, ranking: ranked.map(({ user, score }) => [user, score, names.get(user) ?? ""]) });
  }

  #shownOf(hot: readonly Standing[], { epoch, seq }: Applied) {
    const shown = this.#options.boardShownMax;
    return { epoch, seq, shown, checksum: checksumOf(rankAll(hot.slice(0, shown), "unique")) };
  }

  #sayBehind(watched: Watched): void {
    if (watched.said === "behind") return;
    watched.said = "behind";
    this.#ports.shown.publish({ kind: "behind", room: watched.room, role: watched.role, window: watched.kind });
  }
}
