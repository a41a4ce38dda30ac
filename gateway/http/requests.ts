/** HTTP requests as plain values, from which routes read parameters, queries, tokens and JSON bodies. */

import { z } from "zod";

import type { ClientAddress } from "../../shared/limits/client-address.ts";
import { errorAnswer, type HttpAnswer } from "./answers.ts";

export type RouteRequest = {
  readonly path: string;
  /** The values of the route's `:name`s and `*`, in order and still URL-encoded. */
  readonly parameters: readonly string[];
  readonly query: URLSearchParams;
  readonly header: (lowerCaseName: string) => string;
  /** Undefined for a client on this machine. */
  readonly address: ClientAddress | undefined;
  /** Empty unless the method is POST or PUT. */
  readonly body: Uint8Array;
  /** Fires when the client disconnects. */
  readonly signal: AbortSignal;
};

/** An invalid escape gives the empty text, which is no valid room or user. */
export function decodeParameter(raw: string): string {
  try {
    return decodeURIComponent(raw);
  } catch (error) {
    if (error instanceof URIError) return "";
    throw error;
  }
}

/** A header that is passed on. Characters that HTTP does not allow are replaced, because a request with them cannot be sent. */
export function forwardedHeader({ header }: Pick<RouteRequest, "header">, name: string): string {
  return header(name).replace(/[^\t\x20-\x7e\x80-\xff]/g, "?");
}

/** The first parameter of the path, which names the room. */
export function roomParameter({ parameters }: Pick<RouteRequest, "parameters">): string {
  return decodeParameter(parameters[0] ?? "");
}

/** Decodes and encodes again. The original text may contain more than a name, because a URL reads `\` as `/`. */
export function reencodeParameter(raw: string): string {
  return encodeURIComponent(decodeParameter(raw));
}

/** The query with only the named parameters, with its `?`; empty when none is left. */
export function queryWith(query: URLSearchParams, names: readonly string[]): string {
  return queryText([...query].filter(([name]) => names.includes(name)));
}

/** The query without the token, which services of other tiers never see. */
export function queryWithoutToken(query: URLSearchParams): string {
  return queryText([...query].filter(([name]) => name !== "token"));
}

function queryText(entries: [string, string][]): string {
  return entries.length === 0 ? "" : `?${new URLSearchParams(entries)}`;
}

export function bearerOf({ header }: Pick<RouteRequest, "header">): string | undefined {
  return /^Bearer (.+)$/i.exec(header("authorization"))?.[1];
}

/** The token of the Authorization header, or else of the query. */
export function requestToken(request: Pick<RouteRequest, "header" | "query">): string | undefined {
  const token = bearerOf(request) ?? request.query.get("token") ?? "";
  return token === "" ? undefined : token;
}

/** Reads the body by a strict schema. An unknown field is an error, because it could be meant to narrow the request. */
export function readBody<Body extends z.ZodObject>({ body }: Pick<RouteRequest, "body">, schema: Body): z.output<Body> | HttpAnswer {
  try {
    const { data, error } = schema.safeParse(JSON.parse(new TextDecoder().decode(body)), { reportInput: true });
    const fields = Object.keys(schema.shape).join(", ");
    return data ?? errorAnswer(400, "bad-request", error!.issues.map((issue) => issueText(issue, fields)).join("; "));
  } catch (error) {
    if (error instanceof SyntaxError) return errorAnswer(400, "bad-request", "the body is not JSON");
    throw error;
  }
}

function issueText(issue: z.core.$ZodIssue, fields: string): string {
  if (issue.code === "unrecognized_keys") return `${issue.keys.join(", ")}: unknown field; the fields are ${fields}`;
  const name = issue.path.join(".");
  if (name === "") return `the body must be a JSON object with ${fields}`;
  return `${name}: ${issue.input === undefined ? "missing" : issue.message}`;
}
