/** What the demo page asks of the server that serves it: a token for whoever opens it. Local systems only. */

import { errorAnswer, type HttpRoute, jsonAnswer } from "../gateway/io/http-routes.ts";
import { parseRoomId, parseUserId } from "../shared/ids.ts";
import { makeToken } from "./token.ts";

const TTL_SECONDS = 3600;

export function demoRoutes({ jwtSecret }: { jwtSecret: string }): HttpRoute[] {
  return [
    {
      method: "get",
      path: "/demo/token",
      answer: async ({ query }) => {
        const room = parseRoomId(query.get("room") ?? "");
        const user = parseUserId(query.get("user") ?? "");
        if (room === undefined || user === undefined) return errorAnswer(400, "bad-request", "give ?room= and ?user=, each of 1 to 128 characters without control characters");
        const rights = query.get("rights") === "read" ? ["read"] : ["read", "write"];
        return jsonAnswer(200, { token: await makeToken({ room: [room], user, name: query.get("name") ?? "", rights, tenant: "default", ttl: TTL_SECONDS }, jwtSecret) });
      },
    },
  ];
}
