/**
 * The boards over HTTP, for gateways only: a gateway checks its client's token and then shows the secret that
 * the tiers share. What may be asked is in `leaderboard/openapi.json`.
 *
 *   GET /v1/rooms/{room}/leaderboard..., /v1/leaderboard/rooms...    x-coroom-internal: <secret>    x-coroom-tenant: <tenant>
 */

import { createHash, timingSafeEqual } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

import type { RoomKey } from "../../shared/ids.ts";
import type { Log } from "../../shared/log.ts";
import { unlessMistake } from "../../shared/pause.ts";
import type { LeaderboardMetrics } from "../metrics.ts";
import { type BadQuestion, cursorOf, parseQuestion, type Question, type QuestionLimits, type TenantQuestion } from "../questions.ts";
import type { NamesHost } from "../names-host.ts";
import type { Ranked } from "../ranking.ts";
import type { RoomAnswer, RoomsAnswer, TenantReader } from "../tenant-reads-host.ts";
import type { BoardReader, MemberAnswer, MembersAnswer, PageAnswer, Refusal } from "../reads-host.ts";

export type HttpOptions = QuestionLimits & { readonly boardsHost: string; readonly boardsPort: number; readonly internalSecret: string };
type Answer = { readonly status: number; readonly name: string; readonly body: unknown };

const DRAIN_MS_MAX = 2_000;
const RETRY_AFTER_SECONDS = 1;
const BAD_STATUS: Readonly<Partial<Record<BadQuestion["error"], number>>> = { "not-found": 404 };
const REFUSALS: Readonly<Record<Refusal["kind"], { status: number; message: string }>> = {
  "unknown-room": { status: 404, message: "nothing was ever counted in this room" },
  "unknown-window": { status: 404, message: "nothing was counted in this window, or it is longer ago than the archive reaches" },
  "unknown-role": { status: 404, message: "this role has no board of its own here" },
  "too-deep": { status: 400, message: "so far down members are in no order: ask for one member instead" },
  "not-ranked": { status: 404, message: "without points in this window" },
  rebuilding: { status: 503, message: "the boards are being counted anew: ask again" },
};

export async function serveHttp({ reader, names, tenants }: { reader: BoardReader; names: NamesHost; tenants: TenantReader }, options: HttpOptions, { log, metrics }: { log: Log; metrics: LeaderboardMetrics }): Promise<{ port: number; stop(): Promise<void> }> {
  const mayAsk = secretCheck(options.internalSecret);

  const answer = async (request: IncomingMessage): Promise<Answer> => {
    if (!mayAsk(request.headers["x-coroom-internal"])) return refused(401, "unauthorized", "only gateways ask here: send x-coroom-internal");
    if (request.method !== "GET") return refused(405, "method-not-allowed", "boards can only be read");
    const url = new URL(request.url ?? "", "http://boards");
    const question = parseQuestion(String(request.headers["x-coroom-tenant"] ?? ""), segmentsOf(url.pathname), url.searchParams, options);
    if (question.kind === "bad") return refused(BAD_STATUS[question.error] ?? 400, question.error, question.message);
    try {
      if (question.kind === "rooms" || question.kind === "room") return roomsBody(await askTenant(tenants, question));
      return await named(await ask(reader, question), question.board.room, names);
    } catch (cause) {
      unlessMistake(cause);
      log.debug({ cause }, "a board could not be read");
      return refused(503, "unavailable", "the boards are out of reach: ask again");
    }
  };

  const server = createServer((request, response) => {
    answer(request).then(
      (given) => send(response, given, metrics),
      (error: unknown) => {
        response.destroy(); // The asker asks again; the mistake is the process's.
        throw error;
      },
    );
  });
  await listen(server, options);
  return {
    port: (server.address() as AddressInfo).port,
    stop: () =>
      new Promise((resolve) => {
        const force = setTimeout(() => server.closeAllConnections(), DRAIN_MS_MAX);
        server.close(() => {
          clearTimeout(force);
          resolve();
        });
        server.closeIdleConnections();
      }),
  };
}

