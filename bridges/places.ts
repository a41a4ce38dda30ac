/**
 * Limits the number of clients, in total and per address. A client counts in the total until it has left and its edits
 * are saved. It counts for its address only until a gateway has accepted its token: then the gateway's limits per user
 * and tenant apply, and any number of people can work behind one address.
 */

import type { ClientAddress } from "../shared/limits/client-address.ts";

type PlacesOptions = { readonly yClientsMax: number; readonly yClientsPerAddressMax: number };

export class Places {
  readonly #options: PlacesOptions;
  readonly #byAddress = new Map<ClientAddress, number>();
  #taken = 0;

  constructor(options: PlacesOptions) {
    this.#options = options;
  }

  get taken(): number {
    return this.#taken;
  }

  /** The reason why a client is rejected. Clients without an address are on this machine and count only in the total. */
  reasonAgainst(address: ClientAddress | undefined): "full" | "address" | undefined {
    if (this.#taken >= this.#options.yClientsMax) return "full";
    return address !== undefined && this.#of(address) >= this.#options.yClientsPerAddressMax ? "address" : undefined;
  }

  take(address: ClientAddress | undefined): void {
    this.#taken += 1;
    if (address !== undefined) this.#byAddress.set(address, this.#of(address) + 1);
  }

  /** `address` undefined: the client is on this machine, or counts no longer for its address. */
  giveBack(address: ClientAddress | undefined): void {
    this.#taken -= 1;
    this.giveBackAddress(address);
  }

  giveBackAddress(address: ClientAddress | undefined): void {
    if (address === undefined) return;
    const left = this.#of(address) - 1;
    if (left > 0) this.#byAddress.set(address, left);
    else this.#byAddress.delete(address);
  }

  #of(address: ClientAddress): number {
    return this.#byAddress.get(address) ?? 0;
  }
}
