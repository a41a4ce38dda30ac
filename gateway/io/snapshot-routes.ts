/** Snapshots for clients: checks the token as a join would, then passes the document service's answer on as it comes. */

import { parseRoomId } from "../../shared/ids.ts";
import { admit } from "../identity.ts";
import type { Tokens } from "../ports.ts";
import { askServices, decodeParameter, identify } from "./ask-services.ts";
import { errorAnswer, type HttpAnswer, type HttpQuestion, type HttpRoute } from "./http-routes.ts";
import type { Services } from "./nats-services.ts";

const UNAVAILABLE = errorAnswer(503, "unavailable", "no document service answers right now: try again in a moment");

export function snapshotRoutes(tokens: Tokens, documents: Services, options: { internalSecret: string }): HttpRoute[] {
  const answer = async (question: HttpQuestion): Promise<HttpAnswer> => {
    const identity = await identify(question, tokens);
    if ("status" in identity) return identity;
    const room = parseRoomId(decodeParameter(question.parameters[0] ?? ""));
    if (room === undefined) return errorAnswer(404, "no-such-room", "a room id has 1 to 128 characters and no control characters");
    const admission = admit(identity, room);
    if (admission.kind === "refused") return errorAnswer(403, "not-allowed", admission.why);
    const ifNoneMatch = question.header("if-none-match");
    const asked = { path: `/v1/rooms/${encodeURIComponent(room)}/snapshot`, tenant: identity.tenant, headers: ifNoneMatch === "" ? {} : { "if-none-match": ifNoneMatch } };
    return (await askServices(documents, asked, question, options)) ?? UNAVAILABLE;
  };
  return [{ method: "get", path: "/v1/rooms/:room/snapshot", answer }];
}
