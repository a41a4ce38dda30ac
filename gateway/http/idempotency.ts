/**
 * Which edit a write over HTTP is. A request may be sent again: its `Idempotency-Key`, or for a new document the content
 * itself, names the edit, so that a repeat is recognised and never ordered twice.
 */

import type { ClientKey } from "../../shared/ids.ts";
import { errorAnswer, type HttpAnswer } from "./answers.ts";
import type { RouteRequest } from "./requests.ts";

/** `edit`: each request without a key is another edit. `create`: the same content is the same edit. `restore`: as edit. */
export type WriteScope = "edit" | "create" | "restore";

const KEY_CHARACTERS_MAX = 255;
const CLIENT_KEY_CHARACTERS = 32;
const BAD_KEY = errorAnswer(400, "bad-key", `an Idempotency-Key has up to ${KEY_CHARACTERS_MAX} characters`);

export function refuseKey({ header }: Pick<RouteRequest, "header">): HttpAnswer | undefined {
  return header("idempotency-key").length > KEY_CHARACTERS_MAX ? BAD_KEY : undefined;
}

/** The client key that the edit is written under. `digest` and `randomKey` are passed in, so that this stays deterministic. */
export function clientKeyOf(
  { header, body }: Pick<RouteRequest, "header" | "body">,
  scope: WriteScope,
  { digest, randomKey }: { readonly digest: (of: string | Uint8Array) => string; readonly randomKey: () => string },
): ClientKey {
  const given = header("idempotency-key");
  const key = given !== "" ? given : scope === "create" ? digest(body) : randomKey();
  return digest(`${scope}\0${key}`).slice(0, CLIENT_KEY_CHARACTERS) as ClientKey;
}
