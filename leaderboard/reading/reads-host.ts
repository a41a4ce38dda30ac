/**
 * Answers questions about rooms' boards: from one snapshot that all who ask within the push interval share,
 * from the archive once a window is gone from Redis. Nothing is read without a bound: past the ordered part of a
 * long board a rank is given as a range.
 */

import { partitionOf } from "../../shared/bus/subjects.ts";
import type { Clock } from "../../shared/clock.ts";
import type { Epoch, Millis, RoomKey, Seq, UnixMillis } from "../../shared/ids.ts";
import { ranksWithin } from "../boards/bands.ts";
import { byRank, type Applied, type BoardState, type Standing } from "../boards/board.ts";
import type { Role } from "../boards/keys.ts";
import type { Archive, BoardReads, Progress } from "../ports.ts";
import { neighboursOf, percentileOf, type Ranked, rankAll, rankFrom, type Ranking } from "../boards/ranking.ts";
import { type Window, windowNamed } from "../boards/windows.ts";

export type ReadsPorts = { readonly reads: BoardReads; readonly archive: Archive; readonly progress: Pick<Progress, "read"> };
export type ReadsOptions = {
  readonly logPartitions: number;
  readonly boardRoles: readonly Role[];
  readonly boardShownMax: number;
  readonly boardReadMembersMax: number;
  readonly boardBehindMsMax: number;
  readonly boardPushMs: number;
};

/** `window`: a kind for the present one, or an id. */
export type BoardQuestion = { readonly room: RoomKey; readonly role: Role; readonly window: string; readonly ranking: Ranking };
export type Page = { readonly offset: number; readonly limit: number };

/** What every answer says of the board it is about. */
export type About = {
  readonly role: Role;
  readonly window: { readonly id: string; readonly kind: string; readonly start: number; readonly end: number | null };
  readonly isArchived: boolean;
  /** The boards count the room up to here; `missing` edits the log had lost before. */
  readonly asOf: { readonly epoch: Epoch; readonly seq: Seq; readonly time: UnixMillis; readonly missing: number };
  readonly isBehind: boolean;
  readonly members: number;
  readonly points: number;
};
/** A rank is exact, or somewhere in a range. */
export type OwnRank = { readonly rank: number } | { readonly rankFirst: number; readonly rankLast: number };

export type Refusal = {
  readonly kind: "unknown-room" | "unknown-window" | "unknown-role" | "too-deep" | "not-ranked" | "beyond-archive" | "rebuilding";
};
export type PageAnswer = {
  readonly kind: "page";
  readonly about: About;
  readonly ranking: readonly Ranked[];
  readonly nextOffset: number | undefined;
};
export type MemberAnswer = {
  readonly kind: "member";
  readonly about: About;
  readonly own: OwnRank & { readonly user: string; readonly score: number; readonly percentile: number };
  readonly neighbours: readonly Ranked[];
};
export type MembersAnswer = { readonly kind: "members"; readonly about: About; readonly ranking: readonly Ranked[] };

/** `ordered`: the first members in order; all of them if `isWhole`. `reach`: of how many a page can be asked for. */
type View = {
  readonly kind: "view";
  readonly about: About;
  readonly ordered: readonly Standing[];
  readonly isWhole: boolean;
  readonly reach: number;
  readonly state: BoardState | undefined;
  readonly window: Window;
};

const SNAPSHOTS_MAX = 10_000;

export class BoardReader {
  readonly #ports: ReadsPorts;
  readonly #options: ReadsOptions;
  readonly #clock: Clock;
  readonly #snapshots = new Map<string, { readonly until: Millis; readonly state: Promise<BoardState> }>();

  constructor(ports: ReadsPorts, options: ReadsOptions, clock: Clock) {
    this.#ports = ports;
    this.#options = options;
    this.#clock = clock;
  }

