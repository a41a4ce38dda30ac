/**
 * What the demo page asks of the server that serves it: a token for whoever opens it. Local systems only, which
 * made their secret up themselves: where one was given, whoever asks could come into a deployment's rooms.
 */

import { errorAnswer, type HttpRoute, jsonAnswer } from "../gateway/io/http-routes.ts";
import { parseRoomId, parseUserId } from "../shared/ids.ts";
import { makeToken } from "./token.ts";

const TTL_SECONDS = 3600;

/** `given`: the settings as they were given, before what is missing was made up. */
export function servesDemo(given: { readonly demo: boolean; readonly production: boolean; readonly jwtSecret: string; readonly jwksUrl: string; readonly jwksFile: string }): boolean {
  return given.demo && !given.production && given.jwtSecret === "" && given.jwksUrl === "" && given.jwksFile === "";
}

export function demoRoutes({ jwtSecret }: { jwtSecret: string }): HttpRoute[] {
  return [
    {
      method: "get",
      path: "/demo/token",
      answer: async ({ query, header }) => {
        const site = header("sec-fetch-site");
        if (site !== "" && site !== "same-origin" && site !== "none") return errorAnswer(403, "not-allowed", "only the demo page itself gets tokens here");
        const room = parseRoomId(query.get("room") ?? "");
        const user = parseUserId(query.get("user") ?? "");
        if (room === undefined || user === undefined) return errorAnswer(400, "bad-request", "give ?room= and ?user=, each of 1 to 128 characters without control characters");
        const rights = query.get("rights") === "read" ? ["read"] : ["read", "write"];
        return jsonAnswer(200, { token: await makeToken({ room: [room], user, name: query.get("name") ?? "", rights, tenant: "default", ttl: TTL_SECONDS }, jwtSecret) });
      },
    },
  ];
}
