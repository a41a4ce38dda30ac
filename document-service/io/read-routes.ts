/**
 * The HTTP routes of current documents: the full state, text, JSON, or the part that a client lacks. Each answer has
 * the document's seq and an ETag, so that a client that has this state receives no body.
 */

import { promisify } from "node:util";
import { gzip } from "node:zlib";

import { assertNever } from "../../shared/assert.ts";
import type { Position, RoomKey } from "../../shared/ids.ts";
import { matchesEtag } from "../../shared/if-none-match.ts";
import { type InternalResponse, refusal } from "../../shared/io/internal-http.ts";
import { parseWholeNumber } from "../../shared/limits/whole-number.ts";
import type { Clock } from "../../shared/time/clock.ts";
import { pause } from "../../shared/time/pause.ts";
import { DOCUMENT_FORMATS, type DocumentFormat, KINDS, type Wanted } from "../content.ts";
import type { DocumentReads } from "../ports.ts";
import type { Freshness, Served } from "../rooms/room-messages.ts";
import { type RoomQuestion, type RoomRoute, isRead, TOO_LARGE, unread } from "./http.ts";
import { DELETED } from "./write-routes.ts";

const gzipInThread = promisify(gzip);
/** Measured on a document of 4.7 MB: 38% of the bytes in 76 ms; the default level 35% in 281 ms. */
const GZIP_LEVEL = 4;
/** Below this, headers cost more than compression saves. */
const GZIP_BYTES_MIN = 1_024;
/** Limit per state. Above it the oldest result is dropped. */
const RENDITIONS_MAX = 16;
/**
 * A result above this and longer than its state is made again for the next request: a state of 200 KB may have one of
 * 64 MiB for each of its texts.
 */
const KEPT_BYTES_MAX = 1024 ** 2;

/**
 * Results made from a document's state: its text, JSON or compressed bytes. They are kept as long as the state, so that
 * many requests for the same result make it once. Failures are not kept.
 */
class Renditions {
  readonly #made = new WeakMap<Uint8Array, Map<string, Promise<unknown>>>();

  /** `isFinal`: whether the result may be kept. */
  async get<Value>(
    state: Uint8Array,
    name: string,
    make: () => Promise<Value>,
    isFinal: (value: Value) => boolean = () => true,
  ): Promise<Value> {
    const ofState = this.#made.get(state) ?? new Map<string, Promise<unknown>>();
    this.#made.set(state, ofState);
    const [first] = ofState.keys();
    if (first !== undefined && ofState.size >= RENDITIONS_MAX && !ofState.has(name)) ofState.delete(first);
    const made = (ofState.get(name) as Promise<Value> | undefined) ?? make();
    ofState.set(name, made);
    try {
      const value = await made;
      if (!isFinal(value)) ofState.delete(name);
      return value;
    } catch (error) {
      ofState.delete(name); // The waiting callers receive the error too.
      throw error;
    }
  }

  /** Compresses `bytes` in a thread of the process's pool, or returns them where compression saves too little. */
  compressed(bytes: Uint8Array): Promise<Uint8Array> {
    return bytes.byteLength < GZIP_BYTES_MIN
      ? Promise.resolve(bytes)
      : this.get(bytes, "gzip", () => gzipInThread(bytes, { level: GZIP_LEVEL }));
  }
}

type Snapshot = Served & { kind: "snapshot" };
/** A request waits while the document is behind its log. */
type Answered = Exclude<Served, { kind: "behind" }>;

const BINARY = "application/octet-stream";
const WANTED_MAX = 100;
/** A page of the gateway's origin must not run what a document contains, should the escaping ever fail. */
const INERT = { "content-security-policy": "default-src 'none'; sandbox" };
const FORMAT_HEADERS: Readonly<Record<DocumentFormat, Readonly<Record<string, string>>>> = {
  prosemirror: { "content-type": "application/json" },
  html: { "content-type": "text/html; charset=utf-8", ...INERT },
  markdown: { "content-type": "text/markdown; charset=utf-8", ...INERT },
};
const BAD_MIN_SEQ = refusal(400, "bad-seq", "minSeq is a whole number in decimal digits: send the seq that a write was answered with");
/** Interval at which a request that waits for a seq checks again. */
const BEHIND_MS = 50;
/** The same for the first edit of a room, where each check reads the log's end. */
const FIRST_EDIT_MS = 200;
/** Maximum time that a request without a seq waits, and holds one of a gateway's connections. */
const FIRST_EDIT_MS_MAX = 2_000;

/**
 * `holds`: whether this service serves the room, and no other service does. `hasEdit`: whether the room's log has an edit
 * with this seq, or a later one.
 */
export type Documents = {
  serve(room: RoomKey, freshness: Freshness, minSeq?: number): Promise<Served>;
  holds(room: RoomKey): boolean;
  hasEdit(room: RoomKey, seq: number): Promise<boolean>;
};

