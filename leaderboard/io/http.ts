/**
 * The boards over HTTP, for gateways only: a gateway checks its client's token and then sends the secret that the tiers
 * share. `leaderboard/openapi.json` describes the requests.
 *
 *   GET /v1/rooms/{room}/leaderboard..., /v1/leaderboard/rooms...    x-coroom-internal: <secret>    x-coroom-tenant: <tenant>
 */

import type { Registry } from "prom-client";

import type { RoomKey } from "../../shared/ids.ts";
import { type InternalResponse, type InternalRequest, jsonResponse, refusal, serveInternal } from "../../shared/io/internal-http.ts";
import type { InternalTls } from "../../shared/io/internal-tls.ts";
import type { Log } from "../../shared/process/log.ts";
import { rethrowMistake } from "../../shared/time/pause.ts";
import type { LeaderboardMetrics } from "../metrics.ts";
import {
  type BadQuestion,
  cursorOf,
  parseQuestion,
  type HttpBoardQuestion,
  type QuestionLimits,
  type TenantQuestion,
} from "../reading/questions.ts";
import type { BoardReader, NamesHost, TenantReader } from "../reading/reads-host.ts";
import type { Ranked } from "../boards/board.ts";
import type { MemberAnswer, MembersAnswer, PageAnswer, BoardRefusal } from "../reading/board-answers.ts";
import type { RoomAnswer, RoomsAnswer } from "../reading/tenant-answers.ts";

export type BoardHttpOptions = QuestionLimits & {
  readonly boardsHost: string;
  readonly boardsPort: number;
  readonly internalSecret: string;
  readonly metricsSecret: string;
  readonly tls: InternalTls | undefined;
};

const NO_BODY = 0;
const BAD_STATUS: Readonly<Partial<Record<BadQuestion["error"], number>>> = { "not-found": 404 };
const REFUSALS: Readonly<Record<BoardRefusal["kind"], { status: number; message: string }>> = {
  "unknown-room": { status: 404, message: "nothing was counted in this room yet: check its name, or ask again after its first edit" },
  "unknown-window": {
    status: 404,
    message: "nothing was counted in this window, or the archive does not reach back to it: ask for a later window, or for `all`",
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
  { reader, names, tenants }: { reader: BoardReader; names: NamesHost; tenants: TenantReader },
  options: BoardHttpOptions,
  { log, metrics, registry }: { log: Log; metrics: LeaderboardMetrics; registry: Registry },
): Promise<{ port: number; stop(): Promise<void> }> {
  const answer = async ({ method, tenant, segments, query }: InternalRequest): Promise<InternalResponse> => {
    if (method !== "GET") return refusal(405, "method-not-allowed", "boards can only be read");
    const question = parseQuestion(tenant, segments, query, options);
    if (question.kind === "bad") return refusal(BAD_STATUS[question.error] ?? 400, question.error, question.message);
    try {
      if (question.kind === "rooms" || question.kind === "room") return roomsBody(await askTenant(tenants, question));
      return await named(await ask(reader, question), question.board.room, names);
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
    bodyBytesMax: NO_BODY,
    tier: "leaderboard",
    portSetting: "COROOM_BOARDS_PORT",
    registry,
    log,
  };
  return serveInternal(listening, answer, (name) => metrics.reads.inc({ answer: name }));
}

function askTenant(tenants: TenantReader, question: TenantQuestion): Promise<RoomsAnswer | RoomAnswer | BoardRefusal> {
  return question.kind === "rooms"
    ? tenants.page(question.tenant, question.window, question.page)
    : tenants.room(question.room, question.window);
}

function roomsBody(answer: RoomsAnswer | RoomAnswer | BoardRefusal): InternalResponse {
  switch (answer.kind) {
    case "rooms": {
      const { about, ranking, nextOffset } = answer;
      return jsonResponse(200, "rooms", {
        ...about,
        ranking,
        ...(nextOffset === undefined ? {} : { cursor: cursorOf(about.window.id, nextOffset) }),
      });
    }
    case "room":
      return jsonResponse(200, "room", { ...answer.about, own: answer.own });
    default:
      return refused(answer);
  }
}

function ask(
  reader: BoardReader,
  question: Exclude<HttpBoardQuestion, TenantQuestion>,
): Promise<PageAnswer | MemberAnswer | MembersAnswer | BoardRefusal> {
  switch (question.kind) {
    case "page":
      return reader.page(question.board, question.page);
    case "member":
      return reader.member(question.board, question.user, question.around);
    case "members":
      return reader.members(question.board, question.users);
  }
}

function shownIn(answer: PageAnswer | MemberAnswer | MembersAnswer | BoardRefusal): readonly Ranked[] {
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

async function named(
  answer: PageAnswer | MemberAnswer | MembersAnswer | BoardRefusal,
  room: RoomKey,
  names: NamesHost,
): Promise<InternalResponse> {
  const users = shownIn(answer).map(({ user }) => user);
  const known = await names.namesOf(room, users);
  return bodyOf(answer, (ranked) => ranked.map((place) => ({ ...place, name: known.get(place.user) ?? "" })));
}

function bodyOf(
  answer: PageAnswer | MemberAnswer | MembersAnswer | BoardRefusal,
  withNames: (ranked: readonly Ranked[]) => readonly object[],
): InternalResponse {
  switch (answer.kind) {
    case "page": {
      const { about, ranking, nextOffset } = answer;
      return jsonResponse(200, "page", {
        ...about,
        ranking: withNames(ranking),
        ...(nextOffset === undefined ? {} : { cursor: cursorOf(about.window.id, nextOffset) }),
      });
    }
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
