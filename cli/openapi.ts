/**
 * Serves the OpenAPI document of a gateway at /v1/openapi.json. Each tier describes its part beside its routes. This
 * file merges the parts and prefixes component names, so that equal names do not collide.
 */

import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";

import { matchesEtag } from "../shared/if-none-match.ts";
import { version } from "../shared/io/version.ts";
import type { HttpAnswer } from "../gateway/http/answers.ts";
import type { RouteRequest } from "../gateway/http/requests.ts";
import type { HttpRoute } from "../gateway/http/route-table.ts";

/** The prefix of the component names, by file. */
export const PARTS: Readonly<Record<string, string>> = {
  "document-service/openapi.json": "Documents",
  "document-service/history-openapi.json": "History",
  "leaderboard/openapi.json": "Boards",
  "gateway/openapi.json": "Administration",
  "gateway/operations-openapi.json": "Operations",
  "gateway/usage-openapi.json": "Usage",
};

type Components = Readonly<Record<string, Readonly<Record<string, object>>>>;
export type OpenApi = {
  readonly openapi: string;
  readonly info: { readonly title: string; readonly version: string; readonly description: string };
  readonly tags?: readonly { readonly name: string; readonly description: string }[];
  readonly security?: readonly Readonly<Record<string, readonly string[]>>[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, object>>>>;
  readonly components: Components;
};

/** All described paths answer 401 without a token. */
const BEARER = {
  type: "http",
  scheme: "bearer",
  description: "The token (JWT) that a client connects with; of operators, their pass or COROOM_OPERATOR_SECRET.",
};
const REFERENCE = "#/components/";
const METHODS = new Set(["get", "put", "post", "delete", "patch"]);
/** JSON Schema counts code points, and has no keyword for code units. */
const LENGTHS =
  "`maxLength` is the maximum number of UTF-16 code units, as JavaScript counts: a character outside the Basic Multilingual Plane, such as an emoji, counts as two.";
const CACHE_CONTROL = "public, max-age=300";

/** Builds the document at the first request and keeps it. */
export function openapiRoute(): HttpRoute {
  let made: { readonly body: string; readonly etag: string } | undefined;
  const make = (): { readonly body: string; readonly etag: string } => {
    const body = JSON.stringify(allParts());
    return { body, etag: `"${createHash("sha256").update(body).digest("base64url").slice(0, 22)}"` };
  };
  const answer = ({ header }: RouteRequest): HttpAnswer => {
    const { body, etag } = (made ??= make());
    const headers = { etag, "cache-control": CACHE_CONTROL };
    if (matchesEtag(header("if-none-match"), etag)) return { status: 304, headers };
    return { status: 200, headers: { ...headers, "content-type": "application/json" }, body };
  };
  return { method: "get", path: "/v1/openapi.json", answer };
}

/** Merges the parts. */
export function allParts(): OpenApi {
  const parts = Object.entries(PARTS).map(([file, name]) => ({ name, part: named(readPart(file), name) }));
  return {
    openapi: "3.1.0",
    info: { title: "Coroom", version: version(), description: `The HTTP answers of any gateway. ${LENGTHS}` },
    tags: parts.map(({ name, part }) => ({ name, description: part.info.description })),
    paths: Object.assign({}, ...parts.map(({ name, part }) => tagged(part.paths, name))) as OpenApi["paths"],
    security: [{ bearer: [] }],
    components: joined([...parts.map(({ part }) => part.components), { securitySchemes: { bearer: BEARER } }]),
  };
}

export function readPart(file: string): OpenApi {
  return JSON.parse(readFileSync(new URL(`../${file}`, import.meta.url), "utf8")) as OpenApi;
}

/** Prefixes the names of all components and the references to them. */
function named(part: OpenApi, prefix: string): OpenApi {
  const components = Object.entries(part.components).map(([kind, each]) => [
    kind,
    Object.fromEntries(Object.entries(each).map(([name, component]) => [prefix + name, component])),
  ]);
  const renamed = { ...part, components: Object.fromEntries(components) as Components };
  return JSON.parse(JSON.stringify(renamed), (key, value: unknown) =>
    key === "$ref" ? referenceTo(String(value), prefix) : value,
  ) as OpenApi;
}

function referenceTo(reference: string, prefix: string): string {
  const [kind, name] = reference.slice(REFERENCE.length).split("/");
  return `${REFERENCE}${kind}/${prefix}${name}`;
}

/**
 * Tags each operation with its part, so that viewers group them. Entries beside the operations apply to the whole path.
 */
function tagged(paths: OpenApi["paths"], tag: string): OpenApi["paths"] {
  const tagEach = (path: Readonly<Record<string, object>>): Readonly<Record<string, object>> =>
    Object.fromEntries(Object.entries(path).map(([key, value]) => [key, METHODS.has(key) ? { tags: [tag], ...value } : value]));
  return Object.fromEntries(Object.entries(paths).map(([path, operations]) => [path, tagEach(operations)]));
}

function joined(all: readonly Components[]): Components {
  const kinds = [...new Set(all.flatMap((components) => Object.keys(components)))];
  return Object.fromEntries(
    kinds.map((kind) => [kind, Object.assign({}, ...all.map((components) => components[kind] ?? {})) as Components[string]]),
  );
}
