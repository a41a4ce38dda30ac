/**
 * Parses questions about boards from HTTP requests. All input is checked in this file. An unknown window, rank or
 * cursor, or a page that is too large, gets an error that names the valid values.
 */

import { z } from "zod";

import { decodeJson } from "../../shared/bus/json-messages.ts";
import {
  parseRoomId,
  parseRoomOfTenant,
  parseTenantId,
  parseUserId,
  ROOM_ID_RULE,
  type UnixMillis,
  USER_ID_RULE,
} from "../../shared/ids.ts";
import { RANKED_USERS_MAX } from "../../shared/settings/board-settings.ts";
import { RANKINGS } from "../boards/board.ts";
import { type BoardOwner, parseRole, tenantBoard } from "../boards/keys.ts";
import { parseWindowName, WINDOW_KINDS } from "../boards/windows.ts";
import type { BoardQuestion, PageRange } from "./board-answers.ts";

/** `user`: on a tenant's board of rooms, a room. */
export type HttpBoardQuestion =
  | { readonly kind: "page"; readonly board: BoardQuestion; readonly page: PageRange }
  | { readonly kind: "member"; readonly board: BoardQuestion; readonly user: string; readonly around: number }
  | { readonly kind: "members"; readonly board: BoardQuestion; readonly users: readonly string[] };
export type BadQuestion = {
  readonly kind: "bad";
  readonly error:
    | "not-found"
    | "method-not-allowed"
    | "bad-room"
    | "unknown-window"
    | "unknown-role"
    | "bad-ranking"
    | "bad-limit"
    | "bad-cursor"
    | "bad-around"
    | "bad-user"
    | "bad-body";
  readonly message: string;
};
export type QuestionLimits = { readonly boardShownMax: number };

/** `segments`: the decoded path: `rooms/{room}/leaderboard...`, `leaderboard/people...` or `leaderboard/rooms...`. */
type AskedBoard = {
  readonly tenant: string;
  readonly segments: readonly string[];
  readonly query: Query;
  /** The body of a POST, which names users. Undefined: a GET. */
  readonly body?: Uint8Array;
};

type Query = { get(name: string): string | null; getAll(name: string): string[] };

const AROUND_DEFAULT = 5;
const NO_SUCH_BOARD: BadQuestion = {
  kind: "bad",
  error: "not-found",
  message:
    "no such board. Paths of boards: /v1/rooms/{room}/leaderboard and /v1/leaderboard/people, each also with /members or /members/{user}; /v1/leaderboard/rooms, also with /{room}",
};
const ONLY_READ: BadQuestion = {
  kind: "bad",
  error: "method-not-allowed",
  message: "boards can only be read: POST names users, at /members",
};
const RankedUsers = z.strictObject({ users: z.array(z.string()) });
const BAD_BODY = bad("bad-body", 'send {"users": ["a", "b"]} as JSON');
const BAD_USERS = bad(
  "bad-user",
  `name 1 to ${RANKED_USERS_MAX} users: ?user=a&user=b, or more than a URL holds by POST. ${USER_ID_RULE.replace("a user", "Each user")}`,
);
/** The validity of a window's name depends on no date. */
const ANY_TIME = 0 as UnixMillis;
/** A window by id or kind, and the offset of the next page. */
const CURSOR = /^([A-Za-z0-9-]{1,16})~(\d{1,9})$/;

/**
 * The part of a question that its path names: a board, and the rest of the path. On a board of people the rest is empty,
 * `members` or `members/{user}`. On a board of rooms it is empty or `{room}`, and both `members` and `user` are the room.
 */
type Asked = {
  readonly kind: "asked";
  readonly owner: BoardOwner;
  readonly members: string | undefined;
  readonly user: string | undefined;
};

