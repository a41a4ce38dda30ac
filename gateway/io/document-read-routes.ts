/**
 * Documents for clients and backends: checks the token as a join would, then passes on what the document service
 * answers, one answer for all who ask for the same at once. Described in `document-service/openapi.json`.
 */

import type { Clock } from "../../shared/clock.ts";
import { type RoomId, type RoomKey, roomKey } from "../../shared/ids.ts";
import type { Identity } from "../sessions/identity.ts";
import type { GatewayMetrics } from "../metrics.ts";
import { type Rate, TokenBucket } from "../../shared/token-bucket.ts";
import { ReaderRates } from "../limits/reader-rates.ts";
import type { RoomHost } from "../rooms/room-host.ts";
import { type Asked, askServices, identify } from "./ask-services.ts";
import { errorAnswer, type HttpAnswer, type HttpQuestion, type HttpRoute, jsonAnswer } from "./http-routes.ts";
import type { HttpTokens } from "./http-tokens.ts";
import type { Services } from "./nats-services.ts";
import { admittedRoom } from "./rooms-asked.ts";
import { SharedAnswers, type SharedAnswersOptions } from "./shared-answers.ts";
import type { StreamedAnswers } from "./streamed-answers.ts";

const TOO_FAST = jsonAnswer(429, { error: "rate-limited", message: "too many documents at once: ask again later" }, { "retry-after": "2" });
export const NO_DOCUMENT_SERVICE = errorAnswer(503, "unavailable", "no document service answers right now: try again in a moment");
/** Whoever asked first may go away before the others have their answer: nothing ends it. */
const FOR_ALL = {};
/** What of the query is passed on. */
const PARAMETERS = ["type", "minSeq"];
/** Of a document that a thousand people wrote. */
const VECTOR_BYTES_MAX = 65_536;

/** `rooms`: how far each is, where this gateway hears it. */
export type DocumentReadPorts = {
  readonly tokens: HttpTokens;
  readonly documents: Services;
  readonly streamed: StreamedAnswers;
  readonly rooms: Pick<RoomHost, "positionOf">;
};
export type DocumentReadOptions = {
  readonly internalSecret: string;
  readonly eachUser: Rate;
  readonly everybody: Rate;
  readonly readersMax: number;
  readonly shared: SharedAnswersOptions;
};

export function documentReadRoutes(
  { tokens, documents, streamed, rooms }: DocumentReadPorts,
  options: DocumentReadOptions,
  { clock, metrics }: { clock: Clock; metrics: GatewayMetrics },
): HttpRoute[] {
  const rates = new ReaderRates(options.eachUser, options.readersMax);
  const answers = new SharedAnswers(options.shared, clock);
  const everybody = new TokenBucket(options.everybody, clock.now());

  const tooFast = (limit: "snapshots" | "gateway-snapshots"): HttpAnswer => {
    metrics.limitsReached.inc({ limit });
    return TOO_FAST;
  };

  const refuseTooFast = (identity: Identity): HttpAnswer | undefined => {
    if (!rates.take(readerOf(identity), clock.now())) return tooFast("snapshots");
    return everybody.take(clock.now()) ? undefined : tooFast("gateway-snapshots");
  };

  const asked = async (
    question: HttpQuestion,
    place: string,
  ): Promise<(Asked & { readonly reader: string; readonly room: RoomId }) | HttpAnswer> => {
    const identity = await identify(question, tokens);
    if ("status" in identity) return identity;
    const room = admittedRoom(question, identity);
    if (typeof room !== "string") return room;
    const refused = refuseTooFast(identity);
    if (refused !== undefined) return refused;
    const query = new URLSearchParams([...question.query].filter(([name]) => PARAMETERS.includes(name))).toString();
    return {
      path: `/v1/rooms/${encodeURIComponent(room)}/${place}${query === "" ? "" : `?${query}`}`,
      tenant: identity.tenant,
      headers: headersFor(question),
      reader: readerOf(identity),
      room,
    };
  };

  /** Whether an answer has all that there is in the room, and nothing has come there since it was asked for. */
  const currency = (room: RoomKey): ((answer: HttpAnswer) => boolean) => {
    const then = rooms.positionOf(room);
    return ({ headers }) => {
      const now = rooms.positionOf(room);
      return then !== undefined && now?.seq === then.seq && now.epoch === then.epoch && headers?.["x-coroom-seq"] === String(now.seq);
    };
  };

  const shared =
    (place: string) =>
    async (question: HttpQuestion): Promise<HttpAnswer> => {
      const given = await asked(question, place);
      if ("status" in given) return given;
      const { path, tenant, headers, reader, room } = given;
      return streamed.pass(
        reader,
        (await answers.get(
          `${tenant} ${JSON.stringify(headers)} ${path}`,
          () => askServices(documents, given, FOR_ALL, options),
          currency(roomKey(tenant, room)),
        )) ?? NO_DOCUMENT_SERVICE,
      );
    };

  const diff = async (question: HttpQuestion): Promise<HttpAnswer> => {
    const given = await asked(question, "diff");
    if ("status" in given) return given;
    return streamed.pass(
      given.reader,
      (await askServices(documents, { ...given, method: "POST", body: question.body }, question, options)) ?? NO_DOCUMENT_SERVICE,
    );
  };

  return [
    ...["snapshot", "document", "text"].map((place): HttpRoute => ({
      method: "get",
      path: `/v1/rooms/:room/${place}`,
      answer: shared(place),
    })),
    { method: "post", path: "/v1/rooms/:room/diff", answer: diff, bodyBytesMax: VECTOR_BYTES_MAX },
  ];
}

function readerOf({ tenant, user }: Identity): string {
  return `${tenant} ${user}`;
}

function headersFor({ header }: HttpQuestion): Record<string, string> {
  const ifNoneMatch = header("if-none-match");
  return {
    ...(ifNoneMatch === "" ? {} : { "if-none-match": ifNoneMatch }),
    ...(takesGzip(header("accept-encoding")) ? { "x-coroom-accept": "gzip" } : {}),
  };
}

function takesGzip(acceptEncoding: string): boolean {
  return acceptEncoding.split(",").some((part) => {
    const [name = "", quality = "q=1"] = part.split(";").map((text) => text.trim().toLowerCase());
    return (name === "gzip" || name === "*") && Number(quality.replace("q=", "")) > 0;
  });
}
