/** Carries out the reads of boards and display names that the answers request, with one port call for each. */

import { assertNever } from "../../shared/assert.ts";
import type { DisplayName } from "../../shared/bus/board-messages.ts";
import { partitionOf } from "../../shared/bus/subjects.ts";
import { type RoomKey, tenantOf } from "../../shared/ids.ts";
import type { Log } from "../../shared/process/log.ts";
import type { Clock } from "../../shared/time/clock.ts";
import { rethrowMistake } from "../../shared/time/pause.ts";
import { type BoardContents, byRank, type Names, type RankEntry } from "../boards/board.ts";
import { type BoardOwner, isTenantBoard, type MemberRole, tenantBoard } from "../boards/keys.ts";
import type { Window } from "../boards/windows.ts";
import type { LeaderboardMetrics } from "../metrics.ts";
import type { Archive, BoardReads, Progress, ProgressReport, StoredNames } from "../ports.ts";
import {
  BoardAnswers,
  type BoardAnswersOptions,
  type BoardQuestion,
  type BoardRefusal,
  type BoardStep,
  type MemberAnswer,
  type MembersAnswer,
  type OwnPlace,
  type PageAnswer,
  type PageRange,
} from "./board-answers.ts";
import { leastProgress } from "./progress-reports.ts";
import { KnownNames, RecentReads } from "./read-caches.ts";

export type ReadsPorts = { readonly reads: BoardReads; readonly archive: Archive; readonly progress: Pick<Progress, "read"> };
export type ReadsOptions = BoardAnswersOptions & { readonly logPartitions: number; readonly boardPushMs: number };

const ALL_PARTITIONS = "all partitions";

export class BoardReader {
  readonly #ports: ReadsPorts;
  readonly #options: ReadsOptions;
  readonly #clock: Clock;
  readonly #recent: RecentReads<BoardContents>;
  readonly #recentProgress: RecentReads<ProgressReport | undefined>;

  constructor(ports: ReadsPorts, options: ReadsOptions, clock: Clock) {
    this.#ports = ports;
    this.#options = options;
    this.#clock = clock;
    this.#recent = new RecentReads(options.boardPushMs);
    this.#recentProgress = new RecentReads(options.boardPushMs);
  }

  page(question: BoardQuestion, page: PageRange): Promise<PageAnswer | BoardRefusal> {
    return this.#answer(question, this.#answers().page(question, page));
  }

  member(question: BoardQuestion, user: string, around: number): Promise<MemberAnswer | BoardRefusal> {
    return this.#answer(question, this.#answers().member(question, user, around));
  }

  members(question: BoardQuestion, users: readonly string[]): Promise<MembersAnswer | BoardRefusal> {
    return this.#answer(question, this.#answers().members(question, users));
  }

  /** Empty if the board is not ranked now: the users keep what they know. */
  async ownPlaces(owner: BoardOwner, role: MemberRole, window: Window, users: readonly string[]): Promise<readonly OwnPlace[]> {
    if (users.length === 0) return [];
    const question: BoardQuestion = { owner, role, window: window.id, ranking: "unique" };
    const answer = await this.#answer(question, this.#answers().ownPlaces(question, users));
    return answer.kind === "own-places" ? answer.places : [];
  }

  /** Reads the board now, and shares the result within the push interval from now. */
  readNow(owner: BoardOwner, role: MemberRole, window: Window): Promise<BoardContents> {
    const key = `${owner} ${role} ${window.id}`;
    const state = this.#ports.reads.read(owner, role, window);
    this.#recent.add(key, state, this.#clock.now());
    return state;
  }

  /** Returns the read of the current push interval; without one, reads now. */
  readRecent(owner: BoardOwner, role: MemberRole, window: Window): Promise<BoardContents> {
    return this.#recent.find(`${owner} ${role} ${window.id}`, this.#clock.now()) ?? this.readNow(owner, role, window);
  }

  #answers(): BoardAnswers {
    return new BoardAnswers(this.#options, this.#clock.wallNow());
  }

