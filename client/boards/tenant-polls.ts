/**
 * When a tenant's board is requested, and what each answer means. Requests follow each other at the interval that the
 * server sets (max-age), with jitter, and only while the page is visible. Failures are followed by growing waits, never
 * shorter than the server asks for: after `retry-after: 5` no request follows within 5 s. Deterministic. Rules TWB1 to TWB9.
 */

import { assertNever } from "../../shared/assert.ts";
import type { Millis } from "../../shared/ids.ts";
import type { JsonAnswer } from "../ports.ts";
import { errorOf, isNothingCounted, unreadableBoard } from "./board-answers.ts";

/** The parts of a page that are used. `leaderboard/openapi.json` describes it. */
type TenantPage = {
  readonly window: { readonly id: string };
  readonly isBehind: boolean;
  readonly points: number;
  readonly ranking: readonly object[];
  /** On the board of rooms, the number of people. */
  readonly people?: number;
  readonly members?: number;
  readonly rooms?: number;
};

/**
 * `waiting`: no answer yet. `live`: up to date. `behind`: the content is an earlier one. `unavailable`: nothing could be
 * read yet. `stopped`: the board cannot be read.
 */
export type TenantBoardState = "waiting" | "live" | "behind" | "unavailable" | "stopped";

export type TenantBoardFacts = {
  readonly state: TenantBoardState;
  /** Undefined: nothing was read yet, or nothing was counted in the window. */
  readonly page: TenantPage | undefined;
  /** Why the last request failed. */
  readonly error: Error | undefined;
};

export type TenantPollInput =
  | { readonly kind: "visibility"; readonly isVisible: boolean }
  | { readonly kind: "network-back" }
  | { readonly kind: "answer"; readonly answer: JsonAnswer }
  /** The server did not answer, or the application's token function failed. */
  | { readonly kind: "no-answer"; readonly error: Error }
  | { readonly kind: "tick" };

export type TenantPollEffect =
  /** Request the page. Answer with "answer" or "no-answer". */
  | { readonly kind: "ask"; readonly token: "known" | "new"; readonly etag: string }
  | { readonly kind: "show"; readonly facts: TenantBoardFacts };

export type TenantPollOptions = {
  /** Interval if the server sets none. */
  readonly intervalMs: number;
  /** Intervals that the server may set. */
  readonly intervalMsMin: number;
  readonly intervalMsMax: number;
  readonly retryMsMin: number;
  readonly retryMsMax: number;
  /** The longest jitter of a request after the network is back. */
  readonly networkBackMs: number;
  /** The token never changes: once it has expired, no request succeeds. */
  readonly tokenIsFixed: boolean;
};

/** Part of an interval or wait that is added at random, so that clients which began together spread. */
const JITTER = 0.5;

export class TenantPolls {
  readonly #options: TenantPollOptions;
  readonly #unit: () => number;
  #facts: TenantBoardFacts = { state: "waiting", page: undefined, error: undefined };
  #etag = "";
  #isVisible = true;
  /** The token of the request that is under way. Undefined: none is. */
  #asking: "known" | "new" | undefined;
  #hasToken = false;
  #failures = 0;
  /** The server did not answer, so the network's return may help. */
  #isUnreachable = false;
  /** Undefined: stopped. */
  #dueAt: Millis | undefined;

  /** `unit`: returns a number in [0, 1). */
  constructor(options: TenantPollOptions, unit: () => number, now: Millis) {
    this.#options = options;
    this.#unit = unit;
    this.#dueAt = now;
  }

  /** Time of the next "tick". Undefined: nothing is to be done before another input. */
  get dueAt(): Millis | undefined {
    return this.#asking === undefined && this.#isVisible ? this.#dueAt : undefined;
  }

