/**
 * The document service's HTTP for gateways: finds the route of a request about a room. Each `…-routes.ts` file in this
 * folder holds the routes of one purpose; `document-service/openapi.json` shows what clients see of them.
 *
 *   {method} /v1/rooms/{room}/{place}    x-coroom-internal: <secret>    x-coroom-tenant: <tenant>
 *   GET      /v1/rooms                   the rooms of the tenant
 */

import type { Registry } from "prom-client";

import { assertNever } from "../../shared/assert.ts";
import { parseRoomOfTenant, ROOM_ID_RULE, type RoomKey } from "../../shared/ids.ts";
import { type InternalResponse, type InternalRequest, refusal, serveInternal } from "../../shared/io/internal-http.ts";
import type { InternalTls } from "../../shared/io/internal-tls.ts";
import type { Log } from "../../shared/process/log.ts";
import type { DocumentServiceMetrics } from "../metrics.ts";
import type { Unread } from "../ports.ts";

/** A request about a room. `parameters`: the values of the place's `:name` parts, in order. */
export type RoomQuestion = InternalRequest & { readonly room: RoomKey; readonly parameters: readonly string[] };
/** A route about all rooms of the request's tenant. */
export type TenantRoute = (request: InternalRequest) => Promise<InternalResponse>;
/** `place`: the path after the room, such as `snapshot` or `versions/:version`; empty for the room itself. */
export type RoomRoute = {
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
  readonly place: string;
  readonly answer: (question: RoomQuestion) => Promise<InternalResponse>;
};

type DocumentHttpOptions = {
  readonly documentsHost: string;
  readonly documentsPort: number;
  readonly internalSecret: string;
  readonly metricsSecret: string;
  readonly tls: InternalTls | undefined;
  readonly documentBodyBytesMax: number;
};

/** `list`: the route of all rooms of a tenant. */
export function serveHttp(
  { list, rooms }: { readonly list: TenantRoute; readonly rooms: readonly RoomRoute[] },
  { documentsHost, documentsPort, internalSecret, metricsSecret, tls, documentBodyBytesMax }: DocumentHttpOptions,
  { log, metrics, registry }: { log: Log; metrics: DocumentServiceMetrics; registry: Registry },
): Promise<{ port: number; stop(): Promise<void> }> {
  const listening = {
    host: documentsHost,
    port: documentsPort,
    secret: internalSecret,
    metricsSecret,
    tls,
    bodyBytesMax: documentBodyBytesMax,
    tier: "document service",
    portSetting: "COROOM_DOCUMENTS_PORT",
    registry,
    log,
  };
  return serveInternal(
    listening,
    (question) => (question.segments.join("/") === "rooms" ? list(question) : answerBy(rooms, question)),
    (answer) => metrics.reads.inc({ answer }),
  );
}

/** Finds the route of a request about a room, and answers by it. */
export function answerBy(routes: readonly RoomRoute[], question: InternalRequest): Promise<InternalResponse> | InternalResponse {
  const [rooms, roomText = "", ...place] = question.segments;
  const there = routes.flatMap((route) => {
    const parameters = parametersOf(route.place === "" ? [] : route.place.split("/"), place);
    return parameters === undefined ? [] : { route, parameters };
  });
  if (rooms !== "rooms" || there.length === 0) {
    return refusal(
      404,
      "not-found",
      `there is nothing here: /v1/rooms/{room}/ is followed by ${[...new Set(routes.map((route) => route.place))].filter((name) => name !== "").join(", ")}`,
    );
  }
  const chosen = there.find(({ route }) => route.method === question.method);
  if (chosen === undefined) return refusal(405, "method-not-allowed", `this takes ${there.map(({ route }) => route.method).join(", ")}`);
  const room = parseRoomOfTenant(question.tenant, roomText);
  if (room === undefined) {
    return refusal(404, "no-such-room", `${ROOM_ID_RULE}; x-coroom-tenant names its tenant`);
  }
  return chosen.route.answer({ ...question, room, parameters: chosen.parameters });
}

/** Undefined: the path is another place. */
function parametersOf(pattern: readonly string[], place: readonly string[]): string[] | undefined {
  const fits = pattern.length === place.length && pattern.every((part, index) => part.startsWith(":") || part === place[index]);
  return fits ? place.filter((_, index) => pattern[index]!.startsWith(":")) : undefined;
}

/** The answer to a request whose body `InternalQuestion.body` refuses. */
export const TOO_LARGE = refusal(
  413,
  "too-large",
  "the body is longer than the document service takes: send it in parts, or raise COROOM_DOCUMENT_BODY_BYTES_MAX",
);

export function isRead<Value>(value: Value | Unread): value is Value {
  return value !== "busy" && value !== "overran" && value !== "unreadable";
}

export function unread(why: Unread): InternalResponse {
  switch (why) {
    case "busy":
      return refusal(503, "busy", "too many documents are being read, or a thread ended over this one: ask again");
    case "overran":
      return refusal(
        503,
        "too-long",
        "it could not be read in time: fetch the snapshot and read it yourself, or raise COROOM_MERGE_MS_MAX",
      );
    case "unreadable":
      return refusal(
        422,
        "unreadable",
        "the content cannot be read or written in this form. It may be nested too deeply, or longer than 64 MiB: name its shared types by their kinds, or fetch the snapshot and read it yourself",
      );
    default:
      return assertNever(why);
  }
}