  async page(question: BoardQuestion, { offset, limit }: Page): Promise<PageAnswer | Refusal> {
    const view = await this.#view(question, offset + limit);
    if (view.kind !== "view") return view;
    const { about, ordered, isWhole, reach } = view;
    if (!isWhole && offset + limit > ordered.length && reach > ordered.length) return this.#deepPage(view, question, { offset, limit });
    if (!isWhole && offset >= ordered.length) return { kind: "too-deep" };
    const ranking = rankAll(ordered, question.ranking).slice(offset, offset + limit);
    const end = offset + ranking.length;
    return { kind: "page", about, ranking, nextOffset: end < reach ? end : undefined };
  }

  /** With up to `around` members above and below. */
  async member(question: BoardQuestion, user: string, around: number): Promise<MemberAnswer | Refusal> {
    let view = await this.#view(question, 0);
    if (view.kind === "view" && !view.isWhole && !view.ordered.some(({ member }) => member === user)) {
      view = await this.#view(question, Number.POSITIVE_INFINITY);
    }
    if (view.kind !== "view") return view;
    const { about, ordered, state } = view;
    const found = neighboursOf(rankAll(ordered, question.ranking), user, around);
    if (found !== undefined) {
      const place = ordered.findIndex(({ member }) => member === user) + 1;
      return { kind: "member", about, own: { ...found.own, percentile: percentileOf(place, about.members) }, neighbours: found.neighbours };
    }
    if (view.isWhole) return { kind: "not-ranked" };
    if (state === undefined) return { kind: "beyond-archive" };
    const exact = await this.#exactMember(view, question, user, around);
    if (exact !== undefined) return exact;
    const [standing] = await this.#ports.reads.members(question.room, question.role, view.window, [user]);
    if (standing === undefined) return { kind: "not-ranked" };
    const { first, last } = ranksWithin(state.bands, standing.score);
    const [rankFirst, rankLast] = [Math.max(first, ordered.length + 1), Math.max(last, ordered.length + 1)];
    return {
      kind: "member",
      about,
      own: { user, score: standing.score, rankFirst, rankLast, percentile: percentileOf((rankFirst + rankLast) / 2, about.members) },
      neighbours: [],
    };
  }

