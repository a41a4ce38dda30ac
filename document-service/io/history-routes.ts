/**
 * The HTTP routes of a room's history, for gateways: its versions, its state at a seq or a time, its writing sessions,
 * and the edit that restores an old state. The gateway sends that edit like any other edit.
 */

import { z } from "zod";

import { assertNever } from "../../shared/assert.ts";
import { type RoomKey, type Seq, type TenantId, tenantOf, type UnixMillis } from "../../shared/ids.ts";
import { parseWholeNumber } from "../../shared/limits/whole-number.ts";
import type { Log } from "../../shared/process/log.ts";
import { rethrowMistake } from "../../shared/time/pause.ts";
import { type InternalResponse, jsonResponse, refusal } from "../../shared/io/internal-http.ts";
import { parseJson } from "../../shared/parse-json.ts";
import { FairQueue } from "../../shared/limits/fair-queue.ts";
import { readableFrom, type DocumentVersion } from "../history/history.ts";
import type { HistoryMoment, HistoryRefusal } from "../history/history-reads.ts";
import type { HistoryReadsHost } from "../history/history-reads-host.ts";
import { DELETED } from "./write-routes.ts";
import { type RoomQuestion, type RoomRoute, unread } from "./http.ts";

const NAME_CHARACTERS_MAX = 128;
/** A name is well-formed text without control characters, like a room or a user. */
const NewVersion = z.strictObject({
  name: z
    .string()
    .min(1)
    .max(NAME_CHARACTERS_MAX)
    .refine((name) => name.isWellFormed() && !/\p{Cc}/u.test(name)),
});
const BINARY = { "content-type": "application/octet-stream" };
const LOADING = refusal(503, "loading", "this room's history is not ready: ask again");

/**
 * Maximum number of requests that a process answers at once. A read of the history may take a log and a history of any
 * length. A request to name a version holds a document until its room has stored the versions before it. So tenants and
 * their rooms take turns, by the time that each used.
 */
const REQUESTS_AT_ONCE = 8;
/** A tenant has at most six of them, and the last one is for a tenant that has none. So no tenant waits for another's long reads. */
const OF_TENANT_AT_ONCE = 6;

type Ask = (history: HistoryReadsHost, question: RoomQuestion) => Promise<InternalResponse>;

/** `host.historyReads` is undefined where another service serves the room. */
export function historyRoutes(
  host: { historyReads(room: RoomKey): Promise<HistoryReadsHost | "deleted" | undefined> },
  log: Log,
): RoomRoute[] {
  /** A failure of a store gets the same answer as a history that is not available yet. */
  const asked =
    (ask: Ask) =>
    async (question: RoomQuestion): Promise<InternalResponse> => {
      const history = await host.historyReads(question.room);
      if (history === undefined) return LOADING;
      if (history === "deleted") return DELETED;
      try {
        return await ask(history, question);
      } catch (cause) {
        rethrowMistake(cause);
        log.warn({ room: question.room, cause }, "a room's history could not be read or written; the client asks again");
        return LOADING;
      }
    };
  const takeTurn = fairTurns();
  /** The room may leave memory while the request waits, and would receive no more edits. So it is looked up again at its turn. */
  const askedInTurn = (ask: Ask) =>
    asked((_, question) => takeTurn(question.room, async () => (question.signal.aborted ? LOADING : asked(ask)(question))));
  return [
    { method: "GET", place: "versions", answer: asked(listVersions) },
    { method: "POST", place: "versions", answer: askedInTurn(nameVersion) },
    { method: "DELETE", place: "versions/:version", answer: asked(removeVersion) },
    { method: "GET", place: "past", answer: askedInTurn(readEarlierState) },
    { method: "GET", place: "sessions", answer: askedInTurn(readSessions) },
    { method: "POST", place: "revert", answer: askedInTurn(revert) },
  ];
}

function fairTurns(): (room: RoomKey, run: () => Promise<InternalResponse>) => Promise<InternalResponse> {
  const waiting = new FairQueue<() => void>(Number.POSITIVE_INFINITY);
  /** The tenant of each request that is being answered. */
  const running: TenantId[] = [];
  const mayRun = (tenant: TenantId): boolean => {
    const ofTenant = running.filter((other) => other === tenant).length;
    return ofTenant < (running.length < REQUESTS_AT_ONCE - 1 ? OF_TENANT_AT_ONCE : 1);
  };
  const startNext = (): void => {
    while (running.length < REQUESTS_AT_ONCE) {
      const start = waiting.next(mayRun);
      if (start === undefined) return;
      start();
    }
  };
  return async (room, run) => {
    const tenant = tenantOf(room);
    await new Promise<void>((resolve) => {
      waiting.add(room, () => {
        running.push(tenant);
        resolve();
      });
      startNext();
    });
    const begun = performance.now();
    try {
      return await run();
    } finally {
      waiting.charge(room, performance.now() - begun);
      running.splice(running.indexOf(tenant), 1);
      startNext();
    }
  };
}

