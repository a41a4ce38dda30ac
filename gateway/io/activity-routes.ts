/**
 * What an application's backend tells of: comments, reviews, whatever its kinds are. It counts for the boards alone,
 * and only from a token with the right `award`, so that no client moves a score.
 *
 *   POST /v1/rooms/{room}/activities    { "id": "…", "activities": [{ "user": "ann", "kind": "comment", "times": 1 }] }
 */

import { z } from "zod";

import { because } from "../limits/because.ts";
import { ACTIVITY_USERS_MAX, Deed } from "../../shared/bus/activity.ts";
import type { Clock } from "../../shared/clock.ts";
import { decodeJson } from "../../shared/bus/json-messages.ts";
import { parseRoomId, roomKey } from "../../shared/ids.ts";
import { opens } from "../sessions/identity.ts";
import type { GatewayMetrics } from "../metrics.ts";
import type { Activities, Told } from "../ports.ts";
import { type Rate, ReaderRates } from "../limits/reader-rates.ts";
import { decodeParameter, identify } from "./ask-services.ts";
import { errorAnswer, type HttpAnswer, type HttpQuestion, type HttpRoute, jsonAnswer } from "./http-routes.ts";
import type { HttpTokens } from "./http-tokens.ts";

export type ActivityRouteOptions = { readonly kinds: readonly string[]; readonly telling: Rate; readonly tellersMax: number };

const Body = z.object({ id: z.string().regex(/^[A-Za-z0-9_.:-]{1,64}$/), activities: z.array(Deed).min(1).max(ACTIVITY_USERS_MAX) });

const NOT_AWARDING = errorAnswer(
  403,
  "not-allowed",
  "activities are told by backends: ask for a token whose claim `rights` has `award` and whose `rooms` names the room",
);
const BAD_BODY = errorAnswer(
  400,
  "bad-body",
  `send {"id": "…", "activities": [{"user": "…", "kind": "…", "times": 1}]}: an id of 1 to 64 letters, digits and _.:- and 1 to ${ACTIVITY_USERS_MAX} activities`,
);
const TOO_FAST = jsonAnswer(
  429,
  { error: "rate-limited", message: "activities are told too often: put more of them into one request" },
  { "retry-after": "1" },
);
const ANSWERS: Readonly<Record<Told, HttpAnswer>> = {
  stored: jsonAnswer(202, { outcome: "stored" }),
  known: jsonAnswer(202, { outcome: "known" }),
  full: jsonAnswer(
    503,
    { error: "full", message: "more is told than is counted: tell it again later, under the same id" },
    { "retry-after": "10" },
  ),
  unavailable: jsonAnswer(
    503,
    { error: "unavailable", message: "it is not known whether this is stored: tell it again, under the same id" },
    { "retry-after": "1" },
  ),
};

export function activityRoutes(
  tokens: HttpTokens,
  activities: Activities,
  { kinds, telling, tellersMax }: ActivityRouteOptions,
  { clock, metrics }: { clock: Clock; metrics: GatewayMetrics },
): HttpRoute[] {
  const rates = new ReaderRates(telling, tellersMax);

  const answer = async (question: HttpQuestion): Promise<HttpAnswer> => {
    const identity = await identify(question, tokens);
    if ("status" in identity) return identity;
    const room = parseRoomId(decodeParameter(question.parameters[0] ?? ""));
    if (room === undefined) return errorAnswer(400, "bad-room", "a room is 1 to 128 characters without control characters");
    if (!identity.rights.award || !opens(identity, room)) return NOT_AWARDING;
    const restriction = identity.restrictionIn?.(roomKey(identity.tenant, room));
    if (restriction !== undefined)
      return errorAnswer(403, "not-allowed", because("the user may tell no activities of this room for a time", restriction));
    if (!rates.take(`${identity.tenant} ${identity.user}`, clock.now())) {
      metrics.limitsReached.inc({ limit: "activities" });
      return TOO_FAST;
    }
    const body = decodeJson(Body, question.body);
    if (body === undefined) return BAD_BODY;
    const unknown = body.activities.find(({ kind }) => !kinds.includes(kind));
    if (unknown !== undefined)
      return errorAnswer(
        400,
        "unknown-kind",
        `no points are set for ${unknown.kind}: there is ${kinds.join(", ")}; set COROOM_BOARD_KINDS for more`,
      );
    // An id is its teller's own: two backends may use the same.
    const outcome = await activities.tell(
      roomKey(identity.tenant, room),
      { kind: "deeds", deeds: body.activities },
      `${identity.user} ${body.id}`,
    );
    metrics.activities.inc({ by: "backend", outcome });
    return ANSWERS[outcome];
  };

  return [{ method: "post", path: "/v1/rooms/:room/activities", answer }];
}
