/**
 * Redis as the leaderboard's ports see it. It has the rooms' boards, which a batch changes only if the named position
 * was applied before, and a sentinel for each partition. A data loss resets the sentinels together with the boards.
 */

import type { RoomKey, Seq, UserId } from "../../shared/ids.ts";
import type { Sentinel } from "../../shared/cluster/lease.ts";
import {
  type CountedPosition,
  type ScoreBatch,
  type BoardsDump,
  byRank,
  isAhead,
  type CountedMark,
  type Use,
  type Uses,
} from "../../leaderboard/boards/board.ts";
import { CAPS, type MemberRole } from "../../leaderboard/boards/keys.ts";
import type { Window } from "../../leaderboard/boards/windows.ts";
import type { Progress, BoardWrite } from "../../leaderboard/ports.ts";
import type { Scheduler } from "./scheduler.ts";

type ProgressWord = Parameters<Progress["begin"]>[1];
type Member = { readonly score: number; readonly reachedAt: number };
type StoredBoard = { readonly role: MemberRole; readonly window: Window; readonly members: Map<string, Member> };
type StoredRoom = { applied: CountedPosition; uses: Record<keyof Uses, Use>; readonly boards: Map<string, StoredBoard> };
type Data = {
  readonly rooms: Map<RoomKey, StoredRoom | "deleted">;
  readonly words: Map<number, ProgressWord & Sentinel>;
};

/** Interval at which Redis writes its data to disk. */
const PERSIST_MS = 400;
const COUNTED_FOREVER: CountedMark = { seq: Number.MAX_SAFE_INTEGER as Seq, activity: Number.MAX_SAFE_INTEGER };

export class SimRedis {
  readonly #scheduler: Scheduler;
  #data: Data = { rooms: new Map(), words: new Map() };
  #persisted: { readonly at: number; readonly data: Data };
  #unansweredEver = 0;
  /** Increases each time that all connections break. */
  breaks = 0;
  isThere = true;

  constructor(scheduler: Scheduler) {
    this.#scheduler = scheduler;
    this.#persisted = { at: scheduler.now, data: structuredClone(this.#data) };
  }

  get unansweredEver(): number {
    return this.#unansweredEver;
  }

  answers(): boolean {
    if (!this.isThere) this.#unansweredEver += 1;
    return this.isThere;
  }