export function parseQuestion({ tenant, segments, query, body }: AskedBoard, limits: QuestionLimits): HttpBoardQuestion | BadQuestion {
  const asked = segments[0] === "leaderboard" ? parseTenantPath(tenant, segments) : parseRoomPath(tenant, segments);
  if (asked.kind === "bad") return asked;
  const { owner, members, user } = asked;
  const namesUsers = members !== undefined && user === undefined;
  if (body !== undefined && !namesUsers) return ONLY_READ;
  const place = parsePlace(query);
  if (place.kind === "bad") return place;
  const role = parseRole(query.get("role") ?? "everyone");
  if (role === undefined) return bad("unknown-role", "a role is everyone, editors or commenters");
  const rankingText = query.get("ranking") ?? "unique";
  const ranking = RANKINGS.find((known) => known === rankingText);
  if (ranking === undefined) return bad("bad-ranking", `a ranking is ${RANKINGS.join(", ")}`);
  const board: BoardQuestion = { owner, role, window: place.window, ranking };

  if (members === undefined) {
    const page = parsePage(query, place, limits);
    return page.kind === "bad" ? page : { kind: "page", board, page };
  }
  if (user === undefined) {
    const users = body === undefined ? query.getAll("user") : decodeJson(RankedUsers, body)?.users;
    if (users === undefined) return BAD_BODY;
    const areNamed = users.length >= 1 && users.length <= RANKED_USERS_MAX && users.every((name) => parseUserId(name) !== undefined);
    return areNamed ? { kind: "members", board, users } : BAD_USERS;
  }
  const aroundMax = Math.floor(limits.boardShownMax / 2);
  const around = numberIn(query.get("around"), Math.min(AROUND_DEFAULT, aroundMax));
  if (around === undefined || around > aroundMax) return bad("bad-around", `around is 0 to ${aroundMax}`);
  return { kind: "member", board, user, around };
}

function parseRoomPath(tenantText: string, [rooms, roomText, board, ...rest]: readonly string[]): Asked | BadQuestion {
  if (rooms !== "rooms" || board !== "leaderboard") return NO_SUCH_BOARD;
  const room = parseRoomOfTenant(tenantText, roomText ?? "");
  return room === undefined ? bad("bad-room", ROOM_ID_RULE) : parseMembersPath(room, rest);
}

function parseTenantPath(tenantText: string, [, ranking, ...rest]: readonly string[]): Asked | BadQuestion {
  const tenant = parseTenantId(tenantText);
  if (tenant === undefined) return NO_SUCH_BOARD;
  if (ranking === "people") return parseMembersPath(tenantBoard(tenant, "people"), rest);
  const [room, ...more] = rest;
  if (ranking !== "rooms" || more.length > 0) return NO_SUCH_BOARD;
  if (room !== undefined && parseRoomId(room) === undefined) return bad("bad-room", ROOM_ID_RULE);
  return { kind: "asked", owner: tenantBoard(tenant, "rooms"), members: room, user: room };
}

function parseMembersPath(owner: BoardOwner, [members, user, ...more]: readonly string[]): Asked | BadQuestion {
  if (more.length > 0 || (members !== undefined && members !== "members")) return NO_SUCH_BOARD;
  if (user !== undefined && parseUserId(user) === undefined) return bad("bad-user", USER_ID_RULE);
  return { kind: "asked", owner, members, user };
}

/** The window, and the offset of the page in it. */
type Place = { readonly kind: "place"; readonly window: string; readonly offset: number };

function parsePlace(query: Query): Place | BadQuestion {
  const cursor = query.get("cursor");
  const from = cursor === null ? undefined : CURSOR.exec(cursor);
  if (from === null) return bad("bad-cursor", "send the cursor as the page before gave it");
  const window = from?.[1] ?? query.get("window") ?? "all";
  if (parseWindowName(window, ANY_TIME) === undefined) {
    return bad(
      "unknown-window",
      `a window is ${WINDOW_KINDS.join(", ")}, the one before such as last-week, or like 2026-07-01T12, 2026-07-01, 2026-W27, 2026-07, 2026`,
    );
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

function numberIn(text: string | null, fallback: number): number | undefined {
  if (text === null) return fallback;
  return /^\d{1,9}$/.test(text) ? Number(text) : undefined;
}

function bad(error: BadQuestion["error"], message: string): BadQuestion {
  return { kind: "bad", error, message };
}
