/**
 * Documents as they are now, in whatever form: whole, as text, as JSON, or as what somebody lacks. Each with the seq that
 * it is at, and under an ETag that names it, so that whoever has it already is not sent it again.
 */

import { assertNever } from "../../shared/assert.ts";
import type { Clock } from "../../shared/clock.ts";
import type { Position, RoomKey } from "../../shared/ids.ts";
import { type InternalAnswer, refusal } from "../../shared/io/internal-http.ts";
import { pause } from "../../shared/pause.ts";
import { KINDS, type Wanted } from "../content.ts";
import type { Reading } from "../ports.ts";
import type { Freshness, Served } from "../rooms/serve-host.ts";
import { DELETED } from "./delete-routes.ts";
import type { RoomQuestion, RoomRoute } from "./http.ts";
import { Renditions } from "./renditions.ts";
import { isRead, TOO_LARGE, unread } from "./unread.ts";

type Snapshot = Served & { kind: "snapshot" };

const BINARY = "application/octet-stream";
const WANTED_MAX = 100;
/** How soon one who waits for a seq is looked at again. */
const BEHIND_MS = 50;

/** `holds`: whether the room is answered for here, and not by another service. */
export type Documents = { serve(room: RoomKey, freshness: Freshness, minSeq?: number): Promise<Served>; holds(room: RoomKey): boolean };

export function readRoutes(
  documents: Documents,
  reading: Reading,
  { documentsAnswerMsMax }: { documentsAnswerMsMax: number },
  clock: Clock,
): RoomRoute[] {
  const renditions = new Renditions();

  /** Whoever has just written, and knows its seq, waits until that is in it. */
  const serveAt = async (room: RoomKey, minSeq: number, freshness: Freshness): Promise<Served> => {
    const deadline = clock.now() + documentsAnswerMsMax;
    for (;;) {
      const served = await documents.serve(room, minSeq > 0 ? "newest" : freshness, minSeq);
      const isThere =
        served.kind === "not-a-document" || served.kind === "deleted" || (served.kind === "snapshot" && served.position.seq >= minSeq);
      if (isThere || minSeq === 0 || !documents.holds(room)) return served;
      if (clock.now() >= deadline) return { kind: "loading" };
      await pause(clock, BEHIND_MS);
    }
  };

  /** Nothing is made of a document that the asker has. */
  const conditional =
    (freshness: Freshness, make: (snapshot: Snapshot, question: RoomQuestion) => Promise<InternalAnswer>) =>
    async (question: RoomQuestion): Promise<InternalAnswer> => {
      const minSeq = Number(question.query.get("minSeq") ?? 0);
      if (!Number.isSafeInteger(minSeq) || minSeq < 0) return refusal(400, "bad-seq", "minSeq is the seq that a write was answered with");
      const served = await serveAt(question.room, minSeq, freshness);
      if (served.kind !== "snapshot") return unserved(served);
      const headers = headersOf(served.position);
      if (knows(question.header("if-none-match"), served.position)) return { status: 304, name: "unchanged", headers };
      const answer = await make(served, question);
      return answer.status === 200 ? compressed({ ...answer, headers: { ...headers, ...answer.headers } }, question) : answer;
    };

  /** The encoding goes under a name of our own: the gateway's HTTP client would undo it on the way. */
  const compressed = async (answer: InternalAnswer, { header }: RoomQuestion): Promise<InternalAnswer> => {
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

  const snapshot = async ({ state, last }: Snapshot): Promise<InternalAnswer> => ({
    status: 200,
    name: "snapshot",
    headers: { "content-type": BINARY, ...(last && { "x-coroom-last-edit": `${last.client}.${last.counter}` }) },
    body: state,
  });

  const json = async ({ state }: Snapshot, { query }: RoomQuestion): Promise<InternalAnswer> => {
    const wanted = wantedOf(query.getAll("type"));
    if (wanted === undefined) {
      return refusal(
        400,
        "bad-type",
        `name up to ${WANTED_MAX} shared types, each once, with their kinds: ?type=title:text&type=items:array; a kind is ${KINDS.join(", ")}`,
      );
    }
    const made = await renditions.get(state, `json ${JSON.stringify(wanted)}`, () => reading.json(state, wanted), isRead);
    return isRead(made) ? { status: 200, name: "json", headers: { "content-type": "application/json" }, body: made } : unread(made);
  };

  const text = async ({ state }: Snapshot, { query }: RoomQuestion): Promise<InternalAnswer> => {
    const name = query.get("type") ?? undefined;
    const made = await renditions.get(state, `text ${JSON.stringify(name)}`, () => reading.text(state, name), isRead);
    if (!isRead(made)) return unread(made);
    if (made.kind === "no-such-text") {
      return refusal(
        404,
        "no-such-text",
        made.names.length === 0
          ? "there is no text in this document: read it as JSON"
          : `name one of its texts: ?type=${made.names.slice(0, WANTED_MAX).map(encodeURIComponent).join(", ?type=")}`,
      );
    }
    return { status: 200, name: "text", headers: { "content-type": "text/plain; charset=utf-8" }, body: made.text };
  };

  const diff = async (question: RoomQuestion): Promise<InternalAnswer> => {
    const vector = await question.body();
    if (vector === undefined) return TOO_LARGE;
    if (vector.byteLength === 0) return refusal(400, "bad-vector", "send the state vector as the body: Y.encodeStateVector(doc)");
    const served = await documents.serve(question.room, "newest");
    if (served.kind !== "snapshot") return unserved(served);
    const made = await reading.diff(served.state, vector);
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

function headersOf({ epoch, seq }: Position): Readonly<Record<string, string>> {
  return { "x-coroom-seq": String(seq), "x-coroom-epoch": String(epoch), "etag": `"${epoch}-${seq}"`, "vary": "accept-encoding" };
}

/** Whatever way it was encoded. */
function knows(ifNoneMatch: string, { epoch, seq }: Position): boolean {
  return ifNoneMatch.split(",").some(
    (tag) =>
      tag
        .trim()
        .replace(/^W\//, "")
        .replace(/-gzip"$/, '"') === `"${epoch}-${seq}"`,
  );
}

/** Undefined: not well put. */
function wantedOf(types: readonly string[]): readonly Wanted[] | undefined {
  const wanted = types.flatMap((type): Wanted[] => {
    const at = type.lastIndexOf(":");
    const kind = KINDS.find((known) => known === type.slice(at + 1));
    return at < 0 || kind === undefined ? [] : [{ name: type.slice(0, at), kind }];
  });
  const names = new Set(wanted.map(({ name }) => name)); // Yjs gives a shared type one kind for good.
  return names.size === types.length && types.length <= WANTED_MAX ? wanted : undefined;
}

function unserved(served: Exclude<Served, { kind: "snapshot" }>): InternalAnswer {
  switch (served.kind) {
    case "no-document":
      return refusal(404, "no-document", "this room never had an edit");
    case "not-a-document":
      return refusal(404, "not-a-document", "this room's edits are no Yjs updates: there is no snapshot of them, join from the start");
    case "deleted":
      return DELETED;
    case "loading":
      return refusal(503, "loading", "this room's document is not ready: ask again");
    default:
      return assertNever(served);
  }
}
