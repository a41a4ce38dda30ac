/**
 * HTTP routes for the demo page (a token, bots) and for the operations console (an operator pass). They exist only in a
 * local system that generated its own secret. With a configured secret, every caller could enter the rooms of a
 * deployment.
 */

import { parseRoomId, parseUserId, ROOM_ID_RULE, type UnixMillis, USER_ID_RULE } from "../shared/ids.ts";
import { makeOperatorPass } from "../shared/io/operator-pass.ts";
import { errorAnswer, type HttpAnswer, jsonAnswer } from "../gateway/http/answers.ts";
import type { RouteRequest } from "../gateway/http/requests.ts";
import type { HttpRoute } from "../gateway/http/route-table.ts";
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

/**
 * Returns the setting that disables the demo, or undefined. `given` holds the configured values, before missing secrets
 * are generated.
 */
export function demoObstacle(given: DemoGiven): string | undefined {
  if (!given.demo) return "COROOM_DEMO is off";
  if (given.production) return "COROOM_PRODUCTION is set";
  if (given.jwtSecret !== "") return "COROOM_JWT_SECRET is set";
  if (given.jwksUrl !== "") return "COROOM_JWKS_URL is set";
  if (given.jwksFile !== "") return "COROOM_JWKS_FILE is set";
  if (given.tlsCertFile !== "") return "COROOM_TLS_CERT_FILE is set"; // The bots would not accept a certificate for 127.0.0.1.
  return undefined;
}

/** Answers / with the reason when there is no demo page. */
export function noPageRoute(reason: string): HttpRoute {
  const message = `no page is served here: the demo requires a system with generated secrets, but ${reason}. Editors connect over WebSocket`;
  return { method: "get", path: "/", answer: () => errorAnswer(404, "not-found", message) };
}

export function demoRoutes({
  jwtSecret,
  operatorSecret,
  bots,
}: {
  jwtSecret: string;
  operatorSecret: string;
  bots: Pick<DemoBots, "set">;
}): HttpRoute[] {
  return [
    { method: "post", path: "/demo/operator", answer: forThePage((question) => answerPass(question, operatorSecret)) },
    { method: "get", path: "/demo/token", answer: forThePage((question) => answerToken(question, jwtSecret)) },
    { method: "post", path: "/demo/bots", answer: forThePage((question) => answerBots(question, bots)) },
  ];
}

/**
 * An address, `localhost`, a name without a dot, or a name of the local network. A foreign page can make only a public
 * name of its own resolve to this machine (DNS rebinding), and is then of the same origin for the browser.
 */
const LOCAL_HOST = /^(?:\d{1,3}(?:\.\d{1,3}){3}|\[[0-9a-f:.]+\]|[^.:[\]]+|[^:[\]]+\.local)(?::\d+)?$/i;

function forThePage(answer: HttpRoute["answer"]): HttpRoute["answer"] {
  return (question) => {
    if (!isOfThePage(question))
      return errorAnswer(
        403,
        "not-allowed",
        "only the demo page may call this address. A proxy must pass on the Host header with its port",
      );
    if (!LOCAL_HOST.test(question.header("host")))
      return errorAnswer(403, "not-allowed", "the demo is served under an IP address or a local name: open the page under one of them");
    return answer(question);
  };
}

/**
 * Browsers send Sec-Fetch-Site only to this machine and to https addresses. To other addresses they send the origin of the
 * page, if it is another one or the method is POST.
 */
function isOfThePage({ header }: RouteRequest): boolean {
  const [site, origin, host] = [header("sec-fetch-site"), header("origin"), header("host")];
  if (site !== "") return site === "same-origin" || site === "none";
  return ["", `http://${host}`, `https://${host}`].includes(origin);
}

async function answerToken({ query }: RouteRequest, jwtSecret: string): Promise<HttpAnswer> {
  const room = parseRoomId(query.get("room") ?? "");
  const user = parseUserId(query.get("user") ?? "");
  if (room === undefined || user === undefined)
    return errorAnswer(400, "bad-request", `set ?room= and ?user=: ${ROOM_ID_RULE}; ${USER_ID_RULE}`);
  const rights = query.get("rights") === "read" ? ["read"] : ["read", "write"];
  return jsonAnswer(200, {
    token: await makeToken({ room: [room], user, name: query.get("name") ?? "", rights, tenant: "default", ttl: TTL_SECONDS }, jwtSecret),
  });
}

/**
 * Issues a pass only with a generated secret and only to a browser on this machine. The host header must name this
 * machine, because a foreign page can make its own host name resolve to 127.0.0.1.
 */
function answerPass({ address, header }: RouteRequest, operatorSecret: string): HttpAnswer {
  const isHere = address === undefined && /^(?:127\.0\.0\.1|localhost|\[::1\])(?::\d+)?$/.test(header("host"));
  if (!isHere || operatorSecret === "")
    return errorAnswer(
      403,
      "not-allowed",
      "a local system issues passes to its own machine only. On another machine, create one with coroom ops pass",
    );
  return jsonAnswer(200, { pass: makeOperatorPass(operatorSecret, (Date.now() + PASS_MS) as UnixMillis) });
}

async function answerBots({ query }: RouteRequest, bots: Pick<DemoBots, "set">): Promise<HttpAnswer> {
  const room = parseRoomId(query.get("room") ?? "");
  const count = /^\d{1,3}$/.test(query.get("count") ?? "") ? Number(query.get("count")) : BOTS_MAX + 1;
  if (room === undefined || count > BOTS_MAX)
    return errorAnswer(400, "bad-request", `set ?room= and ?count=; count is at most ${BOTS_MAX}`);
  const there = await bots.set(room, count);
  return there === undefined
    ? errorAnswer(429, "too-many-bots", "Other rooms have too many bots. Remove some of them first.")
    : jsonAnswer(200, { bots: there });
}
