/**
 * Parses questions about boards from HTTP addresses. All input is checked in this file. An unknown window, rank or
 * cursor, or a page that is too large, gets an error that names the valid values.
 */

import { parseRoomId, parseTenantId, parseUserId, ROOM_ID_RULE, type RoomKey, roomKey, type TenantId } from "../../shared/ids.ts";
import { parseRole } from "../boards/keys.ts";
import { RANKINGS } from "../boards/board.ts";
import type { BoardQuestion, PageRange } from "./board-answers.ts";
import { parseWindow, WINDOW_KINDS } from "../boards/windows.ts";

export type HttpBoardQuestion =
  | { readonly kind: "page"; readonly board: BoardQuestion; readonly page: PageRange }
  | { readonly kind: "member"; readonly board: BoardQuestion; readonly user: string; readonly around: number }
  | { readonly kind: "members"; readonly board: BoardQuestion; readonly users: readonly string[] }
  | TenantQuestion;
/** About a tenant's rooms. */
export type TenantQuestion =
  | { readonly kind: "rooms"; readonly tenant: TenantId; readonly window: string; readonly page: PageRange }
  | { readonly kind: "room"; readonly room: RoomKey; readonly window: string };
export type BadQuestion = {
  readonly kind: "bad";
  readonly error:
    "not-found" | "bad-room" | "unknown-window" | "unknown-role" | "bad-ranking" | "bad-limit" | "bad-cursor" | "bad-around" | "bad-user";
  readonly message: string;
};
export type QuestionLimits = { readonly boardShownMax: number };

type Query = { get(name: string): string | null; getAll(name: string): string[] };

const AROUND_DEFAULT = 5;
/** A window by id or kind, and the offset of the next page. */
const CURSOR = /^([A-Za-z0-9-]{1,16})~(\d{1,9})$/;

/** `segments`: the decoded path: `rooms/{room}/leaderboard...` or `leaderboard/rooms...`. */
export function parseQuestion(
  tenantText: string,
  segments: readonly string[],
  query: Query,
  limits: QuestionLimits,
): HttpBoardQuestion | BadQuestion {
  const place = parsePlace(query);
  if (segments[0] === "leaderboard") return parseTenantQuestion(tenantText, segments, query, place, limits);
  const [rooms, roomText, board, members, user, ...rest] = segments;
  if (rooms !== "rooms" || board !== "leaderboard" || rest.length > 0 || (members !== undefined && members !== "members")) {
    return bad(
      "not-found",
      "there is rooms/{room}/leaderboard, rooms/{room}/leaderboard/members and rooms/{room}/leaderboard/members/{user}",
    );
  }
  const room = parseRoom(tenantText, roomText ?? "");
  if (room === undefined) return bad("bad-room", ROOM_ID_RULE);

  if (place.kind === "bad") return place;
  const role = parseRole(query.get("role") ?? "everyone");
  if (role === undefined) return bad("unknown-role", "a role is everyone, editors or commenters");
  const rankingText = query.get("ranking") ?? "unique";
  const ranking = RANKINGS.find((known) => known === rankingText);
  if (ranking === undefined) return bad("bad-ranking", `a ranking is ${RANKINGS.join(", ")}`);
  const question: BoardQuestion = { room, role, window: place.window, ranking };

  if (members === undefined) {
    const page = parsePage(query, place, limits);
    return page.kind === "bad" ? page : { kind: "page", board: question, page };
  }
  if (user === undefined) {
    const users = query.getAll("user");
    if (users.length < 1 || users.length > limits.boardShownMax || !users.every((name) => parseUserId(name) !== undefined)) {
      return bad("bad-user", `name 1 to ${limits.boardShownMax} users: ?user=a&user=b`);
    }
    return { kind: "members", board: question, users };
  }
  const aroundMax = Math.floor(limits.boardShownMax / 2);
  const around = numberIn(query.get("around"), Math.min(AROUND_DEFAULT, aroundMax));
  if (around === undefined || around > aroundMax) return bad("bad-around", `around is 0 to ${aroundMax}`);
  if (parseUserId(user) === undefined) return bad("bad-user", "a user is 1 to 128 characters without control characters");
  return { kind: "member", board: question, user, around };
}

function parseTenantQuestion(
  tenantText: string,
  [, rooms, roomText, ...rest]: readonly string[],
  query: Query,
  place: Place | BadQuestion,
  limits: QuestionLimits,
): TenantQuestion | BadQuestion {
  const tenant = parseTenantId(tenantText);
  if (tenant === undefined || rooms !== "rooms" || rest.length > 0) {
    return bad("not-found", "there is leaderboard/rooms and leaderboard/rooms/{room}");
  }
  if (place.kind === "bad") return place;
  if (roomText !== undefined) {
    const room = parseRoom(tenantText, roomText);
    return room === undefined ? bad("bad-room", ROOM_ID_RULE) : { kind: "room", room, window: place.window };
  }
  const page = parsePage(query, place, limits);
  return page.kind === "bad" ? page : { kind: "rooms", tenant, window: place.window, page };
}

/** The window, and the offset of the page in it. */
type Place = { readonly kind: "place"; readonly window: string; readonly offset: number };

function parsePlace(query: Query): Place | BadQuestion {
  const cursor = query.get("cursor");
  const from = cursor === null ? undefined : CURSOR.exec(cursor);
  if (from === null) return bad("bad-cursor", "send the cursor as the page before gave it");
  const window = from?.[1] ?? query.get("window") ?? "all";
  if (!WINDOW_KINDS.some((kind) => kind === window) && parseWindow(window) === undefined) {
    return bad("unknown-window", `a window is ${WINDOW_KINDS.join(", ")} or like 2026-07-01T12, 2026-07-01, 2026-W27, 2026-07, 2026`);
  }
  return { kind: "place", window, offset: Number(from?.[2] ?? 0) };
}

function parsePage(
  query: Query,
  { offset }: Place,
  { boardShownMax }: QuestionLimits,
): (PageRange & { readonly kind: "range" }) | BadQuestion {
  const limit = numberIn(query.get("limit"), boardShownMax);
  if (limit === undefined || limit < 1 || limit > boardShownMax) {
    return bad("bad-limit", `limit is 1 to ${boardShownMax}; ask for the rest with the cursor`);
  }
  return { kind: "range", offset, limit };
}

/** Names the window by id, so that pages match even if the window ends in the meantime. */
export function cursorOf(windowId: string, offset: number): string {
  return `${windowId}~${offset}`;
}

function parseRoom(tenantText: string, roomText: string): RoomKey | undefined {
  const [tenant, room] = [parseTenantId(tenantText), parseRoomId(roomText)];
  return tenant === undefined || room === undefined ? undefined : roomKey(tenant, room);
}

function numberIn(text: string | null, fallback: number): number | undefined {
  if (text === null) return fallback;
  return /^\d{1,9}$/.test(text) ? Number(text) : undefined;
}

function bad(error: BadQuestion["error"], message: string): BadQuestion {
  return { kind: "bad", error, message };
}