  /** Beyond the first members, where the rest is in order too. A dense rank would need all scores above. */
  async #deepPage(
    { about, window, reach }: View,
    { room, role, ranking }: BoardQuestion,
    { offset, limit }: Page,
  ): Promise<PageAnswer | Refusal> {
    if (ranking === "dense") return { kind: "too-deep" };
    const places = await this.#ports.reads.places(room, role, window, { kind: "from", offset, limit });
    if (places === undefined) return { kind: "too-deep" };
    const end = offset + places.standings.length;
    return { kind: "page", about, ranking: rankFrom(places, ranking), nextOffset: end < reach ? end : undefined };
  }

  async #exactMember(
    { about, window }: View,
    { room, role, ranking }: BoardQuestion,
    user: string,
    around: number,
  ): Promise<MemberAnswer | undefined> {
    if (ranking === "dense") return undefined;
    const places = await this.#ports.reads.places(room, role, window, { kind: "around", member: user, around });
    const found = places === undefined ? undefined : neighboursOf(rankFrom(places, ranking), user, around);
    if (places === undefined || found === undefined) return undefined;
    const place = places.first + places.standings.findIndex(({ member }) => member === user) + 1;
    return { kind: "member", about, own: { ...found.own, percentile: percentileOf(place, about.members) }, neighbours: found.neighbours };
  }

  /** These members among themselves. Those without points are left out. */
  async members(question: BoardQuestion, users: readonly string[]): Promise<MembersAnswer | Refusal> {
    const view = await this.#view(question, 0);
    if (view.kind !== "view") return view;
    const wanted = new Set(users);
    const standings =
      view.state === undefined
        ? view.ordered.filter(({ member }) => wanted.has(member))
        : await this.#ports.reads.members(question.room, question.role, view.window, [...wanted]);
    return { kind: "members", about: view.about, ranking: rankAll([...standings].sort(byRank), question.ranking) };
  }

  /** As it is now, and for all who ask within the push interval from now. */
  readNow(room: RoomKey, role: Role, window: Window): Promise<BoardState> {
    const key = `${room} ${role} ${window.id}`;
    const state = this.#ports.reads.read(room, role, window);
    this.#snapshots.delete(key); // So that the map stays in order of age.
    this.#snapshots.set(key, { until: (this.#clock.now() + this.#options.boardPushMs) as Millis, state });
    state.catch(() => this.#snapshots.delete(key)); // Whoever asks next asks Redis; the failure reaches those who wait.
    for (const oldest of this.#snapshots.keys()) {
      if (this.#snapshots.size <= SNAPSHOTS_MAX) break;
      this.#snapshots.delete(oldest);
    }
    return state;
  }

  /** As it was for those who asked within the push interval, if anyone did. */
  readRecent(room: RoomKey, role: Role, window: Window): Promise<BoardState> {
    const known = this.#snapshots.get(`${room} ${role} ${window.id}`);
    return known !== undefined && this.#clock.now() < known.until ? known.state : this.readNow(room, role, window);
  }

  /** `needed`: how many from the top are to be in order. */
  async #view({ room, role, window: name, ranking }: BoardQuestion, needed: number): Promise<View | Refusal> {
    if (!this.#options.boardRoles.includes(role)) return { kind: "unknown-role" };
    const window = this.#window(name);
    if (window === undefined || window.start > this.#clock.wallNow()) return { kind: "unknown-window" };
    const [state, isBehind] = await Promise.all([this.readRecent(room, role, window), this.#isBehind(room)]);
    if (state.applied === undefined) return { kind: isBehind ? "rebuilding" : "unknown-room" };
    if (state.members === 0 && window.end <= this.#clock.wallNow()) return this.#archived(room, role, window, isBehind);
    const about = aboutOf(role, window, state.applied, { members: state.members, points: state.points, isArchived: false, isBehind });
    const isShort = state.members <= this.#options.boardReadMembersMax;
    const isRead = state.hot.length < state.members && needed > state.hot.length && isShort;
    const ordered = isRead ? await this.#all(room, role, window) : state.hot;
    const goesOn = !isRead && (isShort || (state.isOrdered && ranking !== "dense"));
    const reach = goesOn ? state.members : ordered.length;
    return { kind: "view", about, ordered, isWhole: isRead || state.hot.length === state.members, reach, state, window };
  }

  async #archived(room: RoomKey, role: Role, window: Window, isBehind: boolean): Promise<View | Refusal> {
    const archived = await this.#ports.archive.read(room, window);
    const board = archived?.boards.find((candidate) => candidate.role === role);
    if (archived === undefined || board === undefined) return { kind: "unknown-window" };
    const { members, points, standings } = board;
    const about = aboutOf(role, window, archived.applied, { members, points, isArchived: true, isBehind });
    return {
      kind: "view",
      about,
      ordered: standings,
      isWhole: standings.length === members,
      reach: standings.length,
      state: undefined,
      window,
    };
  }

  async #all(room: RoomKey, role: Role, window: Window): Promise<Standing[]> {
    const byMember = new Map<string, Standing>();
    for await (const some of this.#ports.reads.all(room, role, window)) {
      for (const standing of some) byMember.set(standing.member, standing);
    }
    return [...byMember.values()].sort(byRank);
  }

  #window(name: string): Window | undefined {
    return windowNamed(name, this.#clock.wallNow());
  }

  async #isBehind(room: RoomKey): Promise<boolean> {
    const word = await this.#ports.progress.read(partitionOf(room, this.#options.logPartitions));
    return word === undefined || word.isRebuilding || this.#clock.wallNow() - word.through > this.#options.boardBehindMsMax;
  }
}

function aboutOf(
  role: Role,
  { id, kind, start, end }: Window,
  { epoch, seq, time, missing }: Applied,
  rest: Pick<About, "members" | "points" | "isArchived" | "isBehind">,
): About {
  return { role, window: { id, kind, start, end: Number.isFinite(end) ? end : null }, asOf: { epoch, seq, time, missing }, ...rest };
}
