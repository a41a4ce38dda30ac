/**
 * Names the edit of a write over HTTP, so that a repeated request is recognised and never ordered twice. The name is
 * the `Idempotency-Key`, or for a new document its content. A different request with the same key is refused: an answer
 * with the first request's seq would hide that its edit was dropped.
 */

import { ONLY_EDIT_COUNTER_MIN } from "../../shared/bus/envelope.ts";
import type { ClientKey } from "../../shared/ids.ts";
import type { Counter } from "../../shared/wire/frames.ts";
import { errorAnswer, type HttpAnswer } from "./answers.ts";
import { queryWith, type RouteRequest } from "./requests.ts";

/** `edit`: each request without a key is a new edit. `create`: the same content is the same edit. `restore`: like `edit`. */
export type WriteScope = "edit" | "create" | "restore";

const KEY_CHARACTERS_MAX = 255;
const CLIENT_KEY_CHARACTERS = 32;
const BAD_KEY = errorAnswer(400, "bad-key", `an Idempotency-Key has up to ${KEY_CHARACTERS_MAX} characters`);

export function refuseKey({ header }: Pick<RouteRequest, "header">): HttpAnswer | undefined {
  return header("idempotency-key").length > KEY_CHARACTERS_MAX ? BAD_KEY : undefined;
}

/** Hash functions and a source of random keys. They are passed in, so that this file stays deterministic. */
export type EditNaming = {
  readonly digest: (of: string | Uint8Array) => string;
  /** Below 2^32. */
  readonly number: (of: string) => number;
  readonly randomKey: () => string;
};

/** The client key and the counter of the edit. The same key with another counter is a different request, which the owner refuses. */
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
