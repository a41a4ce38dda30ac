/**
 * Answers which rooms of a tenant are busiest, step by step like `board-answers.ts`. Rooms with equal points share a
 * rank and are ordered by name. A closed window that Redis removed is read from the archive.
 */

import { type RoomKey, roomOf, type UnixMillis } from "../../shared/ids.ts";
import { type Window, parseWindowName } from "../boards/windows.ts";
import type { RankedRoom, TenantPage, ProgressReport } from "../ports.ts";
import { isProgressBehind, type PageRange, type BoardRefusal } from "./board-answers.ts";

export type RoomsBoardInfo = {
  readonly window: { readonly id: string; readonly kind: string; readonly start: number; readonly end: number | null };
  readonly isArchived: boolean;
  readonly isBehind: boolean;
  readonly rooms: number;
  readonly people: number;
};
export type RoomsAnswer = {
  readonly kind: "rooms";
  readonly about: RoomsBoardInfo;
  readonly ranking: readonly RankedRoom[];
  readonly nextOffset: number | undefined;
};
export type RoomAnswer = { readonly kind: "room"; readonly about: RoomsBoardInfo; readonly own: RankedRoom };

type Found = TenantPage & { readonly isArchived: boolean };

/** The next read, and the step after it. */
export type TenantStep<Answer> =
  | { readonly kind: "answer"; readonly answer: Answer | BoardRefusal }
  /** `reports`: the progress of all partitions, because a tenant's rooms are in all of them. */
  | {
      readonly kind: "read-tenant";
      readonly window: Window;
      readonly page: PageRange;
      readonly next: (page: TenantPage, reports: readonly (ProgressReport | undefined)[]) => TenantStep<Answer>;
    }
  | { readonly kind: "read-archive"; readonly window: Window; readonly next: (archived: TenantPage | undefined) => TenantStep<Answer> }
  | {
      readonly kind: "read-rank";
      readonly room: RoomKey;
      readonly window: Window;
      readonly next: (own: RankedRoom | undefined) => TenantStep<Answer>;
    };

/** Answers as of one date. */
export class TenantAnswers {
  readonly #options: { readonly boardBehindMsMax: number };
  readonly #wallNow: UnixMillis;

  constructor(options: { readonly boardBehindMsMax: number }, wallNow: UnixMillis) {
    this.#options = options;
    this.#wallNow = wallNow;
  }

  page(windowName: string, page: PageRange): TenantStep<RoomsAnswer> {
    return this.#find<RoomsAnswer>(windowName, page, (window, found, isBehind) => {
      if (found === undefined) return refused("unknown-window");
      const reach = found.isArchived ? found.ranking.length : found.rooms;
      if (page.offset >= reach && reach < found.rooms) return refused("too-deep");
      const ranking = found.isArchived ? found.ranking.slice(page.offset, page.offset + page.limit) : found.ranking;
      const end = page.offset + ranking.length;
      const nextOffset = end < reach && ranking.length > 0 ? end : undefined;
      return answered({ kind: "rooms", about: aboutOf(window, found, isBehind), ranking, nextOffset });
    });
  }

  room(room: RoomKey, windowName: string): TenantStep<RoomAnswer> {
    return this.#find<RoomAnswer>(windowName, { offset: 0, limit: 1 }, (window, found, isBehind) => {
      const rank = (own: RankedRoom | undefined): TenantStep<RoomAnswer> => {
        if (found !== undefined && own !== undefined) return answered({ kind: "room", about: aboutOf(window, found, isBehind), own });
        return refused(found?.isArchived === true && found.ranking.length < found.rooms ? "beyond-archive" : "not-ranked");
      };
      if (found?.isArchived === true) return rank(found.ranking.find((ranked) => ranked.room === roomOf(room)));
      return { kind: "read-rank", room, window, next: rank };
    });
  }

  /** `found`: undefined if neither Redis nor the archive has the window. */
  #find<Answer>(
    windowName: string,
    page: PageRange,
    next: (window: Window, found: Found | undefined, isBehind: boolean) => TenantStep<Answer>,
  ): TenantStep<Answer> {
    const window = parseWindowName(windowName, this.#wallNow);
    if (window === undefined || window.start > this.#wallNow) return refused("unknown-window");
    return {
      kind: "read-tenant",
      window,
      page,
      next: (found, reports) => {
        const isBehind = reports.some((report) => isProgressBehind(report, this.#wallNow, this.#options));
        if (found.rooms > 0 || window.end > this.#wallNow) return next(window, { ...found, isArchived: false }, isBehind);
        return {
          kind: "read-archive",
          window,
          next: (archived) => next(window, archived && { ...archived, isArchived: true }, isBehind),
        };
      },
    };
  }
}

function answered<Answer>(answer: Answer): TenantStep<Answer> {
  return { kind: "answer", answer };
}

function refused<Answer>(kind: BoardRefusal["kind"]): TenantStep<Answer> {
  return { kind: "answer", answer: { kind } };
}

function aboutOf({ id, kind, start, end }: Window, { rooms, people, isArchived }: Found, isBehind: boolean): RoomsBoardInfo {
  return { window: { id, kind, start, end: Number.isFinite(end) ? end : null }, isArchived, isBehind, rooms, people };
}
