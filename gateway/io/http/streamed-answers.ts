/**
 * Limits answers that are streamed from a service. A streamed answer holds a connection to the service until the client
 * has read it, which may take minutes. The limits, per user and in total, keep connections free for answers that are
 * read immediately. Tenants share the total as they share the connections (`tenant-turns.ts`), because a tenant may
 * have any number of users.
 */

import type { TenantId } from "../../../shared/ids.ts";
import { rethrowMistake } from "../../../shared/time/pause.ts";
import type { GatewayMetrics } from "../../metrics.ts";
import type { HttpAnswer } from "../../http/answers.ts";
import { TOO_MANY_STREAMS } from "../../http/document-requests.ts";
import { tenantShares } from "../../limits/tenant-turns.ts";
import { userKey } from "../../limits/quotas.ts";
import type { Identity } from "../../sessions/identity.ts";
import { discardBody } from "./serve-routes.ts";

type Reader = Pick<Identity, "tenant" | "user">;
/** Concurrent streams per user, and at this gateway. */
type StreamedAnswersOptions = { readonly eachMax: number; readonly allMax: number };

export class StreamedAnswers {
  readonly #options: StreamedAnswersOptions;
  readonly #metrics: GatewayMetrics;
  readonly #byUser = new Map<string, number>();
  readonly #byTenant = new Map<TenantId, number>();
  #all = 0;

  constructor(options: StreamedAnswersOptions, metrics: GatewayMetrics) {
    this.#options = options;
    this.#metrics = metrics;
  }

  /** Passes an answer that is held in memory, and counts one that is streamed. */
  pass(reader: Reader, answer: HttpAnswer): HttpAnswer {
    const { body } = answer;
    if (body === undefined || typeof body === "string" || body instanceof Uint8Array) return answer;
    const limit = this.#limitMet(reader);
    if (limit === undefined) return { ...answer, body: this.#counted(reader, body) };
    this.#metrics.limitsReached.inc({ limit });
    discardBody(body).catch(rethrowMistake); // The service may end the body early, and no request waits for it.
    return TOO_MANY_STREAMS;
  }

  #limitMet(reader: Reader): "streams" | "gateway-streams" | undefined {
    const { eachMax, allMax } = this.#options;
    if ((this.#byUser.get(userKey(reader)) ?? 0) >= eachMax) return "streams";
    const ofTenant = this.#byTenant.get(reader.tenant) ?? 0;
    const shares = tenantShares(allMax);
    const isFull = ofTenant >= shares.eachMax || this.#all >= (ofTenant === 0 ? allMax : shares.furtherMax);
    return isFull ? "gateway-streams" : undefined;
  }

  #counted(reader: Reader, body: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
    this.#count(reader, 1);
    const ended = (): void => this.#count(reader, -1);
    return (async function* () {
      try {
        yield* body;
      } finally {
        ended();
      }
    })();
  }

  #count(reader: Reader, more: 1 | -1): void {
    this.#all += more;
    countOn(this.#byUser, userKey(reader), more);
    countOn(this.#byTenant, reader.tenant, more);
  }
}

function countOn<Key>(counts: Map<Key, number>, key: Key, more: 1 | -1): void {
  const count = (counts.get(key) ?? 0) + more;
  if (count === 0) counts.delete(key);
  else counts.set(key, count);
}
