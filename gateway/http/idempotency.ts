/**
 * Which edit a write over HTTP is. A request may be sent again: its `Idempotency-Key`, or for a new document the content
 * itself, names the edit, so that a repeat is recognised and never ordered twice. Another request under the same key is refused:
 * an answer with the first one's seq would drop it silently.
 */

import { ONLY_EDIT_COUNTER_MIN } from "../../shared/bus/envelope.ts";
import type { ClientKey } from "../../shared/ids.ts";
import type { Counter } from "../../shared/wire/frames.ts";
import { errorAnswer, type HttpAnswer } from "./answers.ts";
import { queryWith, type RouteRequest } from "./requests.ts";

/** `edit`: each request without a key is another edit. `create`: the same content is the same edit. `restore`: as edit. */
export type WriteScope = "edit" | "create" | "restore";

const KEY_CHARACTERS_MAX = 255;
const CLIENT_KEY_CHARACTERS = 32;
const BAD_KEY = errorAnswer(400, "bad-key", `an Idempotency-Key has up to ${KEY_CHARACTERS_MAX} characters`);

export function refuseKey({ header }: Pick<RouteRequest, "header">): HttpAnswer | undefined {
  return header("idempotency-key").length > KEY_CHARACTERS_MAX ? BAD_KEY : undefined;
}

/** Hashes, and a source of random keys: passed in, so that this file stays deterministic. */
export type EditNaming = {
  readonly digest: (of: string | Uint8Array) => string;
  /** Below 2^32. */
  readonly number: (of: string) => number;
  readonly randomKey: () => string;
};

/**
 * The client key that the edit is written under, and its counter. The same key with another counter is another request,
 * which the owner refuses.
 */
export function editNameOf(
  { header, body, query }: Pick<RouteRequest, "header" | "body" | "query">,
  { scope, parameters }: { readonly scope: WriteScope; readonly parameters: readonly string[] },
  { digest, number, randomKey }: EditNaming,
): { readonly key: ClientKey; readonly counter: Counter } {
  const given = header("idempotency-key");
  const request = `${header("content-type")}\0${queryWith(query, parameters)}\0${digest(body)}`;
  const key = given !== "" ? given : scope === "create" ? request : randomKey();
  return {
    key: digest(`${scope}\0${key}`).slice(0, CLIENT_KEY_CHARACTERS) as ClientKey,
    counter: ONLY_EDIT_COUNTER_MIN + number(request),
  };
}
