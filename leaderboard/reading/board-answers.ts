/**
 * Answers questions about the boards of rooms and tenants. A question is a chain of steps. Each step names the next read and the step
 * after it, until there is an answer. All reads are limited: below the ordered part of a long board, a rank is a range.
 */

import type { Epoch, Seq, UnixMillis } from "../../shared/ids.ts";
import {
  type BoardContents,
  byRank,
  type CountedPosition,
  neighboursOf,
  percentileOf,
  rankAll,
  type Ranked,
  type RankEntry,
  rankFrom,
  type Ranking,
  ranksWithin,
} from "../boards/board.ts";
import { type BoardOwner, isTenantBoard, type MemberRole } from "../boards/keys.ts";
import { type Window, type WindowKind, parseWindowName } from "../boards/windows.ts";
import type { ArchivedWindow, OrderedPlaces, PlacesAsked, ProgressReport } from "../ports.ts";
import { appliedOfTenant, isProgressBehind } from "./progress-reports.ts";

export type BoardAnswersOptions = {
  readonly boardRoles: readonly MemberRole[];
  readonly boardWindows: readonly WindowKind[];
  readonly boardReadMembersMax: number;
  readonly boardBehindMsMax: number;
};

/** `window`: a kind, for its current window, or an id. */
export type BoardQuestion = {
  readonly owner: BoardOwner;
  readonly role: MemberRole;
  readonly window: string;
  readonly ranking: Ranking;
};
export type PageRange = { readonly offset: number; readonly limit: number };

/** The fields that every answer has about its board. */
type BoardInfo = {
  readonly role: MemberRole;
  readonly window: { readonly id: string; readonly kind: string; readonly start: number; readonly end: number | null };
  readonly isArchived: boolean;
  /**
   * The position up to which the boards are counted. `missing`: number of edits that the log lost before they were counted.
   * Of a tenant's board only the date before which all entries are counted.
   */
  readonly asOf:
    { readonly epoch: Epoch; readonly seq: Seq; readonly time: UnixMillis; readonly missing: number } | { readonly time: UnixMillis };
  readonly isBehind: boolean;
  readonly members: number;
  readonly points: number;
};
/** A rank is exact, or a range. */
type OwnRank = { readonly rank: number } | { readonly rankFirst: number; readonly rankLast: number };

/** A user's place on the board, of unique ranks. 0 without points; rank 0 with points: the rank is not known exactly. */
export type OwnPlace = { readonly user: string; readonly rank: number; readonly score: number };

export type BoardRefusal = {
  readonly kind: "unknown-room" | "unknown-window" | "unknown-role" | "too-deep" | "not-ranked" | "beyond-archive" | "rebuilding";
};
export type PageAnswer = {
  readonly kind: "page";
  readonly about: BoardInfo;
  readonly ranking: readonly Ranked[];
  readonly nextOffset: number | undefined;
};
export type MemberAnswer = {
  readonly kind: "member";
  readonly about: BoardInfo;
  readonly own: OwnRank & { readonly user: string; readonly score: number; readonly percentile: number };
  readonly neighbours: readonly Ranked[];
};
export type MembersAnswer = { readonly kind: "members"; readonly about: BoardInfo; readonly ranking: readonly Ranked[] };

/** `ordered`: the first members in order, or all if `isWhole`. `reach`: number of members that pages can show. */
type View = {
  readonly about: BoardInfo;
  readonly ordered: readonly RankEntry[];
  readonly isWhole: boolean;
  readonly reach: number;
  readonly state: BoardContents | undefined;
  readonly window: Window;
};

