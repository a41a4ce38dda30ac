/**
 * Whether the log has storage for records: reports once that it is full, and once that it stores records again. Each
 * append is refused ten times a second meanwhile, so a log line for each would fill the disk of the logs too.
 */

import type { Log } from "../../shared/process/log.ts";
import type { RoomServerMetrics } from "../metrics.ts";

export class LogStorage {
  readonly #deps: { readonly log: Log; readonly metrics: RoomServerMetrics };
  #isFull = false;

  constructor(deps: { readonly log: Log; readonly metrics: RoomServerMetrics }) {
    this.#deps = deps;
    deps.metrics.logFull.set(0);
  }

  get isFull(): boolean {
    return this.#isFull;
  }

  receiveRefusal(reason: string | undefined): void {
    if (this.#isFull) return;
    this.#isFull = true;
    this.#deps.metrics.logFull.set(1);
    this.#deps.log.error(
      { reason },
      "the storage of the log is full: JetStream refuses records, and new edits are refused. Free disk space of the nats-servers, or raise max_file_store or the limits of the account or stream",
    );
  }

  receiveStored(): void {
    if (!this.#isFull) return;
    this.#isFull = false;
    this.#deps.metrics.logFull.set(0);
    this.#deps.log.info({}, "the log stores records again: edits are accepted");
  }
}