async function listVersions(history: HistoryReadsHost): Promise<InternalResponse> {
  const listed = await history.list();
  return jsonResponse(200, "versions", { versions: listed.versions.map(shown), readableFrom: readableFrom(listed) ?? null });
}

async function nameVersion(history: HistoryReadsHost, { body }: RoomQuestion): Promise<InternalResponse> {
  const { data } = NewVersion.safeParse(parseJson(new TextDecoder().decode(await body())));
  if (data === undefined)
    return refusal(
      400,
      "bad-name",
      `send {"name": …} without other fields, and with a name of 1 to ${NAME_CHARACTERS_MAX} characters, without control characters such as a line break`,
    );
  const named = await history.name(data.name);
  switch (named.kind) {
    case "named":
      return jsonResponse(201, "named", shown(named.version));
    case "too-many":
      return refusal(409, "too-many-versions", "the room has as many named versions as it may: remove one first");
    case "deleted":
      return DELETED;
    case "no-document":
      return refusal(404, "no-document", "this room never had an edit");
    case "loading":
      return LOADING;
    default:
      return assertNever(named);
  }
}

async function removeVersion(history: HistoryReadsHost, { parameters: [id = ""] }: RoomQuestion): Promise<InternalResponse> {
  return (await history.removeVersion(id))
    ? { status: 204, name: "removed" }
    : refusal(404, "no-such-version", "the room has no such version: GET versions lists them");
}

async function readEarlierState(history: HistoryReadsHost, question: RoomQuestion): Promise<InternalResponse> {
  const moment = momentOf(question);
  if ("status" in moment) return moment;
  const found = await history.readAt(moment, question.signal);
  if (found.kind !== "state") return refusedState(found);
  return {
    status: 200,
    name: "past",
    headers: { ...BINARY, "x-coroom-seq": found.position.seq, "x-coroom-epoch": found.position.epoch },
    body: found.state,
  };
}

async function readSessions(history: HistoryReadsHost, { query, signal }: RoomQuestion): Promise<InternalResponse> {
  const from = parseWholeNumber(query.get("from") ?? "1");
  if (from === undefined || from < 1)
    return refusal(400, "bad-seq", "from is a seq in decimal digits, 1 or more: continue with `through` + 1");
  return jsonResponse(200, "sessions", await history.sessions(from as Seq, signal));
}

async function revert(history: HistoryReadsHost, question: RoomQuestion): Promise<InternalResponse> {
  const moment = momentOf(question);
  if ("status" in moment) return moment;
  const reverted = await history.revert(moment, question.signal);
  switch (reverted.kind) {
    case "edit":
      return { status: 200, name: "revert", headers: BINARY, body: reverted.edit };
    case "unchanged":
      return refusal(409, "unchanged", "the document is as it was then: nothing was written");
    case "unfit":
      return refusal(
        413,
        "too-large",
        `one edit cannot restore this state, because clients would refuse it (${reverted.why}), and nothing was written: restore a later state, or copy its content into another room`,
      );
    default:
      return refusedState(reverted);
  }
}

/** In milliseconds this is March 1973, in seconds the year 5138. So a smaller time is one in seconds. */
const MILLIS_MIN = 1e11;

/** Refuses a time in seconds: read as milliseconds it lies before every edit, and a restore would empty the document. */
function momentOf({ query }: RoomQuestion): HistoryMoment | InternalResponse {
  const [seq, time] = [query.get("seq"), query.get("time")];
  const number = parseWholeNumber(seq ?? time ?? "");
  if ((seq === null) === (time === null) || number === undefined) {
    return refusal(400, "bad-moment", "name one moment in decimal digits: seq=, or time= in milliseconds since 1970");
  }
  if (seq !== null) return { seq: number as Seq };
  if (number < MILLIS_MIN) {
    return refusal(400, "bad-moment", "time is in milliseconds since 1970, and this value seems to be in seconds: multiply it by 1000");
  }
  return { time: number as UnixMillis };
}

function refusedState(found: HistoryRefusal): InternalResponse {
  switch (found.kind) {
    case "not-yet":
      return refusal(
        404,
        "not-yet",
        found.head === 0
          ? "the room has no edit yet: ask again after its first edit"
          : `the newest seq of the room is ${found.head}: ask for this seq or an earlier one`,
      );
    case "not-kept":
      return refusal(
        410,
        "not-kept",
        "this state is not kept: GET versions shows readableFrom, the first seq that can be read. If it is null, only edits that the log still has can be read: GET the document for the newest state",
      );
    case "too-much":
      return refusal(
        413,
        "too-much",
        "more edits lie between that seq and the version before it than one question may read: ask for a version's seq",
      );
    case "loading":
      return LOADING;
    case "unreadable":
      return unread("unreadable");
    default:
      return assertNever(found);
  }
}

function shown({ id, seq, epoch, time, name, bytes }: DocumentVersion): object {
  return { id, seq, epoch, time, name: name ?? null, bytes };
}