  /** Redis restarts with the data that it last wrote to disk, or with no data. Returns whether any board lost points. */
  lose(what: "end" | "everything"): boolean {
    const before = JSON.stringify(this.#counted());
    this.breaks += 1;
    this.#data = what === "end" ? structuredClone(this.#persisted.data) : { rooms: new Map(), words: new Map() };
    this.#persisted = { at: this.#scheduler.now, data: structuredClone(this.#data) };
    return JSON.stringify(this.#counted()) !== before;
  }

  load(room: RoomKey): { readonly applied: CountedPosition; readonly uses: Uses } | "deleted" | undefined {
    const stored = this.#data.rooms.get(room);
    if (stored === undefined || stored === "deleted") return stored;
    return { applied: stored.applied, uses: structuredClone(stored.uses) };
  }

  apply(room: RoomKey, { after, applied, uses, windows, awards }: ScoreBatch): BoardWrite {
    this.#persist();
    const counted = this.#mark(room);
    const isAfter = counted.seq === after.seq && counted.activity === after.activity && (counted.time ?? 0) === after.time;
    if (!isAfter) return { kind: "stale", counted };
    const stored = this.#room(room, applied);
    stored.applied = applied;
    for (const cap of CAPS) {
      const { period, points, hasBegun } = uses[cap];
      stored.uses[cap] = { period, points: new Map<UserId, number>([...(hasBegun ? [] : stored.uses[cap].points), ...points]) };
    }
    for (const [role, ofRole] of awards) {
      for (const window of windows) {
        const { members } = boardOf(stored, role, window);
        for (const { member, points, reachedAt } of ofRole) {
          const before = members.get(member) ?? { score: 0, reachedAt: 0 };
          members.set(member, { score: before.score + points, reachedAt: Math.max(before.reachedAt, reachedAt) });
        }
      }
    }
    return { kind: "written" };
  }

  dump(room: RoomKey, windows: readonly Window[]): BoardsDump | undefined {
    const stored = this.#data.rooms.get(room);
    if (stored === undefined || stored === "deleted") return undefined;
    const wanted = new Set(windows.map(({ id }) => id));
    const boards = [...stored.boards.values()]
      .filter(({ window, members }) => wanted.has(window.id) && members.size > 0)
      .map(({ role, window, members }) => ({
        role,
        window,
        standings: [...members].map(([member, { score, reachedAt }]) => ({ member, score, reachedAt })).sort(byRank),
      }));
    return { names: new Map(), applied: stored.applied, uses: structuredClone(stored.uses), boards };
  }

  restore(room: RoomKey, { applied, uses, boards }: BoardsDump): BoardWrite {
    this.#persist();
    const counted = this.#mark(room);
    if (!isAhead(applied, counted)) return { kind: "stale", counted };
    const stored: StoredRoom = { applied, uses: structuredClone(uses), boards: new Map() };
    this.#data.rooms.set(room, stored);
    for (const { role, window, standings } of boards) {
      const { members } = boardOf(stored, role, window);
      for (const { member, score, reachedAt } of standings) members.set(member, { score, reachedAt });
    }
    return { kind: "written" };
  }

  remove(room: RoomKey): void {
    this.#persist();
    this.#data.rooms.set(room, "deleted");
  }

  /** Writes without a condition. */
  setWord(partition: number, word: ProgressWord & Sentinel): void {
    this.#persist();
    this.#data.words.set(partition, word);
  }

  /** Writes only if the last word, or a later one of the same service, is still stored. */
  replaceWord(partition: number, last: Sentinel, word: ProgressWord & Sentinel): boolean {
    const found = this.#data.words.get(partition);
    if (found === undefined || found.service !== last.service || found.number < last.number) return false;
    this.setWord(partition, word);
    return true;
  }

  word(partition: number): (ProgressWord & Sentinel) | undefined {
    return this.#data.words.get(partition);
  }

  /** Returns each member's points of all time, or `deleted`. */
  pointsOf(room: RoomKey): ReadonlyMap<string, number> | "deleted" {
    const stored = this.#data.rooms.get(room);
    if (stored === "deleted") return stored;
    const board = [...(stored?.boards.values() ?? [])].find(({ role, window }) => role === "everyone" && window.kind === "all");
    return new Map([...(board?.members ?? [])].map(([member, { score }]) => [member, score]));
  }

  #mark(room: RoomKey): CountedMark {
    const stored = this.#data.rooms.get(room);
    if (stored === "deleted") return COUNTED_FOREVER;
    return {
      epoch: stored?.applied.epoch,
      time: stored?.applied.time,
      seq: stored?.applied.seq ?? (0 as Seq),
      activity: stored?.applied.activity ?? 0,
    };
  }

  #room(room: RoomKey, applied: CountedPosition): StoredRoom {
    const known = this.#data.rooms.get(room);
    if (known !== undefined && known !== "deleted") return known;
    const unused: Use = { period: 0, points: new Map() };
    const made: StoredRoom = { applied, uses: { edits: unused, deeds: unused, present: unused }, boards: new Map() };
    this.#data.rooms.set(room, made);
    return made;
  }

  #persist(): void {
    const { now } = this.#scheduler;
    if (now - this.#persisted.at >= PERSIST_MS) this.#persisted = { at: now, data: structuredClone(this.#data) };
  }

  #counted(): unknown {
    return [...this.#data.rooms.keys()].map((room) => this.#mark(room));
  }
}

function boardOf(room: StoredRoom, role: MemberRole, window: Window): StoredBoard {
  const key = `${role} ${window.id}`;
  const known = room.boards.get(key) ?? { role, window, members: new Map() };
  room.boards.set(key, known);
  return known;
}
