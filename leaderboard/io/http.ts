/**
 * The boards over HTTP, for gateways only: a gateway checks its client's token and then sends the secret that the tiers
 * share. `leaderboard/openapi.json` describes the requests.
 *
 *   GET /v1/rooms/{room}/leaderboard..., /v1/leaderboard/people..., /v1/leaderboard/rooms...    x-coroom-internal: <secret>    x-coroom-tenant: <tenant>
 *   POST .../members    {"users": ["a", "b"]}
 *
 * Pages of a tenant's boards have an ETag and a max-age, because many clients poll them (ADR 73).
 */

import { createHash } from "node:crypto";

import type { Registry } from "prom-client";

import { type InternalResponse, type InternalRequest, jsonResponse, refusal, serveInternal } from "../../shared/io/internal-http.ts";
import type { InternalTls } from "../../shared/io/internal-tls.ts";
import type { Log } from "../../shared/process/log.ts";
import { RANKED_USERS_BYTES_MAX } from "../../shared/settings/board-settings.ts";
import { rethrowMistake } from "../../shared/time/pause.ts";
import type { LeaderboardMetrics } from "../metrics.ts";
import { type BadQuestion, cursorOf, parseQuestion, type HttpBoardQuestion, type QuestionLimits } from "../reading/questions.ts";
import type { BoardReader, NamesHost } from "../reading/reads-host.ts";
import type { Ranked } from "../boards/board.ts";
import { type BoardOwner, isTenantBoard, tenantBoard, tenantOfBoard } from "../boards/keys.ts";
import type { BoardQuestion, BoardRefusal, MemberAnswer, MembersAnswer, PageAnswer } from "../reading/board-answers.ts";

type BoardHttpOptions = QuestionLimits & {
  readonly boardsHost: string;
  readonly boardsPort: number;
  readonly boardTotalsMs: number;
  readonly internalSecret: string;
  readonly metricsSecret: string;
  readonly tls: InternalTls | undefined;
};

type BoardAnswer = PageAnswer | MemberAnswer | MembersAnswer | BoardRefusal;

/** 96 bits. */
const ETAG_LENGTH = 16;
/** An archived window does not change, but `last-week` becomes the name of the next one. */
const ARCHIVED_SECONDS = 300;
const BAD_STATUS: Readonly<Partial<Record<BadQuestion["error"], number>>> = { "not-found": 404, "method-not-allowed": 405 };
const TOO_LARGE = refusal(413, "too-large", `a body may have at most ${RANKED_USERS_BYTES_MAX} bytes`);
const REFUSALS: Readonly<Record<BoardRefusal["kind"], { status: number; message: string }>> = {
  "unknown-room": { status: 404, message: "nothing was counted in this room yet: check its name, or ask again after its first edit" },
  "unknown-window": {
    status: 404,
    message:
      "nothing was counted in this window, COROOM_BOARD_WINDOWS does not name it, or the archive does not reach back to it: ask for a later or longer window, or for `all`",
  },
  "unknown-role": {
    status: 404,
    message: "rooms have no board for this role: ask for role=everyone, or add the role to COROOM_BOARD_ROLES",
  },
  "too-deep": { status: 400, message: "the board has no order this far down: ask for a single member instead" },
  "not-ranked": {
    status: 404,
    message: "the user or room has no points in this window: ask for a longer window, such as `all`, or again after its next activity",
  },
  "beyond-archive": {
    status: 404,
    message:
      "the archive of this window keeps only the first places, and this one is not among them: raise COROOM_BOARD_ARCHIVED_MAX for later windows",
  },
  "rebuilding": { status: 503, message: "the boards are being counted again: repeat the request in a moment" },
};

export function serveHttp(
  { reader, names }: { reader: BoardReader; names: NamesHost },
  options: BoardHttpOptions,
  { log, metrics, registry }: { log: Log; metrics: LeaderboardMetrics; registry: Registry },
): Promise<{ port: number; stop(): Promise<void> }> {
  const answer = async ({ method, tenant, segments, query, body: read }: InternalRequest): Promise<InternalResponse> => {
    if (method !== "GET" && method !== "POST") return refusal(405, "method-not-allowed", "boards can only be read");
    const body = method === "POST" ? await read() : undefined;
    if (method === "POST" && body === undefined) return TOO_LARGE;
    const question = parseQuestion({ tenant, segments, query, ...(body === undefined ? {} : { body }) }, options);
    if (question.kind === "bad") return refusal(BAD_STATUS[question.error] ?? 400, question.error, question.message);
    try {
      const found = await ask(reader, question);
      const { owner } = question.board;
      const given = isBoardOfRooms(owner) ? roomsBody(found, () => countPeople(reader, question.board)) : named(found, owner, names);
      return found.kind === "page" && isTenantBoard(owner) ? polled(await given, found, options) : await given;
    } catch (cause) {
      rethrowMistake(cause);
      log.debug({ cause }, "a board could not be read");
      return refusal(503, "unavailable", "the boards are out of reach: ask again");
    }
  };
  const { boardsHost, boardsPort, internalSecret, metricsSecret, tls } = options;
  const listening = {
    host: boardsHost,
    port: boardsPort,
    secret: internalSecret,
    metricsSecret,
    tls,
    bodyBytesMax: RANKED_USERS_BYTES_MAX,
    tier: "leaderboard",
    portSetting: "COROOM_BOARDS_PORT",
    registry,
    log,
  };
  return serveInternal(listening, answer, (name) => metrics.reads.inc({ answer: name }));
}