/** The next read, and the step after it. All reads are of the question's owner and role. */
export type BoardStep<Answer> =
  | { readonly kind: "answer"; readonly answer: Answer | BoardRefusal }
  /** `report`: the progress of the leaderboards that count the owner. */
  | {
      readonly kind: "read-board";
      readonly window: Window;
      readonly next: (state: BoardContents, report: ProgressReport | undefined) => BoardStep<Answer>;
    }
  | { readonly kind: "read-archive"; readonly window: Window; readonly next: (archived: ArchivedWindow | undefined) => BoardStep<Answer> }
  | { readonly kind: "read-all"; readonly window: Window; readonly next: (standings: readonly RankEntry[]) => BoardStep<Answer> }
  | {
      readonly kind: "read-places";
      readonly window: Window;
      readonly places: PlacesAsked;
      readonly next: (places: OrderedPlaces | undefined) => BoardStep<Answer>;
    }
  | {
      readonly kind: "read-members";
      readonly window: Window;
      readonly members: readonly string[];
      readonly next: (standings: readonly RankEntry[]) => BoardStep<Answer>;
    };

type OwnPlaces = { readonly kind: "own-places"; readonly places: readonly OwnPlace[] };

type PageStep = BoardStep<PageAnswer>;
type MemberStep = BoardStep<MemberAnswer>;
type MembersStep = BoardStep<MembersAnswer>;

/** Answers as of one date. */
export class BoardAnswers {
  readonly #options: BoardAnswersOptions;
  readonly #wallNow: UnixMillis;

  constructor(options: BoardAnswersOptions, wallNow: UnixMillis) {
    this.#options = options;
    this.#wallNow = wallNow;
  }

