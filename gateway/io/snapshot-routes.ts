/** Snapshots for clients: checks the token as a join would, then passes the document service's answer on, one for all who ask at once. */

import type { Clock } from "../../shared/clock.ts";
import { parseRoomId } from "../../shared/ids.ts";
import { admit } from "../identity.ts";
import type { GatewayMetrics } from "../metrics.ts";
import type { Tokens } from "../ports.ts";
import { type Rate, TokenBucket } from "../rate-limit.ts";
import { ReaderRates } from "../reader-rates.ts";
import { askServices, decodeParameter, identify } from "./ask-services.ts";
import { errorAnswer, type HttpAnswer, type HttpQuestion, type HttpRoute, jsonAnswer } from "./http-routes.ts";
import type { Services } from "./nats-services.ts";
import { SharedAnswers, type SharedAnswersOptions } from "./shared-answers.ts";

const TOO_FAST = jsonAnswer(429, { error: "rate-limited", message: "too many snapshots at once: ask again later" }, { "retry-after": "2" });
const UNAVAILABLE = errorAnswer(503, "unavailable", "no document service answers right now: try again in a moment");

export type SnapshotRouteOptions = { readonly internalSecret: string; readonly eachUser: Rate; readonly everybody: Rate; readonly readersMax: number; readonly shared: SharedAnswersOptions };

export function snapshotRoutes(tokens: Tokens, documents: Services, options: SnapshotRouteOptions, { clock, metrics }: { clock: Clock; metrics: GatewayMetrics }): HttpRoute[] {
  const rates = new ReaderRates(options.eachUser, options.readersMax);
  const answers = new SharedAnswers(options.shared, clock);
  /** Whoever asked first may go away before the others have their answer. */
  const forAll = { signal: new AbortController().signal };
  const everybody = new TokenBucket(options.everybody, clock.now());

  const tooFast = (limit: "snapshots" | "gateway-snapshots"): HttpAnswer => {
    metrics.limitsReached.inc({ limit });
    return TOO_FAST;
  };

  const answer = async (question: HttpQuestion): Promise<HttpAnswer> => {
    const identity = await identify(question, tokens);
    if ("status" in identity) return identity;
    const room = parseRoomId(decodeParameter(question.parameters[0] ?? ""));
    if (room === undefined) return errorAnswer(404, "no-such-room", "a room id has 1 to 128 characters and no control characters");
    const admission = admit(identity, room);
    if (admission.kind === "refused") return errorAnswer(403, "not-allowed", admission.why);
    if (!rates.take(`${identity.tenant} ${identity.user}`, clock.now())) return tooFast("snapshots");
    if (!everybody.take(clock.now())) return tooFast("gateway-snapshots");
    const ifNoneMatch = question.header("if-none-match");
    const asked = { path: `/v1/rooms/${encodeURIComponent(room)}/snapshot`, tenant: identity.tenant, headers: ifNoneMatch === "" ? {} : { "if-none-match": ifNoneMatch } };
    return (await answers.get(`${asked.tenant} ${ifNoneMatch} ${asked.path}`, () => askServices(documents, asked, forAll, options))) ?? UNAVAILABLE;
  };
  return [{ method: "get", path: "/v1/rooms/:room/snapshot", answer }];
}
