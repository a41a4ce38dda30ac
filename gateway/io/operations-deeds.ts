/** What operators have done from the operations console: a room moved, a server or a gateway drained. */

import { z } from "zod";

import { assertNever } from "../../shared/assert.ts";
import type { ServerId } from "../../shared/ids.ts";
import type { Fleet, OpenRooms } from "../ports.ts";
import { type AuthorizedAnswer, placeOf, readBody } from "./authority.ts";
import { errorAnswer, type HttpAnswer, jsonAnswer } from "./http-routes.ts";
import { NOT_OPEN } from "./operations-questions.ts";

const Move = z.strictObject({
  tenant: z.string().optional(),
  room: z.string(),
  to: z.string().regex(/^[A-Za-z0-9_-]{1,64}$/, "a room server, as GET /v1/admin/fleet names it"),
});
const Drain = z.strictObject({
  server: z.string().regex(/^[A-Za-z0-9_-]{1,64}$/, "a room server or gateway, as GET /v1/admin/fleet names it"),
});

type DeedPorts = { readonly fleet: Fleet; readonly openRooms: OpenRooms };

export function moveRoom({ fleet, openRooms }: DeedPorts): AuthorizedAnswer {
  return async (question) => {
    const asked = readBody(question, Move);
    if ("status" in asked) return asked;
    const place = placeOf(asked, undefined, "act");
    if ("status" in place) return place;
    const to = asked.to as ServerId;
    if (!fleet.servers().some(({ server }) => server === to)) return noServer(to);
    const outcome = await openRooms.move(place.room!, to);
    switch (outcome.kind) {
      case "moved":
        return jsonAnswer(200, { from: outcome.from, to });
      case "open-nowhere":
        return NOT_OPEN;
      case "refused":
        return errorAnswer(409, "refused", outcome.reason);
      case "silent":
        return errorAnswer(
          503,
          "unavailable",
          `${outcome.server}, which has the room, does not answer: look whether it lives, and ask again`,
        );
      default:
        return assertNever(outcome);
    }
  };
}

export function drainServer({ fleet }: DeedPorts): AuthorizedAnswer {
  return async (question) => {
    const asked = readBody(question, Drain);
    if ("status" in asked) return asked;
    const heard = fleet.servers().find(({ server }) => server === asked.server);
    if (heard === undefined) return noServer(asked.server);
    const reply = await fleet.drainServer(heard.server);
    if (reply === undefined)
      return errorAnswer(503, "unavailable", `${asked.server} does not answer: look whether it lives, and ask again`);
    return reply.kind === "done"
      ? jsonAnswer(202, { server: asked.server, rooms: heard.rooms })
      : errorAnswer(409, "refused", reply.reason);
  };
}

export function drainGateway({ fleet }: DeedPorts): AuthorizedAnswer {
  return async (question) => {
    const asked = readBody(question, Drain);
    if ("status" in asked) return asked;
    const account = await fleet.drainGateway(asked.server);
    return account === undefined ? noServer(asked.server) : jsonAnswer(202, { server: asked.server, connections: account.connections });
  };
}

function noServer(server: string): HttpAnswer {
  return errorAnswer(404, "no-such-server", `${server} is not heard: GET /v1/admin/fleet names those that are`);
}
