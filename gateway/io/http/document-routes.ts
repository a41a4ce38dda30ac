/**
 * Documents over HTTP, forwarded from the document service: reading, history and versions, lists and deletion of rooms. A
 * token is checked as for a join. One answer serves all clients that request the same document at the same time.
 * `document-service/openapi.json` and `document-service/history-openapi.json` describe each route.
 */

import { type RoomKey, roomKey } from "../../../shared/ids.ts";
import type { Clock } from "../../../shared/time/clock.ts";
import { errorOf, type HttpAnswer } from "../../http/answers.ts";
import { userKey } from "../../limits/quotas.ts";
import {
  deletionRequest,
  documentRead,
  historyRequest,
  isAnswerCurrent,
  NO_DOCUMENT_SERVICE,
  NO_FIRST_CONTENT,
  roomListRequest,
  type ServiceRequest,
  TOO_MANY_DELETIONS,
  TOO_MANY_DOCUMENT_READS,
  TOO_MANY_HISTORY_READS,
  TOO_MANY_LISTS,
} from "../../http/document-requests.ts";
import { storageFull } from "../../http/document-writes.ts";
import { reencodeParameter, type RouteRequest } from "../../http/requests.ts";
import type { HttpRoute } from "../../http/route-table.ts";
import type { StorageLimitsHost } from "../../limits/storage-limits-host.ts";
import { type Rate, TenantRates, UserRates } from "../../limits/reader-rates.ts";
import type { GatewayMetrics } from "../../metrics.ts";
import type { FirstContents } from "../../rooms/first-content-host.ts";
import type { FollowedRoomsHost } from "../../rooms/room-host.ts";
import type { Identity } from "../../sessions/identity.ts";
import type { ServiceDirectory } from "../nats/nats-services.ts";
import { authorityOf, forBearers, type HttpTokens, identify, isOperator, type OperatorOptions } from "./authenticate.ts";
import { unlessBroken } from "./broken-answers.ts";
import { bytesOf, callServices } from "./call-services.ts";
import { SharedAnswers, type SharedAnswersOptions } from "./shared-answers.ts";
import type { StreamedAnswers } from "./streamed-answers.ts";

/** `rooms` gives each room's position, if this gateway follows the room. */
type DocumentReadPorts = StreamedReadPorts & {
  readonly rooms: Pick<FollowedRoomsHost, "positionOf">;
  readonly contents?: Pick<FirstContents, "isAskedFor" | "load"> | undefined;
};
type StreamedReadPorts = DocumentDeletePorts & { readonly streamed: StreamedAnswers };
type DocumentHistoryPorts = StreamedReadPorts & {
  readonly storage: Pick<StorageLimitsHost, "fullOn">;
};
type DocumentDeletePorts = { readonly tokens: HttpTokens; readonly documents: ServiceDirectory };

type DocumentReadOptions = DocumentHistoryOptions & { readonly everybody: Rate; readonly shared: SharedAnswersOptions };
type DocumentHistoryOptions = { readonly internalSecret: string; readonly eachUser: Rate; readonly readersMax: number };
type DocumentDeleteOptions = OperatorOptions & {
  readonly internalSecret: string;
  readonly eachUser: Rate;
  readonly writersMax: number;
};
type RouteTools = { readonly clock: Clock; readonly metrics: GatewayMetrics };

/** The largest state vector: that of a document with a thousand writers. */
const VECTOR_BYTES_MAX = 65_536;
const VERSION_NAME_BYTES_MAX = 1_024;
/** A shared call has no signal: the first client may disconnect before the others have their answer. */
const FOR_ALL = {};

export function documentReadRoutes(
  { tokens, documents, streamed, rooms, contents }: DocumentReadPorts,
  options: DocumentReadOptions,
  { clock, metrics }: RouteTools,
): HttpRoute[] {
  const rates = new UserRates(options.eachUser, options.readersMax);
  const answers = new SharedAnswers(options.shared, clock);
  const everybody = new TenantRates(options.everybody, options.readersMax, clock.now());

  const limitReached = (identity: Identity): "snapshots" | "gateway-snapshots" | undefined => {
    if (!rates.take(userKey(identity), clock.now())) return "snapshots";
    return everybody.take(identity.tenant, clock.now()) ? undefined : "gateway-snapshots";
  };
  /** A room without any edit is read once the application was asked for its content. */
  const call = async (
    asked: ServiceRequest,
    room: RoomKey,
    signal: Partial<Pick<RouteRequest, "signal">>,
  ): Promise<HttpAnswer | undefined> => {
    const answer = await callServices(documents, asked, signal, options);
    if (answer?.status !== 404 || answer.body === undefined || contents?.isAskedFor(room) !== true) return answer;
    const body = await bytesOf(answer.body);
    if (errorOf(body) !== "no-document") return { ...answer, body };
    const outcome = await contents.load(room);
    if (outcome === "none") return { ...answer, body };
    return outcome === "failed" ? NO_FIRST_CONTENT : callServices(documents, asked, signal, options);
  };
  const read = (place: string, fetch: (asked: ServiceRequest, room: RoomKey, request: RouteRequest) => Promise<HttpAnswer | undefined>) =>
    forBearers(tokens, async (request, identity) => {
      const asked = documentRead(request, identity, place);
      if ("status" in asked) return asked;
      const limit = limitReached(identity);
      if (limit !== undefined) {
        metrics.limitsReached.inc({ limit });
        return TOO_MANY_DOCUMENT_READS;
      }
      const answer = await unlessBroken(fetch(asked, roomKey(identity.tenant, asked.room), request));
      return streamed.pass(identity, answer ?? NO_DOCUMENT_SERVICE);
    });

  const shared = (place: string): HttpRoute["answer"] =>
    read(place, (asked, room) => {
      const before = rooms.positionOf(room);
      return answers.get(
        `${asked.tenant} ${JSON.stringify(asked.headers)} ${asked.path}`,
        () => call(asked, room, FOR_ALL),
        (answer) => isAnswerCurrent(answer, before, rooms.positionOf(room)),
      );
    });
  const diff = read("diff", (asked, room, request) => call({ ...asked, method: "POST", body: request.body }, room, request));

  return [
    ...["snapshot", "document", "text"].map((place): HttpRoute => ({
      method: "get",
      path: `/v1/rooms/:room/${place}`,
      answer: shared(place),
    })),
    { method: "post", path: "/v1/rooms/:room/diff", answer: diff, bodyBytesMax: VECTOR_BYTES_MAX },
  ];
}

