/**
 * A line over which frames go both ways: pings, hears whether the server does, renews the token before it expires, and
 * says when to move to another gateway. Deterministic.
 */

import type { Millis } from "../../shared/ids.ts";
import type { Limits, ServerFrame, UnknownFrame } from "../../shared/wire/frames.ts";
import { type Backoff, backoffMs } from "./backoff.ts";
import type { ConnectionEffect } from "./connection-messages.ts";

export type OpenLineOptions = {
  readonly backoff: Backoff;
  /** Whether asking for a token again may bring another. */
  readonly tokenIsFixed: boolean;
  readonly tokenMsMax: number;
  /** A new token is asked for when the one in use has lived so much of the time it was given. */
  readonly renewShare: number;
  /** A line that may be dead has so long to answer. */
  readonly checkMsMax: number;
  /** However short tokens live, they are not asked for more often. */
  readonly renewMsMin: number;
};

/** A tick so late is that of a device, or of a page, that slept. */
const SLEPT_MS_MIN = 5_000;

export class OpenLine {
  readonly limits: Limits;
  readonly since: Millis;
  readonly #options: OpenLineOptions;
  readonly #unit: () => number;
  #heardAt: Millis;
  #pingAt: Millis;
  #pings = 0;
  /** Of a line that may be dead: which ping it is to answer, and until when something is to come. */
  #check: { readonly nonce: number; readonly until: number } | undefined;
  #moveAt: Millis | undefined;
  /** Undefined: no other token can be had. */
  #renewAt: Millis | undefined;
  /** Of the token function, in a row. */
  #renewFailures = 0;
  #isDegraded = false;
  /** The gateway said so. */
  #isGoingAway = false;

  /** `unit`: a number in [0, 1). */
  constructor({ limits, tokenExpiresInMs }: ServerFrame & { type: "welcome" }, options: OpenLineOptions, unit: () => number, now: Millis) {
    this.limits = limits;
    this.since = now;
    this.#options = options;
    this.#unit = unit;
    this.#heardAt = now;
    this.#pingAt = (now + limits.pingIntervalMs) as Millis;
    this.#renewBefore(tokenExpiresInMs, now);
  }

  /** The gateway cannot reach the servers of its rooms. */
  get isDegraded(): boolean {
    return this.#isDegraded;
  }

  get heardAt(): Millis {
    return this.#heardAt;
  }

  /** When a tick is next needed. */
  get dueAt(): Millis {
    return Math.min(
      this.#pingAt,
      this.#moveAt ?? Infinity,
      this.#renewAt ?? Infinity,
      this.#check?.until ?? Infinity,
      this.#silentAt,
    ) as Millis;
  }

  get #silentAt(): number {
    return this.#heardAt + this.limits.silenceMsMax;
  }

  /** In words for a developer; undefined: it holds, as far as is known. */
  whySilent(now: Millis): string | undefined {
    if (this.#check !== undefined && now >= this.#check.until) return `the server did not answer within ${this.#options.checkMsMax} ms`;
    return now >= this.#silentAt ? `nothing was heard of the server for ${this.limits.silenceMsMax} ms` : undefined;
  }

  /** While something comes it is let be: the answer to a check may stand behind a lot of it. */
  heard(now: Millis): void {
    this.#heardAt = now;
    if (this.#check !== undefined) this.#check = { ...this.#check, until: now + this.#options.checkMsMax };
  }

  /** Whether it still holds is asked at once, and not for the server's patience. */
  check(now: Millis): ConnectionEffect[] {
    if (this.#check !== undefined) return [];
    this.#check = { nonce: this.#pings + 1, until: now + this.#options.checkMsMax };
    return this.ping(now);
  }

  receiveFrame(frame: ServerFrame | UnknownFrame, now: Millis): ConnectionEffect[] {
    switch (frame.type) {
      case "pong":
        if (this.#check !== undefined && frame.nonce >= this.#check.nonce) this.#check = undefined;
        return [];
      case "going-away":
        this.#moveAt = (now + frame.reconnectAfterMs) as Millis;
        this.#isGoingAway = true;
        return [];
      case "degraded":
        return this.#receiveDegraded(frame, now);
      case "renewed":
        this.#renewBefore(frame.tokenExpiresInMs, now);
        this.#renewFailures = 0;
        return [];
      default:
        return []; // A room's, or nothing that changes the line.
    }
  }

  /** Whatever gives the tokens may be down, and many ask for one. */
  receiveTokenFailed(now: Millis): void {
    const { renewMsMin, backoff } = this.#options;
    this.#renewFailures += 1;
    this.#renewAt = (now + Math.max(renewMsMin, backoffMs(backoff, this.#renewFailures, this.#unit()))) as Millis;
  }

  ping(now: Millis): ConnectionEffect[] {
    this.#pingAt = (now + this.limits.pingIntervalMs) as Millis;
    this.#pings += 1;
    return [{ kind: "send", frame: { type: "ping", nonce: this.#pings } }];
  }

  receiveTick(now: Millis): ConnectionEffect[] {
    if (this.#check === undefined && now - this.dueAt >= SLEPT_MS_MIN) return this.check(now); // The rest is due with the tick that follows.
    return [...this.#moveIfDue(now), ...this.#renewIfDue(now), ...this.#pingIfDue(now)];
  }

  #moveIfDue(now: Millis): ConnectionEffect[] {
    if (this.#moveAt === undefined || now < this.#moveAt) return [];
    this.#moveAt = undefined;
    return [{ kind: "move" }];
  }

  /** Asks again as long as nothing comes of it; once the token has expired the server ends the line. */
  #renewIfDue(now: Millis): ConnectionEffect[] {
    if (this.#renewAt === undefined || now < this.#renewAt) return [];
    this.#renewAt = (now + this.#options.tokenMsMax) as Millis;
    return [{ kind: "ask-token" }];
  }

  #pingIfDue(now: Millis): ConnectionEffect[] {
    return now < this.#pingAt ? [] : this.ping(now);
  }

  #renewBefore(tokenExpiresInMs: number, now: Millis): void {
    const { tokenIsFixed, renewShare, renewMsMin } = this.#options;
    this.#renewAt = tokenIsFixed ? undefined : ((now + Math.max(renewMsMin, tokenExpiresInMs * renewShare)) as Millis);
  }

  /** Nobody moves twice: told again, it keeps to the first time. A gateway that goes away is not stayed with. */
  #receiveDegraded({ backbone, reconnectAfterMs }: ServerFrame & { type: "degraded" }, now: Millis): ConnectionEffect[] {
    const wasDegraded = this.#isDegraded;
    this.#isDegraded = backbone === "lost";
    if (this.#isDegraded && !wasDegraded) this.#moveAt ??= (now + reconnectAfterMs) as Millis;
    if (this.#isDegraded || !wasDegraded || this.#isGoingAway) return [];
    this.#moveAt = undefined;
    return [{ kind: "stay" }];
  }
}
