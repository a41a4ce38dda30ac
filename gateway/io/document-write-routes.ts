/**
 * Documents written over HTTP, by backends and by pages without a socket: an edit, or a document made of content where
 * there is none. What is sent becomes one edit that the document service has looked at, and takes the way of every
 * edit: one order, one log, answered once it is there. Described in `document-service/openapi.json`.
 *
 * A request may be sent again. Its `Idempotency-Key`, or for a new document the content itself, says which edit it is.
 */

import { createHash, randomUUID } from "node:crypto";

import { because } from "../limits/because.ts";
import type { Clock } from "../../shared/clock.ts";
import { type ClientKey, roomKey, type RoomKey, type Seq } from "../../shared/ids.ts";
import type { Identity } from "../sessions/identity.ts";
import type { GatewayMetrics } from "../metrics.ts";
import { type Rate, ReaderRates } from "../limits/reader-rates.ts";
import type { SessionOptions } from "../sessions/session.ts";
import type { WriteOutcome, WriteRefusal, WritesHost } from "../rooms/writes-host.ts";
import { askServices, identify } from "./ask-services.ts";
import { NO_DOCUMENT_SERVICE } from "./document-read-routes.ts";
import { errorAnswer, type HttpAnswer, type HttpQuestion, type HttpRoute, jsonAnswer } from "./http-routes.ts";
import type { HttpTokens } from "./http-tokens.ts";
import type { Services } from "./nats-services.ts";
import { admittedRoom } from "./rooms-asked.ts";

export type DocumentWritePorts = {
  readonly tokens: HttpTokens;
  readonly documents: Services;
  readonly writes: Pick<WritesHost, "write">;
  readonly clientIdOf: SessionOptions["clientIdOf"];
};
export type DocumentWriteOptions = {
  readonly internalSecret: string;
  readonly eachUser: Rate;
  readonly writersMax: number;
  readonly editBytesMax: number;
};

type Writer = { readonly identity: Identity; readonly room: RoomKey; readonly path: string };
/** Where the document service makes the edit, and what of the query it is told. */
type Making = { readonly place: string; readonly parameters: readonly string[] };

const KEY_CHARACTERS_MAX = 255;
const BINARY = "application/octet-stream";
const TOO_FAST = jsonAnswer(
  429,
  { error: "rate-limited", message: "too many edits over HTTP: send several changes as one update, or connect as a client" },
  { "retry-after": "1" },
);
const REFUSALS: Readonly<Record<WriteRefusal, { status: number; error: string; message: string }>> = {
  "not-first": {
    status: 409,
    error: "document-exists",
    message: "the room has edits already: nothing was written; read the document, or send edits",
  },
  "too-large": { status: 413, error: "too-large", message: "the room server takes no record so large: split it" },
  "tenant-rate": {
    status: 429,
    error: "rate-limited",
    message: "the tenant sends as many edits a second as it may: send this one again later",
  },
  "tenant-rooms": {
    status: 429,
    error: "rate-limited",
    message: "the tenant has as many open rooms as it may: try again once others are closed",
  },
  "too-many-writes": { status: 503, error: "busy", message: "too many edits wait for the log here: try again" },
  "write-backpressure": { status: 503, error: "busy", message: "too many edits of the room wait for the log: try again" },
  "log-stalled": { status: 503, error: "log-stalled", message: "the log does not answer: nothing was written, try again" },
  "gap": { status: 503, error: "busy", message: "the room's owner has changed: try again" },
  "forged": { status: 503, error: "busy", message: "the room's owner has changed: try again" },
  "deleted": { status: 410, error: "deleted", message: "the room is deleted for good: begin another under a new name" },
  "read-only": { status: 403, error: "not-allowed", message: "the user may only read in this room for a time" },
};

