/**
 * Answers that are passed on as they come: each holds a connection to its service until whoever asked has taken all
 * of it, which may be minutes. So many are under way at once, of one user and of all, that some connections stay free
 * for answers that are taken at once.
 */

import type { GatewayMetrics } from "../metrics.ts";
import { type HttpAnswer, jsonAnswer, letGo } from "./http-routes.ts";

/** At once: of one user, and of all at this gateway. */
export type StreamedAnswersOptions = { readonly eachMax: number; readonly allMax: number };

const TOO_MANY = jsonAnswer(
  429,
  { error: "rate-limited", message: "too many long answers are on their way at once: take those that were asked for, and ask again later" },
  { "retry-after": "5" },
);

export class StreamedAnswers {
  readonly #options: StreamedAnswersOptions;
  readonly #metrics: GatewayMetrics;
  readonly #byUser = new Map<string, number>();
  #all = 0;

  constructor(options: StreamedAnswersOptions, metrics: GatewayMetrics) {
    this.#options = options;
    this.#metrics = metrics;
  }

  /** What is held whole passes. */
  pass(user: string, answer: HttpAnswer): HttpAnswer {
    const { body } = answer;
    if (body === undefined || typeof body === "string" || body instanceof Uint8Array) return answer;
    const limit = this.#limitMet(user);
    if (limit === undefined) return { ...answer, body: this.#counted(user, body) };
    this.#metrics.limitsReached.inc({ limit });
    letGo(body).catch(() => {}); // It broke off: nobody waits for it.
    return TOO_MANY;
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