  async #answer<Answer>({ owner, role }: BoardQuestion, first: BoardStep<Answer>): Promise<Answer | BoardRefusal> {
    const { reads, archive } = this.#ports;
    for (let step = first; ;) {
      switch (step.kind) {
        case "answer":
          return step.answer;
        case "read-board":
          step = step.next(...(await Promise.all([this.readRecent(owner, role, step.window), this.#progressOf(owner)])));
          break;
        case "read-archive":
          step = step.next(await archive.read(owner, step.window));
          break;
        case "read-all":
          step = step.next(await this.#readAll(owner, role, step.window));
          break;
        case "read-places":
          step = step.next(await reads.places(owner, role, step.window, step.places));
          break;
        case "read-members":
          step = step.next(await reads.members(owner, role, step.window, step.members));
          break;
        default:
          return assertNever(step);
      }
    }
  }

  #progressOf(owner: BoardOwner): Promise<ProgressReport | undefined> {
    if (!isTenantBoard(owner)) return this.#ports.progress.read(partitionOf(owner, this.#options.logPartitions));
    const now = this.#clock.now();
    const known = this.#recentProgress.find(ALL_PARTITIONS, now);
    if (known !== undefined) return known;
    const read = this.#leastProgress();
    this.#recentProgress.add(ALL_PARTITIONS, read, now);
    return read;
  }

  async #leastProgress(): Promise<ProgressReport | undefined> {
    const partitions = Array.from({ length: this.#options.logPartitions }, (_, partition) => this.#ports.progress.read(partition));
    return leastProgress(await Promise.all(partitions));
  }

  /** A scan may return a member twice. */
  async #readAll(owner: BoardOwner, role: MemberRole, window: Window): Promise<RankEntry[]> {
    const byMember = new Map<string, RankEntry>();
    for await (const some of this.#ports.reads.all(owner, role, window)) {
      for (const entry of some) byMember.set(entry.member, entry);
    }
    return [...byMember.values()].sort(byRank);
  }
}

export type NamesOptions = { readonly boardNamesMax: number };
/** `onNew`: a name in the room has changed. */
type NamesDeps = {
  readonly log: Log;
  readonly metrics: Pick<LeaderboardMetrics, "refusedNames">;
  readonly onNew: (room: RoomKey) => void;
};

/** Stores the display names that gateways announce, and reads unknown names. */
export class NamesHost {
  readonly #stored: StoredNames;
  readonly #known: KnownNames;
  readonly #log: Log;
  readonly #metrics: NamesDeps["metrics"];
  readonly #onNew: (room: RoomKey) => void;

  constructor(stored: StoredNames, options: NamesOptions, { log, metrics, onNew }: NamesDeps) {
    this.#stored = stored;
    this.#known = new KnownNames(options.boardNamesMax);
    this.#log = log;
    this.#metrics = metrics;
    this.#onNew = onNew;
  }

  /** The name is shown on the room's boards and on the tenant's. */
  async receiveName({ room, user, name }: DisplayName): Promise<void> {
    const isNew = this.#known.receiveName(room, user, name);
    if (isNew) this.#onNew(room);
    const people = tenantBoard(tenantOf(room), "people");
    const isNewInTenant = this.#known.receiveName(people, user, name);
    await Promise.all([isNew && this.#write(room, user, name), isNewInTenant && this.#write(people, user, name)]);
  }

  async #write(owner: BoardOwner, user: string, name: string): Promise<void> {
    try {
      const outcome = await this.#stored.write(owner, user, name);
      if (outcome === "full") this.#metrics.refusedNames.inc({ owner: isTenantBoard(owner) ? "tenant" : "room" });
    } catch (cause) {
      rethrowMistake(cause);
      this.#known.forget(owner, user);
      this.#log.debug({ owner, cause }, "a name was not stored");
    }
  }

  /** Returns the names of the users that have one. */
  async namesOf(owner: BoardOwner, users: readonly string[]): Promise<Names> {
    const found = this.#known.find(owner, users);
    const unknown = [...found].flatMap(([user, name]) => (name === undefined ? [user] : []));
    return this.#known.complete(owner, found, unknown.length === 0 ? new Map() : await this.#stored.read(owner, unknown));
  }
}
