/**
 * The end of a room, for who runs it: a token with the right `admin` that opens the room, or an operator. The document
 * service does it; here is settled who may. Described in `document-service/openapi.json`.
 */

import { because } from "../limits/because.ts";
import type { Clock } from "../../shared/clock.ts";
import { parseRoomId, parseTenantId, type RoomId, roomKey, type TenantId } from "../../shared/ids.ts";
import { opens } from "../sessions/identity.ts";
import type { GatewayMetrics } from "../metrics.ts";
import { type Rate, ReaderRates } from "../limits/reader-rates.ts";
import { askServices, decodeParameter, identify } from "./ask-services.ts";
import { NO_DOCUMENT_SERVICE } from "./document-read-routes.ts";
import { errorAnswer, type HttpAnswer, type HttpQuestion, type HttpRoute, jsonAnswer } from "./http-routes.ts";
import type { HttpTokens } from "./http-tokens.ts";
import type { Services } from "./nats-services.ts";
import { isOperator } from "./operators.ts";

export type DocumentDeletePorts = { readonly tokens: HttpTokens; readonly documents: Services };
export type DocumentDeleteOptions = { readonly internalSecret: string; readonly eachUser: Rate; readonly writersMax: number };

const TOO_FAST = jsonAnswer(429, { error: "rate-limited", message: "too many rooms deleted at once: go on later" }, { "retry-after": "1" });
const NO_SUCH_ROOM = errorAnswer(
  404,
  "no-such-room",
  "a room id has 1 to 128 characters and no control characters; a tenant letters, digits, _ and -",
);
/** In the place of a user, for the rate. */
const OPERATOR = "";

type Place = { readonly tenant: TenantId; readonly room: RoomId; readonly user: string };

export function documentDeleteRoutes(
  { tokens, documents }: DocumentDeletePorts,
  options: DocumentDeleteOptions,
  { clock, metrics }: { clock: Clock; metrics: GatewayMetrics },
): HttpRoute[] {
  const rates = new ReaderRates(options.eachUser, options.writersMax);

  const placeOf = async (question: HttpQuestion): Promise<Place | HttpAnswer> => {
    const room = parseRoomId(decodeParameter(question.parameters[0] ?? ""));
    if (isOperator(question, options)) {
      const tenant = parseTenantId(question.query.get("tenant") ?? "default");
      return room === undefined || tenant === undefined ? NO_SUCH_ROOM : { tenant, room, user: OPERATOR };
    }
    const identity = await identify(question, tokens);
    if ("status" in identity) return identity;
    if (room === undefined) return NO_SUCH_ROOM;
    if (!opens(identity, room)) return errorAnswer(403, "not-allowed", "the token does not open this room");
    if (!identity.rights.admin) return errorAnswer(403, "not-allowed", "a room is deleted with a token whose claim `rights` has `admin`");
    const restriction = identity.restrictionIn?.(roomKey(identity.tenant, room));
    if (restriction !== undefined)
      return errorAnswer(403, "not-allowed", because("the user may not do so in this room for a time", restriction));
    return { tenant: identity.tenant, room, user: identity.user };
  };

  const answer = async (question: HttpQuestion): Promise<HttpAnswer> => {
    const place = await placeOf(question);
    if ("status" in place) return place;
    const { tenant, room, user } = place;
    if (!rates.take(`${tenant} ${user}`, clock.now())) {
      metrics.limitsReached.inc({ limit: "document-writes" });
      return TOO_FAST;
    }
    return (
      (await askServices(documents, { path: `/v1/rooms/${encodeURIComponent(room)}`, tenant, method: "DELETE" }, question, options)) ??
      NO_DOCUMENT_SERVICE
    );
  };

  return [{ method: "del", path: "/v1/rooms/:room", answer }];
}
