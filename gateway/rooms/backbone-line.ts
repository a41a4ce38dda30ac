/** Whether this gateway reaches NATS. A lost line is mostly back within milliseconds, before anybody looks: so losses are counted. */

import type { Millis } from "../../shared/ids.ts";

export class BackboneLine {
  #lostAt: Millis | undefined;
  #losses = 0;

  /** Undefined: NATS is there. */
  get lostAt(): Millis | undefined {
    return this.#lostAt;
  }

  get isUp(): boolean {
    return this.#lostAt === undefined;
  }

  /** How often it was lost. Whoever finds another number than before has missed what was said meanwhile, and was not heard. */
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
