/**
 * The gateways that were asked to repeat their members. NATS may lose the question or its answer, so a gateway is asked
 * again until its deadline. A gateway that has left the room does not answer.
 */

import type { PresenceReply } from "../../shared/bus/presence-messages.ts";
import { LazyMap } from "../../shared/collections/lazy-map.ts";
import type { Epoch, GatewayId, Millis } from "../../shared/ids.ts";

const ASK_AGAIN_MS = 500;
const NEVER = Number.POSITIVE_INFINITY;

type Asked = { readonly until: Millis; askAt: Millis };
type Due = { readonly lost: readonly GatewayId[]; readonly again: readonly GatewayId[] };

const NOTHING_DUE: Due = { lost: [], again: [] };

/** Asks the gateway to send all its members. */
export function questionFor(gateway: GatewayId, epoch: Epoch): { kind: "answer"; gateway: GatewayId; answer: PresenceReply } {
  return { kind: "answer", gateway, answer: { kind: "missed", epoch } };
}

export class AskedGateways {
  readonly #asked = new LazyMap<GatewayId, Asked>();

  has(gateway: GatewayId): boolean {
    return this.#asked.has(gateway);
  }

  receiveQuestion(gateway: GatewayId, until: Millis, now: Millis): void {
    this.#asked.set(gateway, { until, askAt: (now + ASK_AGAIN_MS) as Millis });
  }

  /** The gateway has answered, or is lost. */
  forget(gateway: GatewayId): void {
    this.#asked.delete(gateway);
  }

  /** Time of the next question or deadline. Infinity: none. */
  get dueAt(): number {
    let dueAt = NEVER;
    for (const { until, askAt } of this.#asked.values()) dueAt = Math.min(dueAt, until, askAt);
    return dueAt;
  }

  /** `lost`: the deadline has passed. `again`: to be asked again now. */
  takeDue(now: Millis): Due {
    if (this.#asked.size === 0) return NOTHING_DUE; // Every room is ticked very often.
    const [lost, again]: [GatewayId[], GatewayId[]] = [[], []];
    for (const [gateway, asked] of this.#asked) {
      if (now >= asked.until) lost.push(gateway);
      else if (now >= asked.askAt) {
        asked.askAt = (now + ASK_AGAIN_MS) as Millis;
        again.push(gateway);
      }
    }
    return { lost, again };
  }
}