/**
 * Lets clients poll the page. Half the interval of the totals as max-age: a board is at most half an interval older than
 * its scores. The ETag is weak, because pages that differ only in `asOf` have the same one.
 */
function polled(
  page: InternalResponse,
  { about }: PageAnswer,
  { boardTotalsMs }: Pick<BoardHttpOptions, "boardTotalsMs">,
): InternalResponse {
  const { asOf: _, ...compared } = JSON.parse(String(page.body)) as Record<string, unknown>;
  const digest = createHash("sha256").update(JSON.stringify(compared)).digest("base64url").slice(0, ETAG_LENGTH);
  const seconds = about.isArchived ? ARCHIVED_SECONDS : Math.max(1, Math.round(boardTotalsMs / 2_000));
  const headers = { "etag": `W/"${digest}"`, "cache-control": `private, max-age=${seconds}`, "vary": "authorization" };
  return { ...page, headers: { ...page.headers, ...headers } };
}

function isBoardOfRooms(owner: BoardOwner): boolean {
  return owner === tenantBoard(tenantOfBoard(owner), "rooms");
}

/** Number of people with points in the window; 0 if they are not known. */
async function countPeople(reader: BoardReader, board: BoardQuestion): Promise<number> {
  const people = { ...board, owner: tenantBoard(tenantOfBoard(board.owner), "people") };
  const answer = await reader.members(people, []);
  return answer.kind === "members" ? answer.about.members : 0;
}

async function roomsBody(answer: BoardAnswer, people: () => Promise<number>): Promise<InternalResponse> {
  if (answer.kind === "members") throw new Error("no question asks for several rooms by name");
  if (answer.kind !== "page" && answer.kind !== "member") return refused(answer);
  const { members: rooms, ...rest } = answer.about;
  const about = { ...rest, rooms, people: await people() };
  if (answer.kind === "page") return jsonResponse(200, "rooms", { ...about, ranking: answer.ranking.map(roomIn), ...cursorIn(answer) });
  const { user: room, score: points, ...own } = answer.own;
  return jsonResponse(200, "room", { ...about, own: { room, points, ...own }, neighbours: answer.neighbours.map(roomIn) });
}

function roomIn({ rank, user: room, score: points }: Ranked): object {
  return { rank, room, points };
}

function cursorIn({ about, nextOffset }: PageAnswer): { readonly cursor?: string } {
  return nextOffset === undefined ? {} : { cursor: cursorOf(about.window.id, nextOffset) };
}

function ask(reader: BoardReader, question: HttpBoardQuestion): Promise<BoardAnswer> {
  switch (question.kind) {
    case "page":
      return reader.page(question.board, question.page);
    case "member":
      return reader.member(question.board, question.user, question.around);
    case "members":
      return reader.members(question.board, question.users);
  }
}

function shownIn(answer: BoardAnswer): readonly Ranked[] {
  switch (answer.kind) {
    case "member":
      return answer.neighbours;
    case "page":
    case "members":
      return answer.ranking;
    default:
      return []; // An error answer.
  }
}

async function named(answer: BoardAnswer, owner: BoardOwner, names: NamesHost): Promise<InternalResponse> {
  const users = shownIn(answer).map(({ user }) => user);
  const known = await names.namesOf(owner, users);
  return bodyOf(answer, (ranked) => ranked.map((place) => ({ ...place, name: known.get(place.user) ?? "" })));
}

function bodyOf(answer: BoardAnswer, withNames: (ranked: readonly Ranked[]) => readonly object[]): InternalResponse {
  switch (answer.kind) {
    case "page":
      return jsonResponse(200, "page", { ...answer.about, ranking: withNames(answer.ranking), ...cursorIn(answer) });
    case "member":
      return jsonResponse(200, "member", { ...answer.about, own: answer.own, neighbours: withNames(answer.neighbours) });
    case "members":
      return jsonResponse(200, "members", { ...answer.about, ranking: withNames(answer.ranking) });
    default:
      return refused(answer);
  }
}

function refused({ kind }: BoardRefusal): InternalResponse {
  const { status, message } = REFUSALS[kind];
  return refusal(status, kind, message);
}
