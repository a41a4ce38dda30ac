/**
 * Whether the log has storage for records. Reports once when the storage is lost, and once when it is back. While the
 * storage is full, each append is refused ten times a second, and a log message for each refusal would fill the disk
 * too.
 */

import type { Log } from "../../shared/process/log.ts";
import type { RoomServerMetrics } from "../metrics.ts";

/** `full`: JetStream refuses records. `broken`: a stream neither stores nor refuses records, as on a full disk. */
export type StorageFailure = "full" | "broken";

const OBSTACLES: Readonly<Record<StorageFailure, string>> = {
  full: "the storage of the log is full",
  broken: "the log stores no records: the disk of a nats-server is full or broken",
};
const ADVICE: Readonly<Record<StorageFailure, string>> = {
  full: "JetStream refuses records, and new edits are refused. At COROOM_LOG_BYTES_MAX the log has space again once the document service trimmed it: check that it writes snapshots, or raise the limit. Else free disk space of the nats-servers, or raise max_file_store or the limits of the account",
  broken:
    "New edits are refused. The log of nats-server names the error. Free disk space, then restart nats-server: it stores nothing before",
};

export class LogStorage {
  readonly #deps: { readonly log: Log; readonly metrics: RoomServerMetrics };
  #failure: StorageFailure | undefined;
  #receiveChange: (failure: StorageFailure | undefined) => void = () => {};

  constructor(deps: { readonly log: Log; readonly metrics: RoomServerMetrics }) {
    this.#deps = deps;
    deps.metrics.logFull.set(0);
  }

  get obstacle(): string | undefined {
    return this.#failure === undefined ? undefined : OBSTACLES[this.#failure];
  }

  onChange(receive: (failure: StorageFailure | undefined) => void): void {
    this.#receiveChange = receive;
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
