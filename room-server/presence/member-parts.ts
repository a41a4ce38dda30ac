/**
 * What gateways say of their members in more than one message, until the last of it is here. Parts that do not follow
 * one another are worth nothing: one was lost, and the gateway is to say all of it again.
 */

import type { ClientId, GatewayId } from "../../shared/ids.ts";
import type { Member, PresenceToOwner } from "../../shared/bus/presence-messages.ts";
import { SeldomMap } from "../../shared/seldom.ts";

type Members = PresenceToOwner & { kind: "members" };
type Begun = { readonly version: number; next: number; readonly entered: Member[]; readonly exited: ClientId[] };

export class MemberParts {
  readonly #begun = new SeldomMap<GatewayId, Begun>();

  get isEmpty(): boolean {
    return this.#begun.size === 0;
  }

  /** All of it, once it is here. */
  receive(message: Members): Members | "incomplete" | "broken" {
    const { gateway, version, partOf } = message;
    if (partOf === undefined) {
      this.#begun.delete(gateway);
      return message;
    }
    const begun = partOf.part === 1 ? { version, next: 1, entered: [], exited: [] } : this.#begun.get(gateway);
    this.#begun.delete(gateway);
    if (begun === undefined || begun.version !== version || begun.next !== partOf.part) return "broken";
    begun.next += 1;
    begun.entered.push(...message.entered);
    begun.exited.push(...message.exited);
    if (begun.next > partOf.parts) return { ...message, entered: begun.entered, exited: begun.exited };
    this.#begun.set(gateway, begun);
    return "incomplete";
  }

  forget(gateway: GatewayId): void {
    this.#begun.delete(gateway);
  }
}