  page(question: BoardQuestion, page: PageRange): PageStep {
    const { offset, limit } = page;
    return this.#view<PageAnswer>(question, offset + limit, (view) => {
      const { about, ordered, isWhole, reach } = view;
      if (!isWhole && offset + limit > ordered.length && reach > ordered.length) return deepPage(view, question, page);
      if (!isWhole && offset >= ordered.length) return refused("too-deep");
      const ranking = rankAll(ordered, question.ranking).slice(offset, offset + limit);
      const end = offset + ranking.length;
      return answered({ kind: "page", about, ranking, nextOffset: end < reach ? end : undefined });
    });
  }

  /** A member with up to `around` members above and below. */
  member(question: BoardQuestion, user: string, around: number): MemberStep {
    return this.#view<MemberAnswer>(question, 0, (view) => {
      if (view.isWhole || hasNeighbours(view, user, around)) return this.#memberIn(view, question, user, around);
      return this.#view(question, Number.POSITIVE_INFINITY, (whole) => this.#memberIn(whole, question, user, around));
    });
  }

  /** Ranks these members among themselves. Members without points are left out. */
  members(question: BoardQuestion, users: readonly string[]): MembersStep {
    return this.#view<MembersAnswer>(question, 0, (view) => {
      const wanted = new Set(users);
      const rank = (standings: readonly RankEntry[]): MembersStep =>
        answered({ kind: "members", about: view.about, ranking: rankAll([...standings].sort(byRank), question.ranking) });
      if (view.state === undefined) return rank(view.ordered.filter(({ member }) => wanted.has(member)));
      return { kind: "read-members", window: view.window, members: [...wanted], next: rank };
    });
  }

  /**
   * The unique rank and score of each user, for live boards. Exact on a board that may be read completely, and on one of
   * any size whose tail is in order.
   */
  ownPlaces(question: BoardQuestion, users: readonly string[]): BoardStep<OwnPlaces> {
    return this.#view<OwnPlaces>(question, 0, (first) => {
      const isKnown = first.isWhole || users.every((user) => first.ordered.some(({ member }) => member === user));
      if (isKnown) return answered({ kind: "own-places", places: placesIn(first, users) });
      return this.#view<OwnPlaces>(question, Number.POSITIVE_INFINITY, (view) => {
        if (view.isWhole) return answered({ kind: "own-places", places: placesIn(view, users) });
        const { window, state } = view;
        return {
          kind: "read-members",
          window,
          members: users,
          next: (found) => placesBehind(window, state?.isOrdered === true, users, found),
        };
      });
    });
  }

  #memberIn(view: View, question: BoardQuestion, user: string, around: number): MemberStep {
    const { about, ordered, state, window } = view;
    const { ranking } = question;
    const found = neighboursOf(rankAll(ordered, ranking), user, around);
    const known = found && answered(memberAnswer(about, found, ordered.findIndex(({ member }) => member === user) + 1));
    if (known !== undefined && (view.isWhole || hasNeighbours(view, user, around))) return known;
    if (view.isWhole) return refused("not-ranked");
    if (state === undefined) return known ?? refused("beyond-archive");
    const readScore: MemberStep = known ?? { kind: "read-members", window, members: [user], next: ([own]) => rangeOf(view, state, own) };
    if (ranking === "dense") return readScore; // A dense rank would need all scores above.
    return {
      kind: "read-places",
      window,
      places: { kind: "around", member: user, around },
      next: (places) => {
        const exact = places === undefined ? undefined : neighboursOf(rankFrom(places, ranking), user, around);
        if (places === undefined || exact === undefined) return readScore;
        return answered(memberAnswer(about, exact, places.first + places.standings.findIndex(({ member }) => member === user) + 1));
      },
    };
  }

  /** `needed`: number of first members that must be in order. */
  #view<Answer>(question: BoardQuestion, needed: number, next: (view: View) => BoardStep<Answer>): BoardStep<Answer> {
    const { owner, role, window: name, ranking } = question;
    const { boardRoles, boardWindows, boardReadMembersMax } = this.#options;
    if (!boardRoles.includes(role)) return refused("unknown-role");
    const window = parseWindowName(name, this.#wallNow);
    if (window === undefined || window.start > this.#wallNow) return refused("unknown-window");
    // A closed window may have been counted and archived with another setting.
    if (window.end > this.#wallNow && !boardWindows.includes(window.kind)) return refused("unknown-window");
    const thenState = (state: BoardContents, report: ProgressReport | undefined): BoardStep<Answer> => {
      const isBehind = isProgressBehind(report, this.#wallNow, this.#options);
      const applied = isTenantBoard(owner) ? appliedOfTenant(report) : state.applied;
      if (applied === undefined) return refused(isBehind ? "rebuilding" : "unknown-room");
      if (state.members === 0 && window.end <= this.#wallNow) {
        return { kind: "read-archive", window, next: (archived) => archivedView(archived, question, window, isBehind, next) };
      }
      const about = aboutOf(question, window, applied, { members: state.members, points: state.points, isArchived: false, isBehind });
      const isShort = state.members <= boardReadMembersMax;
      if (state.hot.length < state.members && needed > state.hot.length && isShort) {
        const whole = (ordered: readonly RankEntry[]): View => ({ about, ordered, isWhole: true, reach: ordered.length, state, window });
        return { kind: "read-all", window, next: (all) => next(whole(all)) };
      }
      const goesOn = isShort || (state.isOrdered && ranking !== "dense");
      const isWhole = state.hot.length === state.members;
      return next({ about, ordered: state.hot, isWhole, reach: goesOn ? state.members : state.hot.length, state, window });
    };
    return { kind: "read-board", window, next: thenState };
  }
}

function archivedView<Answer>(
  archived: ArchivedWindow | undefined,
  question: BoardQuestion,
  window: Window,
  isBehind: boolean,
  next: (view: View) => BoardStep<Answer>,
): BoardStep<Answer> {
  const board = archived?.boards.find((candidate) => candidate.role === question.role);
  if (archived === undefined || board === undefined) return refused("unknown-window");
  const { members, points, standings } = board;
  const about = aboutOf(question, window, archived.applied, { members, points, isArchived: true, isBehind });
  const isWhole = standings.length === members;
  return next({ about, ordered: standings, isWhole, reach: standings.length, state: undefined, window });
}

/** A page after the exact part, if the rest is in order too. A dense rank would need all scores above it. */
function deepPage({ about, window, reach }: View, { ranking }: BoardQuestion, { offset, limit }: PageRange): PageStep {
  if (ranking === "dense") return refused("too-deep");
  return {
    kind: "read-places",
    window,
    places: { kind: "from", offset, limit },
    next: (places) => {
      if (places === undefined) return refused("too-deep");
      const end = offset + places.standings.length;
      return answered({ kind: "page", about, ranking: rankFrom(places, ranking), nextOffset: end < reach ? end : undefined });
    },
  };
}

/** Whether the ordered part contains the member and all neighbours below. */
function hasNeighbours({ ordered }: View, user: string, around: number): boolean {
  const index = ordered.findIndex(({ member }) => member === user);
  return index >= 0 && index + around < ordered.length;
}

function placesIn({ ordered }: View, users: readonly string[]): readonly OwnPlace[] {
  const ranks = new Map(ordered.map(({ member, score }, index) => [member, { user: member, rank: index + 1, score }]));
  return users.map((user) => ranks.get(user) ?? { user, rank: 0, score: 0 });
}

/** One read for each user with points: the board is too long to be read completely. */
function placesBehind(window: Window, isOrdered: boolean, users: readonly string[], found: readonly RankEntry[]): BoardStep<OwnPlaces> {
  const scores = new Map(found.map(({ member, score }) => [member, score]));
  const places: OwnPlace[] = users.filter((user) => !scores.has(user)).map((user) => ({ user, rank: 0, score: 0 }));
  if (!isOrdered)
    return answered({ kind: "own-places", places: [...places, ...[...scores].map(([user, score]) => ({ user, rank: 0, score }))] });
  const waiting = [...scores];
  const step = (): BoardStep<OwnPlaces> => {
    const next = waiting.shift();
    if (next === undefined) return answered({ kind: "own-places", places });
    const [user, score] = next;
    const receive = (around: OrderedPlaces | undefined): BoardStep<OwnPlaces> => {
      const own = around?.standings[0];
      places.push(own?.member === user ? { user, rank: around!.first + 1, score: own.score } : { user, rank: 0, score });
      return step();
    };
    return { kind: "read-places", window, places: { kind: "around", member: user, around: 0 }, next: receive };
  };
  return step();
}

/** The range of ranks of a member below the ordered part. */
function rangeOf({ about, ordered }: View, state: BoardContents, own: RankEntry | undefined): MemberStep {
  if (own === undefined) return refused("not-ranked");
  const { first, last } = ranksWithin(state.bands, own.score);
  const [rankFirst, rankLast] = [Math.max(first, ordered.length + 1), Math.max(last, ordered.length + 1)];
  const percentile = percentileOf((rankFirst + rankLast) / 2, about.members);
  return answered({ kind: "member", about, own: { user: own.member, score: own.score, rankFirst, rankLast, percentile }, neighbours: [] });
}

function memberAnswer(about: BoardInfo, { own, neighbours }: NonNullable<ReturnType<typeof neighboursOf>>, place: number): MemberAnswer {
  return { kind: "member", about, own: { ...own, percentile: percentileOf(place, about.members) }, neighbours };
}

function answered<Answer>(answer: Answer): BoardStep<Answer> {
  return { kind: "answer", answer };
}

function refused<Answer>(kind: BoardRefusal["kind"]): BoardStep<Answer> {
  return { kind: "answer", answer: { kind } };
}

function aboutOf(
  { owner, role }: BoardQuestion,
  { id, kind, start, end }: Window,
  { epoch, seq, time, missing }: CountedPosition,
  rest: Pick<BoardInfo, "members" | "points" | "isArchived" | "isBehind">,
): BoardInfo {
  const asOf = isTenantBoard(owner) ? { time } : { epoch, seq, time, missing };
  return { role, window: { id, kind, start, end: Number.isFinite(end) ? end : null }, asOf, ...rest };
}