export function readRoutes(
  documents: Documents,
  reading: DocumentReads,
  { documentsAnswerMsMax }: { documentsAnswerMsMax: number },
  clock: Clock,
): RoomRoute[] {
  const renditions = new Renditions();

  /**
   * A caller that knows the seq of its own write waits until the document includes it. A caller of a room without any
   * edit here waits until the first edit in the log was read. Nobody waits for an edit that the log does not have: each
   * request that waits holds one of a gateway's connections to this service.
   */
  const serveAt = async ({ room, signal }: RoomQuestion, minSeq: number, freshness: Freshness): Promise<Answered> => {
    const deadline = clock.now() + (minSeq > 0 ? documentsAnswerMsMax : Math.min(documentsAnswerMsMax, FIRST_EDIT_MS_MAX));
    for (let isWritten = false; ;) {
      const served = await documents.serve(room, minSeq > 0 ? "newest" : freshness, minSeq);
      if (served.kind !== "behind") {
        const isThere =
          served.kind === "not-a-document" ||
          served.kind === "deleted" ||
          served.kind === "stalled" ||
          (served.kind === "snapshot" && served.position.seq >= minSeq);
        if (isThere || minSeq === 0 || !documents.holds(room)) return served;
      }
      isWritten ||= await documents.hasEdit(room, Math.max(1, minSeq));
      if (!isWritten || signal.aborted || clock.now() >= deadline) return { kind: "loading" };
      await pause(clock, served.kind === "behind" ? FIRST_EDIT_MS : BEHIND_MS);
    }
  };

  /** For a client that already has this state, nothing is computed. */
  const conditional =
    (freshness: Freshness, make: (snapshot: Snapshot, question: RoomQuestion) => Promise<InternalResponse>) =>
    async (question: RoomQuestion): Promise<InternalResponse> => {
      const minSeq = parseWholeNumber(question.query.get("minSeq") ?? "0");
      if (minSeq === undefined) return BAD_MIN_SEQ;
      const served = await serveAt(question, minSeq, freshness);
      if (served.kind !== "snapshot") return unserved(served);
      const headers = headersOf(served.position);
      if (knows(question.header("if-none-match"), served.position)) return { status: 304, name: "unchanged", headers };
      const answer = await make(served, question);
      return answer.status === 200 ? compressed({ ...answer, headers: { ...headers, ...answer.headers } }, question) : answer;
    };

  /** The encoding is named in a non-standard header, because the gateway's HTTP client would decode the body under the standard one. */
  const compressed = async (answer: InternalResponse, { header }: RoomQuestion): Promise<InternalResponse> => {
    const { body, headers = {} } = answer;
    if (header("x-coroom-accept") !== "gzip" || !(body instanceof Uint8Array)) return answer;
    const bytes = await renditions.compressed(body);
    return bytes === body
      ? answer
      : {
          ...answer,
          headers: { ...headers, "etag": String(headers["etag"]).replace(/"$/, '-gzip"'), "x-coroom-encoding": "gzip" },
          body: bytes,
        };
  };

  const snapshot = async ({ state, last }: Snapshot): Promise<InternalResponse> => ({
    status: 200,
    name: "snapshot",
    headers: { "content-type": BINARY, ...(last && { "x-coroom-last-edit": `${last.client}.${last.counter}` }) },
    body: state,
  });

  const rendered = async ({ state }: Snapshot, { query, room }: RoomQuestion): Promise<InternalResponse> => {
    const format = DOCUMENT_FORMATS.find((known) => known === query.get("format"));
    if (format === undefined) return refusal(400, "bad-format", `format must be one of ${DOCUMENT_FORMATS.join(", ")}`);
    const types = wantedOf(query.getAll("type"));
    if (types === undefined || types.length > 1 || types[0]?.kind === "array" || types[0]?.kind === "map")
      return refusal(400, "bad-type", "name one shared type that is a text or XML: ?type=body:text or ?type=default:xml");
    const [wanted] = types;
    const name = `${format} ${JSON.stringify(wanted)}`;
    const made = await renditions.get(
      state,
      name,
      () => reading.rendered(state, room, format, wanted),
      (found) => isRead(found) && (found.kind !== "rendered" || isKept(found.body, state)),
    );
    if (!isRead(made)) return unread(made);
    if (made.kind === "unfit")
      return refusal(422, "not-convertible", `${made.why}: read the document as JSON without a format, or fetch the snapshot`);
    if (made.kind === "no-such-text")
      return noSuchText(made.names, "there is no rich text in this document: read it as JSON without a format");
    return { status: 200, name: "rendered", headers: FORMAT_HEADERS[format], body: made.body };
  };

  const json = async (snapshot: Snapshot, question: RoomQuestion): Promise<InternalResponse> => {
    const { query, room } = question;
    if (query.has("format")) return rendered(snapshot, question);
    const { state } = snapshot;
    const wanted = wantedOf(query.getAll("type"));
    if (wanted === undefined) {
      return refusal(
        400,
        "bad-type",
        `name up to ${WANTED_MAX} shared types, each once, with their kinds: ?type=title:text&type=items:array; a kind is ${KINDS.join(", ")}`,
      );
    }
    const made = await renditions.get(
      state,
      `json ${JSON.stringify(wanted)}`,
      () => reading.json(state, room, wanted),
      (found) => isRead(found) && isKept(found, state),
    );
    return isRead(made) ? { status: 200, name: "json", headers: { "content-type": "application/json" }, body: made } : unread(made);
  };

  const text = async ({ state }: Snapshot, { query, room }: RoomQuestion): Promise<InternalResponse> => {
    const name = query.get("type") ?? undefined;
    const made = await renditions.get(
      state,
      `text ${JSON.stringify(name)}`,
      () => reading.text(state, room, name),
      (found) => isRead(found) && (found.kind !== "text" || isKept(found.text, state)),
    );
    if (!isRead(made)) return unread(made);
    if (made.kind === "no-such-text") return noSuchText(made.names, "there is no text in this document: read it as JSON");
    return { status: 200, name: "text", headers: { "content-type": "text/plain; charset=utf-8" }, body: made.text };
  };

  const diff = async (question: RoomQuestion): Promise<InternalResponse> => {
    const vector = await question.body();
    if (vector === undefined) return TOO_LARGE;
    if (vector.byteLength === 0) return refusal(400, "bad-vector", "send the state vector as the body: Y.encodeStateVector(doc)");
    const served = await serveAt(question, 0, "newest");
    if (served.kind !== "snapshot") return unserved(served);
    const made = await reading.diff(served.state, question.room, vector);
    if (!isRead(made)) return unread(made);
    if (made.kind === "bad-vector") return refusal(400, "bad-vector", "the body is no Yjs state vector: send Y.encodeStateVector(doc)");
    return compressed(
      { status: 200, name: "diff", headers: { ...headersOf(served.position), "content-type": BINARY }, body: made.edit },
      question,
    );
  };

  return [
    { method: "GET", place: "snapshot", answer: conditional("joinable", snapshot) },
    { method: "GET", place: "document", answer: conditional("newest", json) },
    { method: "GET", place: "text", answer: conditional("newest", text) },
    { method: "POST", place: "diff", answer: diff },
  ];
}

/** Callers that wait for a result receive it in any case. */
function isKept(result: Uint8Array, state: Uint8Array): boolean {
  return result.byteLength <= Math.max(KEPT_BYTES_MAX, state.byteLength);
}

/** `otherwise`: the error for a document without texts. */
function noSuchText(names: readonly string[], otherwise: string): InternalResponse {
  const named = names.slice(0, WANTED_MAX).map(encodeURIComponent).join(", ?type=");
  return refusal(404, "no-such-text", names.length === 0 ? otherwise : `name one of its texts: ?type=${named}`);
}

function headersOf({ epoch, seq }: Position): Readonly<Record<string, string>> {
  return { "x-coroom-seq": String(seq), "x-coroom-epoch": String(epoch), "etag": `"${epoch}-${seq}"`, "vary": "accept-encoding" };
}

/** The ETag matches in any encoding. */
function knows(ifNoneMatch: string, { epoch, seq }: Position): boolean {
  return matchesEtag(ifNoneMatch.replaceAll('-gzip"', '"'), `"${epoch}-${seq}"`);
}

/** Undefined: the request is malformed. */
function wantedOf(types: readonly string[]): readonly Wanted[] | undefined {
  const wanted = types.flatMap((type): Wanted[] => {
    const at = type.lastIndexOf(":");
    const kind = KINDS.find((known) => known === type.slice(at + 1));
    return at < 0 || kind === undefined ? [] : [{ name: type.slice(0, at), kind }];
  });
  const names = new Set(wanted.map(({ name }) => name)); // Yjs fixes the kind of a shared type at its first use.
  return names.size === types.length && types.length <= WANTED_MAX ? wanted : undefined;
}

function unserved(served: Exclude<Answered, { kind: "snapshot" }>): InternalResponse {
  switch (served.kind) {
    case "no-document":
      return refusal(404, "no-document", "this room never had an edit");
    case "not-a-document":
      return refusal(404, "not-a-document", "this room's edits are no Yjs updates: there is no snapshot of them, join from the start");
    case "deleted":
      return DELETED;
    case "stalled":
      return refusal(
        503,
        "stalled",
        "this room's edits cannot be merged in time, or its snapshot is missing. The log keeps them, and the merge is tried again with growing pauses: ask again later",
      );
    case "loading":
      return refusal(503, "loading", "this room's document is not ready: ask again");
    default:
      return assertNever(served);
  }
}
