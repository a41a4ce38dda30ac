/**
 * What the demo page asks of the server that serves it: a token for whoever opens it, and bots; and what the operations
 * console asks, a pass for whoever sits at the machine. Local systems only, which
 * made their secret up themselves: where one was given, whoever asks could come into a deployment's rooms.
 */

import { errorAnswer, type HttpAnswer, type HttpQuestion, type HttpRoute, jsonAnswer } from "../gateway/io/http-routes.ts";
import { parseRoomId, parseUserId, type UnixMillis } from "../shared/ids.ts";
import { makeOperatorPass } from "../shared/io/operator-pass.ts";
import { BOTS_MAX, type DemoBots } from "./demo-bots.ts";
import { makeToken } from "./token.ts";

const TTL_SECONDS = 3600;
const PASS_MS = 8 * 3_600_000;

type DemoGiven = {
  readonly demo: boolean;
  readonly production: boolean;
  readonly jwtSecret: string;
  readonly jwksUrl: string;
  readonly jwksFile: string;
  readonly tlsCertFile: string;
};

/** The setting for which there is no demo, or undefined. `given`: as they were given, before what is missing was made up. */
export function noDemoFor(given: DemoGiven): string | undefined {
  if (!given.demo) return "COROOM_DEMO is off";
  if (given.production) return "COROOM_PRODUCTION is set";
  if (given.jwtSecret !== "") return "COROOM_JWT_SECRET is set";
  if (given.jwksUrl !== "") return "COROOM_JWKS_URL is set";
  if (given.jwksFile !== "") return "COROOM_JWKS_FILE is set";
  if (given.tlsCertFile !== "") return "COROOM_TLS_CERT_FILE is set"; // Its bots would not believe a certificate for 127.0.0.1.
  return undefined;
}

/** What stands where the demo's page would, for whoever opens that address in a browser. */
export function noPageRoute(reason: string): HttpRoute {
  const message = `no page is served here: the demo needs a system that makes up its own secrets, and ${reason}. Editors come over WebSocket`;
  return { method: "get", path: "/", answer: async () => errorAnswer(404, "not-found", message) };
}

export function demoRoutes({
  jwtSecret,
  internalSecret,
  bots,
}: {
  jwtSecret: string;
  internalSecret: string;
  bots: Pick<DemoBots, "set">;
}): HttpRoute[] {
  return [
    { method: "post", path: "/demo/operator", answer: forThePage(async (question) => answerPass(question, internalSecret)) },
    { method: "get", path: "/demo/token", answer: forThePage((question) => answerToken(question, jwtSecret)) },
    { method: "post", path: "/demo/bots", answer: forThePage((question) => answerBots(question, bots)) },
  ];
}

function forThePage(answer: (question: HttpQuestion) => Promise<HttpAnswer>): HttpRoute["answer"] {
  return (question) => {
    const site = question.header("sec-fetch-site");
    return site === "" || site === "same-origin" || site === "none"
      ? answer(question)
      : errorAnswer(403, "not-allowed", "only the demo page itself is answered here");
  };
}

async function answerToken({ query }: HttpQuestion, jwtSecret: string): Promise<HttpAnswer> {
  const room = parseRoomId(query.get("room") ?? "");
  const user = parseUserId(query.get("user") ?? "");
  if (room === undefined || user === undefined)
    return errorAnswer(400, "bad-request", "give ?room= and ?user=, each of 1 to 128 characters without control characters");
  const rights = query.get("rights") === "read" ? ["read"] : ["read", "write"];
  return jsonAnswer(200, {
    token: await makeToken({ room: [room], user, name: query.get("name") ?? "", rights, tenant: "default", ttl: TTL_SECONDS }, jwtSecret),
  });
}

/** Not for a secret that was given, and only to this machine, under a name of its own: a page of elsewhere may have its name lead here. */
function answerPass({ address, header }: HttpQuestion, internalSecret: string): HttpAnswer {
  const isHere = address === undefined && /^(?:127\.0\.0\.1|localhost|\[::1\])(?::\d+)?$/.test(header("host"));
  if (!isHere || internalSecret === "")
    return errorAnswer(
      403,
      "not-allowed",
      "a local system hands a pass out to its own machine only: elsewhere take one from coroom ops pass",
    );
  return jsonAnswer(200, { pass: makeOperatorPass(internalSecret, (Date.now() + PASS_MS) as UnixMillis) });
}

async function answerBots({ query }: HttpQuestion, bots: Pick<DemoBots, "set">): Promise<HttpAnswer> {
  const room = parseRoomId(query.get("room") ?? "");
  const count = /^\d{1,3}$/.test(query.get("count") ?? "") ? Number(query.get("count")) : BOTS_MAX + 1;
  if (room === undefined || count > BOTS_MAX) return errorAnswer(400, "bad-request", `give ?room= and ?count=, of at most ${BOTS_MAX}`);
  const there = await bots.set(room, count);
  return there === undefined
    ? errorAnswer(429, "too-many-bots", "Other rooms have too many bots already: send some of them home first.")
    : jsonAnswer(200, { bots: there });
}
