/**
 * Which gateways are alive, from what is heard of them. A guess: one that was only paused says again who is with it.
 * Whoever could not hear, for its own line was lost or it was paused itself, judges nobody by the silence.
 */

import type { GatewayId, Millis } from "../../shared/ids.ts";

export class GatewaysAlive {
  readonly #silenceMsMax: number;
  readonly #heard = new Map<GatewayId, Millis>();

  constructor(options: { gatewaySilenceMsMax: number }) {
    this.#silenceMsMax = options.gatewaySilenceMsMax;
  }

  get size(): number {
    return this.#heard.size;
  }

  receive(gateway: GatewayId, now: Millis): void {
    this.#heard.set(gateway, now);
  }

  /** This server could not hear until now. */
  excuseAll(now: Millis): void {
    for (const gateway of this.#heard.keys()) this.#heard.set(gateway, now);
  }

  /** Those that fell silent since the last call. */
  takeLost(now: Millis): GatewayId[] {
    const lost = [...this.#heard].filter(([, at]) => now - at > this.#silenceMsMax).map(([gateway]) => gateway);
    for (const gateway of lost) this.#heard.delete(gateway);
    return lost;
  }
}
