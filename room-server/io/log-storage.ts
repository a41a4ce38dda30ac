/**
 * Whether the log stores records, and in time. Reports once when the storage is lost or the log is slow, and once when that
 * is over. While the storage is full, each append is refused ten times a second, and a log message for each refusal would
 * fill the disk too.
 */

import type { OperationsReport } from "../../shared/bus/operations-events.ts";
import type { Log } from "../../shared/process/log.ts";
import type { Clock } from "../../shared/time/clock.ts";
import type { RoomServerMetrics } from "../metrics.ts";

/** `full`: JetStream refuses records. `broken`: a stream neither stores nor refuses records, as on a full disk. */
type StorageFailure = "full" | "broken";

const OBSTACLES: Readonly<Record<StorageFailure, string>> = {
  full: "the storage of the log is full",
  broken: "the log stores no records: the disk of a nats-server is full or broken",
};
/** For people who see the obstacle without the log of this process. */
const REMEDIES: Readonly<Record<StorageFailure, string>> = {
  full: "Free disk space of the nats-servers, or raise max_file_store or COROOM_LOG_BYTES_MAX",
  broken: "Free space on the disk, then restart that nats-server: it stores nothing before",
};
const ADVICE: Readonly<Record<StorageFailure, string>> = {
  full: "JetStream refuses records, and new edits are refused. At COROOM_LOG_BYTES_MAX the log has space again once the document service trimmed it: check that it writes snapshots, or raise the limit. Else free disk space of the nats-servers, or raise max_file_store or the limits of the account",
  broken:
    "New edits are refused. The log of nats-server names the error. Free disk space, then restart nats-server: it stores nothing before",
};

/** An append that takes longer is slow: its members have seen its edits as tentative for a while. */
const SLOW_APPEND_MS = 1_000;
/** The log is in time again when no append was slow for this time. */
const CALM_MS = 5_000;

type LogSpeed = Pick<Extract<OperationsReport, { kind: "log_slow" }>, "state" | "forMs" | "worstMs">;
type LogStorageDeps = { readonly clock: Clock; readonly log: Log; readonly metrics: RoomServerMetrics };

export class LogStorage {
  readonly #deps: LogStorageDeps;
  #failure: StorageFailure | undefined;
  #receiveChange: (failure: StorageFailure | undefined) => void = () => {};
  /** Since when appends are slow, and the end of the last slow one. */
  #slow: { readonly since: number; readonly worstMs: number; readonly until: number } | undefined;
  #receiveSpeed: (speed: LogSpeed) => void = () => {};

  constructor(deps: LogStorageDeps) {
    this.#deps = deps;
  }

  get obstacle(): string | undefined {
    return this.#failure === undefined ? undefined : `${OBSTACLES[this.#failure]}. ${REMEDIES[this.#failure]}`;
  }

  onChange(receive: (failure: StorageFailure | undefined) => void): void {
    this.#receiveChange = receive;
  }

  onSpeedChange(receive: (speed: LogSpeed) => void): void {
    this.#receiveSpeed = receive;
  }

  /** Called for each append that has ended. */
  receiveAppend(tookMs: number): void {
    if (tookMs < SLOW_APPEND_MS) return;
    const { clock } = this.#deps;
    const [now, before] = [clock.now(), this.#slow];
    const since = Math.min(now - tookMs, before?.since ?? now);
    this.#slow = { since, worstMs: Math.max(tookMs, before?.worstMs ?? 0), until: now };
    if (before !== undefined) return;
    this.#receiveSpeed({ state: "slow", forMs: Math.round(tookMs), worstMs: Math.round(tookMs) });
    clock.after(CALM_MS, () => this.#checkCalm());
  }

  #checkCalm(): void {
    const { clock } = this.#deps;
    const { since, worstMs, until } = this.#slow!;
    const waitMs = until + CALM_MS - clock.now();
    if (waitMs > 0) return void clock.after(waitMs, () => this.#checkCalm());
    this.#slow = undefined;
    this.#receiveSpeed({ state: "normal", forMs: Math.round(until - since), worstMs: Math.round(worstMs) });
  }

  receiveFailure(failure: StorageFailure, reason: string | undefined): void {
    if (this.#failure !== undefined) return;
    this.#failure = failure;
    this.#deps.metrics.logFull.set(1);
    this.#deps.log.error({ reason }, `${OBSTACLES[failure]}. ${ADVICE[failure]}`);
    this.#receiveChange(failure);
  }

  receiveStored(): void {
    if (this.#failure === undefined) return;
    this.#failure = undefined;
    this.#deps.metrics.logFull.set(0);
    this.#deps.log.info({}, "the log stores records again: edits are accepted");
    this.#receiveChange(undefined);
  }
}
