/** The gateway's door: lets connections in as `admission.ts` decides, and looks after those who wait. */

import type { Clock } from "../shared/clock.ts";
import { Admission, type AdmissionOptions } from "./admission.ts";
import type { GatewayMetrics } from "./metrics.ts";

/** A connection that is not made yet. */
export type Guest = { readonly enter: () => void; readonly turnAway: () => void };

const STEP_MS = 10;

export class AdmissionHost {
  readonly #admission: Admission<Guest>;
  readonly #deps: { readonly clock: Clock; readonly metrics: GatewayMetrics };
  #isStepping = false;

  constructor(options: AdmissionOptions, deps: { clock: Clock; metrics: GatewayMetrics }) {
    this.#admission = new Admission(options, deps.clock.now());
    this.#deps = deps;
  }

  receiveKnock(guest: Guest): void {
    const decision = this.#admission.knock(guest, this.#deps.clock.now());
    if (decision === "come-in") return guest.enter();
    if (decision === "turn-away") return guest.turnAway();
    this.#noteWaiting();
    if (!this.#isStepping) this.#stepLater();
  }

  /** Gone before its turn came. */
  receiveGone(guest: Guest): void {
    this.#admission.leave(guest);
    this.#noteWaiting();
  }

  #stepLater(): void {
    this.#isStepping = true;
    this.#deps.clock.after(STEP_MS, () => {
      for (const { guest, waitedMs } of this.#admission.admit(this.#deps.clock.now())) {
        this.#deps.metrics.connectWaitSeconds.observe(waitedMs / 1000);
        guest.enter();
      }
      this.#noteWaiting();
      this.#isStepping = false;
      if (this.#admission.waiting > 0) this.#stepLater();
    });
  }

  #noteWaiting(): void {
    this.#deps.metrics.connectsWaiting.set(this.#admission.waiting);
  }
}
