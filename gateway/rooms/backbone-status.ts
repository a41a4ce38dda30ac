/** Whether this gateway reaches NATS. Most losses last only milliseconds and would remain unnoticed, so they are counted. */

import type { Millis } from "../../shared/ids.ts";

export class BackboneStatus {
  #lostAt: Millis | undefined;
  #losses = 0;

  /** Undefined: NATS is reachable. */
  get lostAt(): Millis | undefined {
    return this.#lostAt;
  }

  get isUp(): boolean {
    return this.#lostAt === undefined;
  }

  /** Number of losses. After a change of it, messages may have been missed in both directions. */
  get losses(): number {
    return this.#losses;
  }

  receiveLost(now: Millis): void {
    this.#lostAt = now;
    this.#losses += 1;
  }

  receiveFound(): void {
    this.#lostAt = undefined;
  }
}