/** Versions, states at a seq or a time, and the writers of each part. Restoring a state is a write: see document-write-routes.ts. */
export function documentHistoryRoutes(
  { tokens, documents, streamed, storage }: DocumentHistoryPorts,
  options: DocumentHistoryOptions,
  { clock, metrics }: RouteTools,
): HttpRoute[] {
  const rates = new UserRates(options.eachUser, options.readersMax);

  const history = (place: (request: RouteRequest) => string, needs: "read" | "write", method?: "POST" | "DELETE"): HttpRoute["answer"] =>
    forBearers(tokens, async (request, identity) => {
      const asked = historyRequest(request, identity, { place: place(request), needs, ...(method === undefined ? {} : { method }) });
      if ("status" in asked) return asked;
      const full = method === "POST" ? storage.fullOn(roomKey(identity.tenant, asked.room)) : undefined;
      if (full !== undefined) {
        metrics.limitsReached.inc({ limit: "stored-bytes" });
        return storageFull(full);
      }
      if (!rates.take(userKey(identity), clock.now())) {
        metrics.limitsReached.inc({ limit: "snapshots" });
        return TOO_MANY_HISTORY_READS;
      }
      return streamed.pass(identity, (await callServices(documents, asked, request, options)) ?? NO_DOCUMENT_SERVICE);
    });

  const versions = "/v1/rooms/:room/versions";
  return [
    { method: "get", path: versions, answer: history(() => "versions", "read") },
    { method: "get", path: "/v1/rooms/:room/past", answer: history(() => "past", "read") },
    { method: "get", path: "/v1/rooms/:room/sessions", answer: history(() => "sessions", "read") },
    { method: "post", path: versions, answer: history(() => "versions", "write", "POST"), bodyBytesMax: VERSION_NAME_BYTES_MAX },
    {
      method: "del",
      path: `${versions}/:version`,
      answer: history(({ parameters: [, version = ""] }) => `versions/${reencodeParameter(version)}`, "write", "DELETE"),
    },
  ];
}

/** Lists the rooms of a tenant. */
export function roomListRoutes(
  { tokens, documents }: DocumentDeletePorts,
  options: DocumentHistoryOptions & OperatorOptions,
  { clock, metrics }: RouteTools,
): HttpRoute[] {
  const rates = new UserRates(options.eachUser, options.readersMax);

  const answer = async (request: RouteRequest): Promise<HttpAnswer> => {
    const authority = await authorityOf(request, tokens, options);
    if ("status" in authority) return authority;
    const list = roomListRequest(request, authority.of);
    if ("status" in list) return list;
    if (!rates.take(userKey(list), clock.now())) {
      metrics.limitsReached.inc({ limit: "room-lists" });
      return TOO_MANY_LISTS;
    }
    return (await callServices(documents, list, request, options)) ?? NO_DOCUMENT_SERVICE;
  };

  return [{ method: "get", path: "/v1/rooms", answer }];
}

/** Deletes a room. For operators, and for tokens with the right `admin` that open the room. */
export function documentDeleteRoutes(
  { tokens, documents }: DocumentDeletePorts,
  options: DocumentDeleteOptions,
  { clock, metrics }: RouteTools,
): HttpRoute[] {
  const rates = new UserRates(options.eachUser, options.writersMax);

  const answer = async (request: RouteRequest): Promise<HttpAnswer> => {
    const identity = isOperator(request, options) ? undefined : await identify(request, tokens);
    if (identity !== undefined && "status" in identity) return identity;
    const deletion = deletionRequest(request, identity);
    if ("status" in deletion) return deletion;
    if (!rates.take(userKey(deletion), clock.now())) {
      metrics.limitsReached.inc({ limit: "document-writes" });
      return TOO_MANY_DELETIONS;
    }
    return (await callServices(documents, deletion, request, options)) ?? NO_DOCUMENT_SERVICE;
  };

  return [{ method: "del", path: "/v1/rooms/:room", answer }];
}
