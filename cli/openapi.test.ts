import { readdirSync } from "node:fs";

import { expect, test } from "vitest";

import { parseRoomId } from "../shared/ids.ts";
import { type HttpAnswer, statusLine } from "../gateway/http/answers.ts";
import type { RouteRequest } from "../gateway/http/requests.ts";
import { allParts, type OpenApi, openapiRoute, PARTS, readPart } from "./openapi.ts";

const TIERS = ["gateway", "document-service", "leaderboard", "room-server", "placement", "bridges"];

function ask(route = openapiRoute(), headers: Readonly<Record<string, string>> = {}): HttpAnswer {
  const header = (name: string): string => headers[name] ?? "";
  const { signal } = new AbortController();
  const question: RouteRequest = {
    path: route.path,
    parameters: [],
    query: new URLSearchParams(),
    header,
    address: undefined,
    body: new Uint8Array(0),
    signal,
  };
  return route.answer(question) as HttpAnswer;
}

test("[OAP1] the served document contains every path of every tier, and every reference resolves", () => {
  const files = TIERS.flatMap((tier) =>
    readdirSync(tier)
      .filter((file) => file.endsWith("openapi.json"))
      .map((file) => `${tier}/${file}`),
  );
  expect(files.toSorted(), "name it in PARTS, and have `npm run build:server` copy it").toEqual(Object.keys(PARTS).toSorted());

  const served = JSON.parse(String(ask().body)) as OpenApi;
  const paths = files.flatMap((file) => Object.keys(readPart(file).paths));
  expect(Object.keys(served.paths).toSorted(), "no path is described twice").toEqual(paths.toSorted());
  const references = [...JSON.stringify(served).matchAll(/"\$ref":"#\/components\/([^/"]+)\/([^"]+)"/g)];
  expect(references.length).toBeGreaterThan(50);
  expect(references.filter(([, kind, name]) => served.components[kind!]?.[name!] === undefined)).toEqual([]);
  const operations = Object.values(served.paths).flatMap((path) => Object.values(path)) as {
    readonly operationId?: string;
    readonly tags?: readonly string[];
  }[];
  const ids = operations.flatMap(({ operationId }) => operationId ?? []);
  expect(new Set(ids).size, "no two operations have one id").toBe(ids.length);
});

test("[OAP2] components with the same name in two tiers stay separate", () => {
  const { schemas = {} } = allParts().components;
  const [ofDocuments, ofBoards] = ["document-service/openapi.json", "leaderboard/openapi.json"].map(
    (file) => readPart(file).components["schemas"]!["Error"],
  );
  expect([Object.keys(schemas["DocumentsError"]!), Object.keys(schemas["BoardsError"]!)]).toEqual([
    Object.keys(ofDocuments!),
    Object.keys(ofBoards!),
  ]);
});

test("[OAP3] the document is built once, and a client that has it receives 304", () => {
  const route = openapiRoute();
  const first = ask(route);
  expect([first.status, first.headers?.["content-type"], ask(route).body === first.body]).toEqual([200, "application/json", true]);
  const etag = first.headers!["etag"]!;
  for (const known of [etag, `W/${etag}`, `"other", ${etag}`, "*"]) {
    const again = ask(route, { "if-none-match": known });
    expect([known, again.status, again.body, again.headers?.["etag"]]).toEqual([known, 304, undefined, etag]);
  }
});

test("[OAP4] the document requires a token for every path that needs one", () => {
  const { security, components, paths } = allParts();
  expect(security).toEqual([{ bearer: [] }]);
  expect(components["securitySchemes"]?.["bearer"]).toMatchObject({ type: "http", scheme: "bearer" });
  const operations = Object.values(paths).flatMap((path) =>
    Object.entries(path).filter(([key]) => ["get", "put", "post", "delete"].includes(key)),
  );
  for (const [, operation] of operations) expect(Object.keys((operation as { responses: object }).responses)).toContain("401");
});

test("[OAP5] every documented status has a reason phrase", () => {
  const operations = Object.values(allParts().paths).flatMap((path) => Object.values(path)) as { readonly responses?: object }[];
  const statuses = new Set(operations.flatMap(({ responses = {} }) => Object.keys(responses).map(Number)));
  expect(statuses.size).toBeGreaterThan(10);
  expect([...statuses].filter((status) => statusLine(status).endsWith(" Status"))).toEqual([]);
});

test("[OAP6] the document states how the server counts the length of a text, because JSON Schema counts otherwise", () => {
  expect(allParts().info.description).toContain("UTF-16 code units");
  const room = allParts().paths["/v1/rooms/{room}/snapshot"]!["get"] as { readonly parameters: readonly { readonly schema: object }[] };
  expect(room.parameters[0]!.schema).toMatchObject({ maxLength: 128 });
  expect(["🎉".repeat(64), "🎉".repeat(65)].map((name) => parseRoomId(name) !== undefined)).toEqual([true, false]);
});
