/**
 * A connection on which frames go both ways: sends pings, detects silence, renews the token before it expires, and
 * decides when to move to another gateway. A sent frame that nothing follows for some seconds begins a check, and the
 * connection counts as dead only if nothing follows the PING of the check either. Deterministic.
 */

import type { Millis } from "../../shared/ids.ts";
import type { Limits, ServerFrame, UnknownFrame } from "../../shared/wire/frames.ts";
import { slowUploadMs } from "./client-rates.ts";
import type { ConnectionEffect } from "./connection-messages.ts";
import { type Backoff, backoffMs } from "./retry.ts";

export type OpenConnectionOptions = {
  readonly backoff: Backoff;
  /** True: the token is a text, so a further request cannot return another one. */
  readonly tokenIsFixed: boolean;
  readonly tokenMsMax: number;
  /** Fraction of the token's lifetime after which a new token is requested. */
  readonly renewShare: number;
  /**
   * Mean time without a received frame after a sent one, until the connection is checked. Each connection varies it by
   * a fifth, so that clients do not leave a gateway that pauses all at once.
   */
  readonly unansweredMsMax: number;
  /** Time that a connection has to answer a check, besides the time that a slow uplink needs for the bytes before it. */
  readonly checkMsMax: number;
  /** Minimum interval between two token requests, even if the tokens' lifetime is shorter. */
  readonly renewMsMin: number;
};

/** A tick that is late by this much shows that the device or page was asleep. */
const SLEPT_MS_MIN = 5_000;
const UNANSWERED_JITTER = 0.2;

export class OpenConnection {
  readonly limits: Limits;
  readonly since: Millis;
  readonly #options: OpenConnectionOptions;
  readonly #unit: () => number;
  #receivedAt: Millis;
  #pingAt: Millis;
  #pings = 0;
  readonly #unansweredMs: number;
  /** The time at which the first frame was sent after the last received one. */
  #unansweredSince: Millis | undefined;
  #sentBytes = 0;
  /** The part of `#sentBytes` that a PONG has confirmed. */
  #arrivedBytes = 0;
  /** The oldest PING without a PONG, and the bytes sent before it. */
  #asked: { readonly nonce: number; readonly sentBytes: number } | undefined;
  /** A check of a connection that may be dead: the ping to be answered, and the deadline. */
  #check: { readonly nonce: number; readonly until: number } | undefined;
  /**
   * Above 0: no sent frame counts as unanswered before the PONG with this nonce. It is so if the connection before this
   * one seemed dead, because a slow downlink may have carried a large frame, which now comes again. The PING is the first
   * one that time causes, so that its PONG follows the catch-up. Infinity: it is not sent yet.
   */
  #patientUntil: number;
  #moveAt: Millis | undefined;
  /** Undefined: no other token is available. */
  #renewAt: Millis | undefined;
  /** Failures of the token function in a row. */
  #renewFailures = 0;
  #isDegraded = false;
  /** The gateway announced that it is shutting down. */
  #gatewayIsLeaving = false;
  #hasJoined = false;

  /** `unit`: returns a number in [0, 1). `isPatient`: the connection before this one was closed because nothing arrived. */
  constructor(
    { limits, tokenExpiresInMs }: ServerFrame & { type: "welcome" },
    options: OpenConnectionOptions,
    unit: () => number,
    now: Millis,
    isPatient: boolean,
  ) {
    this.limits = limits;
    this.since = now;
    this.#options = options;
    this.#unit = unit;
    this.#receivedAt = now;
    this.#patientUntil = isPatient ? Infinity : 0;
    this.#unansweredMs = options.unansweredMsMax * (1 + UNANSWERED_JITTER * (2 * unit() - 1));
    this.#pingAt = (now + (isPatient ? Math.min(this.#unansweredMs, limits.pingIntervalMs) : limits.pingIntervalMs)) as Millis;
    this.#renewBefore(tokenExpiresInMs, now);
  }

  /** The gateway cannot reach the servers of its rooms. */
  get isDegraded(): boolean {
    return this.#isDegraded;
  }

  /** The server admitted the client to a room: its gateway, room server and log work. */
  get hasJoined(): boolean {
    return this.#hasJoined;
  }

  get lastReceivedAt(): Millis {
    return this.#receivedAt;
  }

  /** The time of the next tick. */
  get dueAt(): Millis {
    return Math.min(
      this.#pingAt,
      this.#moveAt ?? Infinity,
      this.#renewAt ?? Infinity,
      this.#check?.until ?? this.#unansweredAt,
      this.#silentAt,
    ) as Millis;
  }

  get #unansweredAt(): number {
    if (this.#unansweredSince === undefined || this.#patientUntil > 0) return Infinity;
    return this.#unansweredSince + this.#unansweredMs;
  }