export function documentWriteRoutes(
  ports: DocumentWritePorts,
  options: DocumentWriteOptions,
  { clock, metrics }: { clock: Clock; metrics: GatewayMetrics },
): HttpRoute[] {
  const { tokens, documents, writes, clientIdOf } = ports;
  const rates = new ReaderRates(options.eachUser, options.writersMax);

  const writerOf = async (question: HttpQuestion): Promise<Writer | HttpAnswer> => {
    const identity = await identify(question, tokens);
    if ("status" in identity) return identity;
    const roomId = admittedRoom(question, identity);
    if (typeof roomId !== "string") return roomId;
    if (!identity.rights.write)
      return errorAnswer(403, "not-allowed", "the token does not give the right to write: ask for one whose claim `rights` has `write`");
    const room = roomKey(identity.tenant, roomId);
    const restriction = identity.restrictionIn?.(room);
    if (restriction !== undefined)
      return errorAnswer(403, "not-allowed", because("the user may not write in this room for a time", restriction));
    if (question.header("idempotency-key").length > KEY_CHARACTERS_MAX)
      return errorAnswer(400, "bad-key", `an Idempotency-Key has up to ${KEY_CHARACTERS_MAX} characters`);
    if (rates.take(`${identity.tenant} ${identity.user}`, clock.now()))
      return { identity, room, path: `/v1/rooms/${encodeURIComponent(roomId)}` };
    metrics.limitsReached.inc({ limit: "document-writes" });
    return TOO_FAST;
  };

  /** The body as one edit, or what is wrong with it. */
  const editOf = async (
    { identity, path }: Writer,
    { place, parameters }: Making,
    { query, header, body }: HttpQuestion,
  ): Promise<Uint8Array | HttpAnswer> => {
    const told = new URLSearchParams([...query].filter(([name]) => parameters.includes(name)));
    const asked = {
      path: `${path}/${place}?${told}`,
      tenant: identity.tenant,
      method: "POST",
      headers: { "content-type": header("content-type") },
      body,
    } as const;
    const made = await askServices(documents, asked, { signal: AbortSignal.timeout(MAKING_MS_MAX) }, options);
    if (made === undefined) return NO_DOCUMENT_SERVICE;
    if (made.status !== 200 || made.body === undefined) return made;
    const edit = await bytesOf(made.body);
    return edit.byteLength <= options.editBytesMax
      ? edit
      : errorAnswer(
          413,
          "too-large",
          `as an edit it has ${edit.byteLength} bytes, and may have ${options.editBytesMax}: write the first part, then the rest as edits`,
        );
  };

  const write = async (
    question: HttpQuestion,
    what: {
      readonly scope: string;
      readonly making: Making;
      readonly fallbackKey: () => string;
      readonly mustBeFirst?: true;
      readonly status: number;
    },
  ): Promise<HttpAnswer> => {
    const writer = await writerOf(question);
    if ("status" in writer) return writer;
    const payload = await editOf(writer, what.making, question);
    if (!(payload instanceof Uint8Array)) return payload;
    const { tenant, user } = writer.identity;
    const key = question.header("idempotency-key");
    const client = clientIdOf(tenant, user, clientKeyOf(what.scope, key === "" ? what.fallbackKey() : key));
    const edit = {
      author: { user, client },
      counter: 1,
      ackedThrough: 0,
      parentSeq: 0 as Seq,
      payload,
      ...(what.mustBeFirst ? { mustBeFirst: what.mustBeFirst } : {}),
    };
    return answerTo(await writes.write(writer.room, edit), what.status);
  };

  const edit = (question: HttpQuestion): Promise<HttpAnswer> => {
    const isBinary = question.header("content-type").split(";")[0]!.trim() === BINARY;
    if (!isBinary) return Promise.resolve(errorAnswer(415, "bad-content-type", `an edit is a Yjs update: send it as ${BINARY}`));
    return write(question, { scope: "edit", making: MADE, fallbackKey: randomUUID, status: 200 });
  };
  const create = (question: HttpQuestion): Promise<HttpAnswer> =>
    write(question, { scope: "create", making: MADE, fallbackKey: () => digest(question.body), mustBeFirst: true, status: 201 });
  const restore = (question: HttpQuestion): Promise<HttpAnswer> =>
    write(question, { scope: "restore", making: REVERTED, fallbackKey: randomUUID, status: 200 });

  return [
    { method: "post", path: "/v1/rooms/:room/restore", answer: restore },
    { method: "post", path: "/v1/rooms/:room/edits", answer: edit, bodyBytesMax: options.editBytesMax },
    { method: "put", path: "/v1/rooms/:room/document", answer: create, bodyBytesMax: options.editBytesMax },
  ];
}

const MAKING_MS_MAX = 15_000;
const MADE: Making = { place: "edit", parameters: ["type"] };
const REVERTED: Making = { place: "revert", parameters: ["seq", "time"] };

function answerTo(outcome: WriteOutcome, status: number): HttpAnswer {
  switch (outcome.kind) {
    case "committed":
      return jsonAnswer(
        status,
        { epoch: outcome.epoch, seq: outcome.seq },
        { "x-coroom-epoch": String(outcome.epoch), "x-coroom-seq": String(outcome.seq) },
      );
    case "refused": {
      const { status: refused, error, message } = REFUSALS[outcome.reason];
      const retry = outcome.retryAfterMs > 0 && refused !== 409 ? { "retry-after": String(Math.ceil(outcome.retryAfterMs / 1000)) } : {};
      return jsonAnswer(refused, { error, message }, retry);
    }
    case "unanswered":
      return errorAnswer(
        504,
        "unconfirmed",
        "the log has not confirmed it in time, and may still: send the same request with the same Idempotency-Key to find out",
      );
  }
}

function clientKeyOf(scope: string, key: string): ClientKey {
  return digest(`${scope}\0${key}`).slice(0, 32) as ClientKey;
}

function digest(of: string | Uint8Array): string {
  return createHash("sha256").update(of).digest("base64url");
}

async function bytesOf(body: NonNullable<HttpAnswer["body"]>): Promise<Uint8Array> {
  if (typeof body === "string") return new TextEncoder().encode(body);
  if (body instanceof Uint8Array) return body;
  const chunks: Uint8Array[] = [];
  for await (const chunk of body) chunks.push(chunk);
  return new Uint8Array(Buffer.concat(chunks));
}
