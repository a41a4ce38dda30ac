/**
 * Limits answers that are streamed from a service. A streamed answer holds a connection to the service until the client
 * has read it, which may take minutes. The limits, per user and in total, keep connections free for answers that are
 * read immediately.
 */

import type { GatewayMetrics } from "../../metrics.ts";
import type { HttpAnswer } from "../../http/answers.ts";
import { TOO_MANY_STREAMS } from "../../http/document-requests.ts";
import { discardBody } from "./serve-routes.ts";

/** Concurrent streams per user, and at this gateway. */
type StreamedAnswersOptions = { readonly eachMax: number; readonly allMax: number };

export class StreamedAnswers {
  readonly #options: StreamedAnswersOptions;
  readonly #metrics: GatewayMetrics;
  readonly #byUser = new Map<string, number>();
  #all = 0;

  constructor(options: StreamedAnswersOptions, metrics: GatewayMetrics) {
    this.#options = options;
    this.#metrics = metrics;
  }

  /** Passes an answer that is held in memory, and counts one that is streamed. */
  pass(user: string, answer: HttpAnswer): HttpAnswer {
    const { body } = answer;
    if (body === undefined || typeof body === "string" || body instanceof Uint8Array) return answer;
    const limit = this.#limitMet(user);
    if (limit === undefined) return { ...answer, body: this.#counted(user, body) };
    this.#metrics.limitsReached.inc({ limit });
    discardBody(body).catch(() => {}); // The body ended early, and no request waits for it.
    return TOO_MANY_STREAMS;
  }

  #limitMet(user: string): "streams" | "gateway-streams" | undefined {
    if ((this.#byUser.get(user) ?? 0) >= this.#options.eachMax) return "streams";
    return this.#all >= this.#options.allMax ? "gateway-streams" : undefined;
  }

  #counted(user: string, body: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
    this.#count(user, 1);
    const ended = (): void => this.#count(user, -1);
    return (async function* () {
      try {
        yield* body;
      } finally {
        ended();
      }
    })();
  }

  #count(user: string, more: 1 | -1): void {
    const count = (this.#byUser.get(user) ?? 0) + more;
    this.#all += more;
    if (count === 0) this.#byUser.delete(user);
    else this.#byUser.set(user, count);
  }
}
