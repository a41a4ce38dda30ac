/** Snapshots for clients: checks the token as a join would, then passes the document service's answer on as it comes. */

import { parseRoomId, type RoomId, type TenantId } from "../../shared/ids.ts";
import { admit, type Identity } from "../identity.ts";
import type { Tokens } from "../ports.ts";
import { errorAnswer, type HttpAnswer, type HttpQuestion, type HttpRoute } from "./http-routes.ts";
import type { DocumentServices } from "./nats-documents.ts";

const PASSED_ON = ["content-type", "etag", "x-coroom-seq", "x-coroom-epoch", "cache-control", "retry-after"];
const UNAVAILABLE = errorAnswer(503, "unavailable", "no document service answers right now: try again in a moment");
const ANSWER_MS_MAX = 15_000;

export function snapshotRoutes(tokens: Tokens, documents: DocumentServices, options: { internalSecret: string }): HttpRoute[] {
  const answer = async (question: HttpQuestion): Promise<HttpAnswer> => {
    const identity = await identify(question, tokens);
    if ("status" in identity) return identity;
    const room = parseRoomId(decodeParameter(question.parameters[0] ?? ""));
    if (room === undefined) return errorAnswer(404, "no-such-room", "a room id has 1 to 128 characters and no control characters");
    const admission = admit(identity, room);
    if (admission.kind === "refused") return errorAnswer(403, "not-allowed", admission.why);
    return fetchSnapshot({ tenant: identity.tenant, room }, question, documents, options);
  };
  return [{ method: "get", path: "/v1/rooms/:room/snapshot", answer }];
}

async function identify({ header, query }: HttpQuestion, tokens: Tokens): Promise<Identity | HttpAnswer> {
  const bearer = /^Bearer (.+)$/i.exec(header("authorization"))?.[1];
  const token = bearer ?? query.get("token");
  if (token === null || token === "") return errorAnswer(401, "no-token", "give the token as Authorization: Bearer, or as ?token=");
  const verdict = await tokens.verify(token);
  switch (verdict.kind) {
    case "valid":
      return verdict.identity;
    case "expired":
      return errorAnswer(401, "token-expired", "the token has expired: ask for a new one");
    case "refused":
      return errorAnswer(401, "token-refused", `the token was refused: ${verdict.why}`);
    case "unchecked":
      return UNAVAILABLE;
  }
}

/** Of several document services the first that answers; one that died a moment ago is still among them. */
async function fetchSnapshot({ tenant, room }: { tenant: TenantId; room: RoomId }, { header, signal }: HttpQuestion, documents: DocumentServices, { internalSecret }: { internalSecret: string }): Promise<HttpAnswer> {
  const ifNoneMatch = header("if-none-match");
  const headers = { "x-coroom-internal": internalSecret, "x-coroom-tenant": tenant, ...(ifNoneMatch === "" ? {} : { "if-none-match": ifNoneMatch }) };
  const path = `/v1/rooms/${encodeURIComponent(room)}/snapshot`;
  for (const url of documents()) {
    try {
      const response = await fetch(new URL(path, url), { headers, signal: AbortSignal.any([signal, AbortSignal.timeout(ANSWER_MS_MAX)]) });
      if (response.status !== 503) return passOn(response);
      await response.body?.cancel(); // Another may be the one that reads this room's part of the log.
    } catch (error) {
      if (!(error instanceof TypeError) && !(error instanceof DOMException)) throw error; // What fetch throws when nobody answers, or not in time.
    }
  }
  return UNAVAILABLE;
}

function passOn(response: Response): HttpAnswer {
  const headers: Record<string, string> = {};
  for (const name of PASSED_ON) {
    const value = response.headers.get(name);
    if (value !== null) headers[name] = value;
  }
  return { status: response.status, headers, ...(response.body === null ? {} : { body: response.body }) };
}

function decodeParameter(raw: string): string {
  try {
    return decodeURIComponent(raw);
  } catch (error) {
    if (error instanceof URIError) return ""; // No room has such a name.
    throw error;
  }
}