  get #silentAt(): number {
    return this.#receivedAt + this.limits.silenceMsMax + this.#uploadMs;
  }

  /**
   * Time in which a slow uplink may carry no frame to the server. Each edit is acknowledged separately, so it is at most
   * the time of the largest one.
   */
  get #uploadMs(): number {
    return slowUploadMs(Math.min(this.#sentBytes - this.#arrivedBytes, this.limits.editBytesMax));
  }

  /** The reason why the connection counts as dead, in words for a developer. Undefined: it works, as far as is known. */
  silenceReason(now: Millis): string | undefined {
    if (this.#check !== undefined && now >= this.#check.until && !this.#isCheckOverslept(now))
      return "the server does not answer: the network may be interrupted";
    return now >= this.#silentAt ? `nothing arrived from the server for ${this.limits.silenceMsMax} ms` : undefined;
  }

  /** Any frame extends the deadline of a check, because its answer may be queued behind other frames. */
  receiveSign(now: Millis): void {
    this.#receivedAt = now;
    this.#unansweredSince = undefined;
    if (this.#check !== undefined) this.#check = { ...this.#check, until: this.#checkUntil(now) };
  }

  receiveSent(bytes: number, now: Millis): void {
    this.#sentBytes += bytes;
    this.#unansweredSince ??= now;
  }

  /** Checks at once whether the connection still works, instead of waiting for the silence limit. */
  check(now: Millis): ConnectionEffect[] {
    return this.#check === undefined ? this.#beginCheck(now) : [];
  }

  #beginCheck(now: Millis): ConnectionEffect[] {
    this.#check = { nonce: this.#pings + 1, until: this.#checkUntil(now) };
    return this.ping(now);
  }

  #checkUntil(now: Millis): number {
    return now + this.#options.checkMsMax + this.#uploadMs;
  }

  receiveFrame(frame: ServerFrame | UnknownFrame, now: Millis): ConnectionEffect[] {
    switch (frame.type) {
      case "pong":
        this.#receivePong(frame.nonce);
        return [];
      case "joined":
        this.#hasJoined = true;
        return [];
      case "going-away":
        this.#moveAt = (now + frame.reconnectAfterMs) as Millis;
        this.#gatewayIsLeaving = true;
        return [];
      case "degraded":
        return this.#receiveDegraded(frame, now);
      case "renewed":
        this.#renewBefore(frame.tokenExpiresInMs, now);
        this.#renewFailures = 0;
        return [];
      default:
        return []; // The frame belongs to a room, or does not change the connection.
    }
  }

  /** The time of the next attempt is random, because many clients may send requests to a failing token service. */
  receiveTokenFailed(now: Millis): void {
    const { renewMsMin, backoff } = this.#options;
    this.#renewFailures += 1;
    this.#renewAt = (now + Math.max(renewMsMin, backoffMs(backoff, this.#renewFailures, this.#unit()))) as Millis;
  }

  /** The PONG of a later PING confirms at least as much. */
  #receivePong(nonce: number): void {
    if (nonce >= this.#patientUntil) this.#patientUntil = 0;
    if (this.#check !== undefined && nonce >= this.#check.nonce) this.#check = undefined;
    if (this.#asked === undefined || nonce < this.#asked.nonce) return;
    this.#arrivedBytes = this.#asked.sentBytes;
    this.#asked = undefined;
  }

  ping(now: Millis): ConnectionEffect[] {
    this.#pingAt = (now + this.limits.pingIntervalMs) as Millis;
    this.#pings += 1;
    this.#asked ??= { nonce: this.#pings, sentBytes: this.#sentBytes };
    return [{ kind: "send", frame: { type: "ping", nonce: this.#pings } }];
  }

  receiveTick(now: Millis): ConnectionEffect[] {
    const { dueAt } = this;
    const hasSlept = now - dueAt >= SLEPT_MS_MIN && this.#receivedAt < dueAt; // In a hidden tab each tick is late, and answers arrive.
    const isCheckDue = this.#check === undefined ? hasSlept || now >= this.#unansweredAt : this.#isCheckOverslept(now);
    if (isCheckDue) return this.#beginCheck(now); // The other steps are due at the next tick.
    return [...this.#moveIfDue(now), ...this.#renewIfDue(now), ...this.#pingIfDue(now)];
  }

  /** The answer to the check may wait in a page that was asleep, so it gets another deadline. */
  #isCheckOverslept(now: Millis): boolean {
    return this.#check !== undefined && now - this.#check.until >= SLEPT_MS_MIN;
  }

  #moveIfDue(now: Millis): ConnectionEffect[] {
    if (this.#moveAt === undefined || now < this.#moveAt) return [];
    this.#moveAt = undefined;
    return [{ kind: "move" }];
  }

  /** Repeats the request until a token comes. The server closes the connection when the old token expires. */
  #renewIfDue(now: Millis): ConnectionEffect[] {
    if (this.#renewAt === undefined || now < this.#renewAt) return [];
    this.#renewAt = (now + this.#options.tokenMsMax) as Millis;
    return [{ kind: "ask-token" }];
  }

  #pingIfDue(now: Millis): ConnectionEffect[] {
    if (now < this.#pingAt) return [];
    if (this.#patientUntil === Infinity) this.#patientUntil = this.#pings + 1;
    return this.ping(now);
  }

  #renewBefore(tokenExpiresInMs: number, now: Millis): void {
    const { tokenIsFixed, renewShare, renewMsMin } = this.#options;
    this.#renewAt = tokenIsFixed ? undefined : ((now + Math.max(renewMsMin, tokenExpiresInMs * renewShare)) as Millis);
  }

  /**
   * The first announced time of a move is valid; later announcements do not change it. A client does not stay with a
   * gateway that shuts down.
   */
  #receiveDegraded({ backbone, reconnectAfterMs }: ServerFrame & { type: "degraded" }, now: Millis): ConnectionEffect[] {
    const wasDegraded = this.#isDegraded;
    this.#isDegraded = backbone === "lost";
    if (this.#isDegraded && !wasDegraded) this.#moveAt ??= (now + reconnectAfterMs) as Millis;
    if (this.#isDegraded || !wasDegraded || this.#gatewayIsLeaving) return [];
    this.#moveAt = undefined;
    return [{ kind: "stay" }];
  }
}