  receiveInput(input: TenantPollInput, now: Millis): TenantPollEffect[] {
    switch (input.kind) {
      case "visibility":
        this.#isVisible = input.isVisible;
        return this.#askIfDue(now);
      case "network-back":
        if (this.#isUnreachable && this.#dueAt !== undefined)
          this.#dueAt = Math.min(this.#dueAt, now + this.#unit() * this.#options.networkBackMs) as Millis;
        return this.#askIfDue(now);
      case "answer":
        return this.#receiveAnswer(input.answer, now);
      case "no-answer":
        this.#asking = undefined;
        this.#isUnreachable = true;
        return this.#fail(input.error, 0, now);
      case "tick":
        return this.#askIfDue(now);
      default:
        return assertNever(input);
    }
  }

  #askIfDue(now: Millis): TenantPollEffect[] {
    if (this.dueAt === undefined || now < this.dueAt) return [];
    return this.#ask(this.#hasToken ? "known" : "new");
  }

  #ask(token: "known" | "new"): TenantPollEffect[] {
    this.#asking = token;
    return [{ kind: "ask", token, etag: this.#etag }];
  }

  #receiveAnswer(answer: JsonAnswer, now: Millis): TenantPollEffect[] {
    const token = this.#asking;
    this.#asking = undefined;
    this.#isUnreachable = false;
    const { status, body, maxAgeMs = this.#options.intervalMs, etag = "" } = answer;
    this.#hasToken = status !== 401 && status !== 403;
    if (!this.#hasToken && token === "known") return this.#ask("new"); // The token has expired, or rights were changed.
    if (status === 304) return this.#succeed({ ...this.#facts, error: undefined, state: stateOf(this.#facts.page) }, maxAgeMs, now);
    if (status === 200 && isPage(body)) {
      this.#etag = etag;
      return this.#succeed({ state: stateOf(body), page: body, error: undefined }, maxAgeMs, now);
    }
    if (isNothingCounted(answer)) {
      this.#etag = "";
      return this.#succeed({ state: "live", page: undefined, error: undefined }, maxAgeMs, now);
    }
    const failure = unreadableBoard(answer);
    if (this.#isFinal(status, errorOf(answer))) {
      this.#dueAt = undefined;
      return this.#show({ state: "stopped", page: undefined, error: failure }); // A user without the right sees nothing.
    }
    return this.#fail(failure, answer.retryAfterMs ?? 0, now);
  }

  /** A later request would be refused too. */
  #isFinal(status: number, error: unknown): boolean {
    if (typeof error !== "string") return false; // A proxy's answer.
    if (error === "token-expired") return this.#options.tokenIsFixed;
    return [400, 401, 403].includes(status) || error === "unknown-role";
  }

  #succeed(facts: TenantBoardFacts, maxAgeMs: number, now: Millis): TenantPollEffect[] {
    const { intervalMsMin, intervalMsMax } = this.#options;
    this.#failures = 0;
    this.#wait(Math.min(intervalMsMax, Math.max(intervalMsMin, maxAgeMs)), now);
    return this.#show(facts);
  }

  #fail(error: Error, askedMs: number, now: Millis): TenantPollEffect[] {
    const { retryMsMin, retryMsMax } = this.#options;
    this.#failures += 1;
    this.#wait(Math.max(askedMs, Math.min(retryMsMax, retryMsMin * 2 ** (this.#failures - 1))), now);
    const hasShown = this.#facts.state === "live" || this.#facts.state === "behind";
    return this.#show({ ...this.#facts, state: hasShown ? "behind" : "unavailable", error });
  }

  #wait(ms: number, now: Millis): void {
    this.#dueAt = (now + ms * (1 + JITTER * this.#unit())) as Millis;
  }

  #show(facts: TenantBoardFacts): TenantPollEffect[] {
    this.#facts = facts;
    return [{ kind: "show", facts }];
  }
}

/** Without a page nothing was counted in the window, so there is nothing to be behind. */
function stateOf(page: TenantPage | undefined): TenantBoardState {
  return page?.isBehind === true ? "behind" : "live";
}

function isPage(body: unknown): body is TenantPage {
  return typeof body === "object" && body !== null && "ranking" in body && "window" in body;
}
