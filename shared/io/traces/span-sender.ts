/**
 * Sends spans to a collector in batches, as OTLP over HTTP in JSON. Traces are less important than edits: spans above
 * the limits, and spans that the collector refuses, are counted and dropped. Without spans the sender does nothing.
 */

import type { Log } from "../../process/log.ts";
import { TRACES_PATH } from "../../settings/traces-settings.ts";
import { encodeSpans, type Span, type SpanAttributes, type UnixMicros } from "./span.ts";
import type { TraceMetrics } from "./trace-metrics.ts";

type SpanSenderOptions = {
  /** The accepted value of the setting: not empty. */
  readonly url: string;
  readonly resource: SpanAttributes;
  readonly waitingMax?: number;
};

/** Spans that wait for the next batch. */
const WAITING_MAX = 4_096;
const SENT_AT_ONCE_MAX = 512;
const EVERY_MS = 1_000;
const ANSWER_MS_MAX = 3_000;

export class SpanSender {
  readonly #url: string;
  readonly #headers: Record<string, string>;
  readonly #resource: SpanAttributes;
  readonly #waitingMax: number;
  readonly #log: Log;
  readonly #metrics: TraceMetrics;
  #waiting: Span[] = [];
  #timer: NodeJS.Timeout | undefined;
  #sending: Promise<void> | undefined;
  #isRefused = false;

  constructor({ url, resource, waitingMax = WAITING_MAX }: SpanSenderOptions, { log, metrics }: { log: Log; metrics: TraceMetrics }) {
    const { origin, pathname, username, password } = new URL(url);
    const user = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
    this.#url = `${origin}${pathname.replace(/\/+$/, "")}${TRACES_PATH}`;
    this.#headers = {
      "content-type": "application/json",
      ...(user === ":" ? {} : { authorization: `Basic ${Buffer.from(user).toString("base64")}` }),
    };
    this.#resource = resource;
    this.#waitingMax = waitingMax;
    this.#log = log;
    this.#metrics = metrics;
  }

  send(span: Span): void {
    if (this.#waiting.length >= this.#waitingMax) return this.#metrics.spans.inc({ outcome: "dropped" });
    this.#waiting.push(span);
    this.#sendLater();
  }

  /** Resolves once the waiting spans were sent or refused. */
  async stop(): Promise<void> {
    clearTimeout(this.#timer);
    await this.#sending;
    await this.#sendAll();
    clearTimeout(this.#timer);
  }

  #sendLater(): void {
    this.#timer ??= setTimeout(() => {
      this.#sending = this.#sendAll().finally(() => {
        this.#timer = undefined;
        if (this.#waiting.length > 0) this.#sendLater();
      });
    }, EVERY_MS);
  }

  async #sendAll(): Promise<void> {
    for (let left = this.#waiting.length; left > 0; left -= SENT_AT_ONCE_MAX) {
      const spans = this.#waiting.splice(0, SENT_AT_ONCE_MAX);
      const refused = await this.#post(encodeSpans(this.#resource, spans));
      this.#metrics.spans.inc({ outcome: refused === undefined ? "sent" : "refused" }, spans.length);
      this.#logOutcome(refused);
      if (refused !== undefined) return; // All remaining spans go with the next batch.
    }
  }

  /** Returns the status, or the cause of the failure. */
  async #post(body: string): Promise<{ readonly status: number } | { readonly cause: unknown } | undefined> {
    try {
      const {
        ok,
        status,
        body: answer,
      } = await fetch(this.#url, {
        method: "POST",
        headers: this.#headers,
        body,
        redirect: "error",
        signal: AbortSignal.timeout(ANSWER_MS_MAX),
      });
      await answer?.cancel();
      return ok ? undefined : { status };
    } catch (cause) {
      return { cause }; // Any error of fetch, also a late answer: the batch may have arrived, and is not sent again.
    }
  }

  #logOutcome(refused: object | undefined): void {
    if (this.#isRefused === (refused !== undefined)) return;
    this.#isRefused = refused !== undefined;
    if (refused === undefined) this.#log.info({}, "the collector takes traces again");
    else this.#log.warn(refused, "the collector does not take traces, and they are lost: is COROOM_TRACES_URL right, and does it run?");
  }
}

/** The steady clock drifts from the date, which may also be set. */
const DRIFT_MS_MAX = 5;

/** The date, precise enough to order hops: `Date.now` alone would leave the hops of one millisecond unordered. */
export function steadyDate(): () => UnixMicros {
  let began = performance.timeOrigin;
  return () => {
    const [steady, date] = [performance.now(), Date.now()];
    if (Math.abs(date - began - steady) > DRIFT_MS_MAX) began = date - steady;
    return Math.round((began + steady) * 1_000);
  };
}
