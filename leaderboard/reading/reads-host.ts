/** Carries out the reads of boards and display names that the answers request, with one port call for each. */

import { assertNever } from "../../shared/assert.ts";
import type { DisplayName } from "../../shared/bus/board-messages.ts";
import { partitionOf } from "../../shared/bus/subjects.ts";
import { type RoomKey, type TenantId, tenantOf } from "../../shared/ids.ts";
import type { Log } from "../../shared/process/log.ts";
import type { Clock } from "../../shared/time/clock.ts";
import { rethrowMistake } from "../../shared/time/pause.ts";
import { type BoardContents, byRank, type Names, type RankEntry } from "../boards/board.ts";
import type { MemberRole } from "../boards/keys.ts";
import type { Window } from "../boards/windows.ts";
import type { Archive, BoardReads, Progress, StoredNames, TenantArchive, TenantBoards } from "../ports.ts";
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
import { KnownNames, RecentBoards } from "./read-caches.ts";
import { type RoomAnswer, type RoomsAnswer, TenantAnswers, type TenantStep } from "./tenant-answers.ts";

export type ReadsPorts = { readonly reads: BoardReads; readonly archive: Archive; readonly progress: Pick<Progress, "read"> };
export type ReadsOptions = BoardAnswersOptions & { readonly logPartitions: number; readonly boardPushMs: number };

export class BoardReader {
  readonly #ports: ReadsPorts;
  readonly #options: ReadsOptions;
  readonly #clock: Clock;
  readonly #recent: RecentBoards;

  constructor(ports: ReadsPorts, options: ReadsOptions, clock: Clock) {
    this.#ports = ports;
    this.#options = options;
    this.#clock = clock;
    this.#recent = new RecentBoards(options.boardPushMs);
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
  async ownPlaces(room: RoomKey, role: MemberRole, window: Window, users: readonly string[]): Promise<readonly OwnPlace[]> {
    if (users.length === 0) return [];
    const question: BoardQuestion = { room, role, window: window.id, ranking: "unique" };
    const answer = await this.#answer(question, this.#answers().ownPlaces(question, users));
    return answer.kind === "own-places" ? answer.places : [];
  }

  /** Reads the board now, and shares the result within the push interval from now. */
  readNow(room: RoomKey, role: MemberRole, window: Window): Promise<BoardContents> {
    const key = `${room} ${role} ${window.id}`;
    const state = this.#ports.reads.read(room, role, window);
    this.#recent.add(key, state, this.#clock.now());
    state.catch(() => this.#recent.remove(key)); // Callers that wait for the read receive the failure.
    return state;
  }

  /** Returns the read of the current push interval; without one, reads now. */
  readRecent(room: RoomKey, role: MemberRole, window: Window): Promise<BoardContents> {
    return this.#recent.find(`${room} ${role} ${window.id}`, this.#clock.now()) ?? this.readNow(room, role, window);
  }

  #answers(): BoardAnswers {
    return new BoardAnswers(this.#options, this.#clock.wallNow());
  }

  async #answer<Answer>({ room, role }: BoardQuestion, first: BoardStep<Answer>): Promise<Answer | BoardRefusal> {
    const { reads, archive, progress } = this.#ports;
    for (let step = first; ;) {
      switch (step.kind) {
        case "answer":
          return step.answer;
        case "read-board": {
          const partition = partitionOf(room, this.#options.logPartitions);
          step = step.next(...(await Promise.all([this.readRecent(room, role, step.window), progress.read(partition)])));
          break;
        }
        case "read-archive":
          step = step.next(await archive.read(room, step.window));
          break;
        case "read-all":
          step = step.next(await this.#readAll(room, role, step.window));
          break;
        case "read-places":
          step = step.next(await reads.places(room, role, step.window, step.places));
          break;
        case "read-members":
          step = step.next(await reads.members(room, role, step.window, step.members));
          break;
        default:
          return assertNever(step);
      }
    }
  }

  /** A scan may return a member twice. */
  async #readAll(room: RoomKey, role: MemberRole, window: Window): Promise<RankEntry[]> {
    const byMember = new Map<string, RankEntry>();
    for await (const some of this.#ports.reads.all(room, role, window)) {
      for (const entry of some) byMember.set(entry.member, entry);
    }
    return [...byMember.values()].sort(byRank);
  }
}

export type TenantReadsPorts = {
  readonly tenants: TenantBoards;
  readonly tenantArchive: TenantArchive;
  readonly progress: Pick<Progress, "read">;
};
export type TenantReadsOptions = { readonly logPartitions: number; readonly boardBehindMsMax: number };

export class TenantReader {
  readonly #ports: TenantReadsPorts;
  readonly #options: TenantReadsOptions;
  readonly #clock: Clock;

  constructor(ports: TenantReadsPorts, options: TenantReadsOptions, clock: Clock) {
    this.#ports = ports;
    this.#options = options;
    this.#clock = clock;
  }

  page(tenant: TenantId, windowName: string, page: PageRange): Promise<RoomsAnswer | BoardRefusal> {
    return this.#answer(tenant, this.#answers().page(windowName, page));
  }

  room(room: RoomKey, windowName: string): Promise<RoomAnswer | BoardRefusal> {
    return this.#answer(tenantOf(room), this.#answers().room(room, windowName));
  }

  #answers(): TenantAnswers {
    return new TenantAnswers(this.#options, this.#clock.wallNow());
  }

  async #answer<Answer>(tenant: TenantId, first: TenantStep<Answer>): Promise<Answer | BoardRefusal> {
    const { tenants, tenantArchive, progress } = this.#ports;
    for (let step = first; ;) {
      switch (step.kind) {
        case "answer":
          return step.answer;
        case "read-tenant": {
          const partitions = Array.from({ length: this.#options.logPartitions }, (_, partition) => progress.read(partition));
          step = step.next(...(await Promise.all([tenants.page(tenant, step.window, step.page), Promise.all(partitions)])));
          break;
        }
        case "read-archive":
          step = step.next(await tenantArchive.read(tenant, step.window));
          break;
        case "read-rank":
          step = step.next(await tenants.rankOf(step.room, step.window));
          break;
        default:
          return assertNever(step);
      }
    }
  }
}

export type NamesOptions = { readonly boardNamesMax: number };

/** Stores the display names that gateways announce, and reads unknown names. */
export class NamesHost {
  readonly #stored: StoredNames;
  readonly #known: KnownNames;
  readonly #log: Log;
  readonly #onNew: (room: RoomKey) => void;

  /** `onNew`: a name in the room has changed. */
  constructor(stored: StoredNames, options: NamesOptions, { log, onNew }: { log: Log; onNew: (room: RoomKey) => void }) {
    this.#stored = stored;
    this.#known = new KnownNames(options.boardNamesMax);
    this.#log = log;
    this.#onNew = onNew;
  }

  async receiveName({ room, user, name }: DisplayName): Promise<void> {
    if (!this.#known.receiveName(room, user, name)) return;
    this.#onNew(room);
    try {
      await this.#stored.write(room, user, name);
    } catch (cause) {
      rethrowMistake(cause);
      this.#known.forget(room, user);
      this.#log.debug({ room, cause }, "a name was not stored");
    }
  }

  /** Returns the names of the users that have one. */
  async namesOf(room: RoomKey, users: readonly string[]): Promise<Names> {
    const unknown = this.#known.unknownOf(room, users);
    if (unknown.length > 0) this.#known.receiveStored(room, unknown, await this.#stored.read(room, unknown));
    return this.#known.namesOf(room, users);
  }
}
