/**
 * A room's boards for clients whose token opens the room, and a tenant's rooms for its administrators: what
 * `leaderboard/openapi.json` describes, passed on as a leaderboard answers it. `me` is the user of the token.
 */

import type { Clock } from "../../shared/clock.ts";
import { parseRoomId, type RoomId, type UserId } from "../../shared/ids.ts";
import { admit, type Identity } from "../sessions/identity.ts";
import type { GatewayMetrics } from "../metrics.ts";
import { type Rate, ReaderRates } from "../limits/reader-rates.ts";
import { askServices, decodeParameter, identify } from "./ask-services.ts";
import { errorAnswer, type HttpAnswer, type HttpQuestion, type HttpRoute, jsonAnswer } from "./http-routes.ts";
import type { HttpTokens } from "./http-tokens.ts";
import type { Services } from "./nats-services.ts";

export type BoardRouteOptions = { readonly internalSecret: string; readonly boardReads: Rate; readonly readersMax: number };

const NO_LEADERBOARD = jsonAnswer(
  503,
  { error: "no-leaderboard", message: "no leaderboard answers right now: the boards are behind, ask again in a moment" },
  { "retry-after": "5" },
);
const TOO_FAST = jsonAnswer(
  429,
  { error: "rate-limited", message: "too many questions about boards: ask less often, or subscribe to the board" },
  { "retry-after": "1" },
);

const NOT_ADMIN = errorAnswer(
  403,
  "not-allowed",
  "which rooms are busiest is for administrators: ask for a token whose claim `rights` has `admin`",
);

type Place = (parameters: readonly string[], user: UserId) => string;

export function boardRoutes(
  tokens: HttpTokens,
  leaderboards: Services,
  options: BoardRouteOptions,
  { clock, metrics }: { clock: Clock; metrics: GatewayMetrics },
): HttpRoute[] {
  const rates = new ReaderRates(options.boardReads, options.readersMax);

  const counted =
    (answerTo: (question: HttpQuestion) => Promise<HttpAnswer>) =>
    async (question: HttpQuestion): Promise<HttpAnswer> => {
      const answer = await answerTo(question);
      metrics.boardReads.inc({ status: String(answer.status) });
      return answer;
    };

  /** Whoever may ask just now, or what they get instead. */
  const asker = async (question: HttpQuestion): Promise<Identity | HttpAnswer> => {
    const identity = await identify(question, tokens);
    return "status" in identity || rates.take(`${identity.tenant} ${identity.user}`, clock.now()) ? identity : TOO_FAST;
  };

  const askOfTenant = async (question: HttpQuestion): Promise<HttpAnswer> => {
    const identity = await asker(question);
    if ("status" in identity) return identity;
    if (!identity.rights.admin) return NOT_ADMIN;
    const [room] = question.parameters;
    const path = `/v1/leaderboard/rooms${room === undefined ? "" : `/${encodedAnew(room)}`}${passedOn(question.query)}`;
    return (await askServices(leaderboards, { path, tenant: identity.tenant }, question, options)) ?? NO_LEADERBOARD;
  };

  const ask = async (question: HttpQuestion, place: Place): Promise<HttpAnswer> => {
    const identity = await asker(question);
    if ("status" in identity) return identity;
    const room = parseRoomId(decodeParameter(question.parameters[0] ?? ""));
    if (room === undefined) return errorAnswer(400, "bad-room", "a room is 1 to 128 characters without control characters");
    const admission = admit(identity, room);
    if (admission.kind === "refused") return errorAnswer(403, "not-allowed", admission.why);
    const path = pathOf(room, place(question.parameters.slice(1), identity.user), question.query);
    return (await askServices(leaderboards, { path, tenant: identity.tenant }, question, options)) ?? NO_LEADERBOARD;
  };

  const routes: Readonly<Record<string, Place>> = {
    "": () => "",
    "/me": (_, user) => `/members/${encodeURIComponent(user)}`,
    "/members": () => "/members",
    "/members/:user": ([user = ""]) => `/members/${encodedAnew(user)}`,
  };
  const ofRooms = Object.entries(routes).map(([rest, place]): HttpRoute => ({
    method: "get",
    path: `/v1/rooms/:room/leaderboard${rest}`,
    answer: counted((question) => ask(question, place)),
  }));
  const ofTenant = ["", "/:room"].map((rest): HttpRoute => ({
    method: "get",
    path: `/v1/leaderboard/rooms${rest}`,
    answer: counted(askOfTenant),
  }));
  return [...ofRooms, ...ofTenant];
}

function pathOf(room: RoomId, place: string, query: URLSearchParams): string {
  return `/v1/rooms/${encodeURIComponent(room)}/leaderboard${place}${passedOn(query)}`;
}

/** As it came it may hold more than a name: an address reads `\` as `/`. */
function encodedAnew(parameter: string): string {
  return encodeURIComponent(decodeParameter(parameter));
}

/** The token stays here. */
function passedOn(query: URLSearchParams): string {
  const passed = new URLSearchParams([...query].filter(([name]) => name !== "token"));
  return passed.size === 0 ? "" : `?${passed}`;
}