function askTenant(tenants: TenantReader, question: TenantQuestion): Promise<RoomsAnswer | RoomAnswer | Refusal> {
  return question.kind === "rooms" ? tenants.page(question.tenant, question.window, question.page) : tenants.room(question.room, question.window);
}

function roomsBody(answer: RoomsAnswer | RoomAnswer | Refusal): Answer {
  switch (answer.kind) {
    case "rooms": {
      const { about, ranking, nextOffset } = answer;
      return { status: 200, name: "rooms", body: { ...about, ranking, ...(nextOffset === undefined ? {} : { cursor: cursorOf(about.window.id, nextOffset) }) } };
    }
    case "room":
      return { status: 200, name: "room", body: { ...answer.about, own: answer.own } };
    default:
      return refusal(answer);
  }
}

function ask(reader: BoardReader, question: Exclude<Question, TenantQuestion>): Promise<PageAnswer | MemberAnswer | MembersAnswer | Refusal> {
  switch (question.kind) {
    case "page":
      return reader.page(question.board, question.page);
    case "member":
      return reader.member(question.board, question.user, question.around);
    case "members":
      return reader.members(question.board, question.users);
  }
}

async function named(answer: PageAnswer | MemberAnswer | MembersAnswer | Refusal, room: RoomKey, names: NamesHost): Promise<Answer> {
  const shown = answer.kind === "member" ? answer.neighbours : answer.kind === "page" || answer.kind === "members" ? answer.ranking : [];
  const known = await names.of(room, shown.map(({ user }) => user));
  return bodyOf(answer, (ranked) => ranked.map((place) => ({ ...place, name: known.get(place.user) ?? "" })));
}

function bodyOf(answer: PageAnswer | MemberAnswer | MembersAnswer | Refusal, withNames: (ranked: readonly Ranked[]) => readonly object[]): Answer {
  switch (answer.kind) {
    case "page": {
      const { about, ranking, nextOffset } = answer;
      return { status: 200, name: "page", body: { ...about, ranking: withNames(ranking), ...(nextOffset === undefined ? {} : { cursor: cursorOf(about.window.id, nextOffset) }) } };
    }
    case "member":
      return { status: 200, name: "member", body: { ...answer.about, own: answer.own, neighbours: withNames(answer.neighbours) } };
    case "members":
      return { status: 200, name: "members", body: { ...answer.about, ranking: withNames(answer.ranking) } };
    default:
      return refusal(answer);
  }
}

function refusal({ kind }: Refusal): Answer {
  const { status, message } = REFUSALS[kind];
  return refused(status, kind, message);
}

function refused(status: number, error: string, message: string): Answer {
  return { status, name: error, body: { error, message } };
}

function send(response: ServerResponse, { status, name, body }: Answer, metrics: LeaderboardMetrics): void {
  metrics.reads.inc({ answer: name });
  response.writeHead(status, { "content-type": "application/json", "cache-control": "no-cache", ...(status === 503 ? { "retry-after": String(RETRY_AFTER_SECONDS) } : {}) });
  response.end(JSON.stringify(body));
}

/** What comes after `/v1`. A broken escape is a path that is not there. */
function segmentsOf(pathname: string): string[] {
  const [empty, version, ...segments] = pathname.split("/");
  if (empty !== "" || version !== "v1") return [];
  try {
    return segments.map(decodeURIComponent);
  } catch (error) {
    if (error instanceof URIError) return [];
    throw error;
  }
}

/** Compares digests, so that the time taken tells nothing of the secret. */
function secretCheck(secret: string): (given: string | string[] | undefined) => boolean {
  const digest = (text: string) => createHash("sha256").update(text).digest();
  const expected = digest(secret);
  return (given) => typeof given === "string" && timingSafeEqual(digest(given), expected);
}

function listen(server: Server, { boardsHost, boardsPort }: HttpOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", (cause) => reject(new Error(`the leaderboard cannot listen on ${boardsHost}:${boardsPort}: set COROOM_BOARDS_PORT to a free port, or 0`, { cause })));
    server.listen(boardsPort, boardsHost, resolve);
  });
}
