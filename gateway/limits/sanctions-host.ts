/**
 * Keeps this gateway's sanctions and the others' the same: hears and tells each, asks and tells again when it may have
 * missed some or not been heard, and keeps them in a store if there is one. Neither the others nor the store are waited for: what is known here holds.
 */

import type { Sanction } from "../../shared/bus/admin-messages.ts";
import type { Clock } from "../../shared/clock.ts";
import type { RoomKey, TenantId, UserId } from "../../shared/ids.ts";
import type { Log } from "../../shared/log.ts";
import type { GatewayMetrics } from "../metrics.ts";
import type { SanctionsLine, SanctionStore } from "../ports.ts";
import type { ClientAddress } from "../../shared/client-address.ts";
import type { BackboneLine } from "../rooms/backbone-line.ts";
import type { Sanctions } from "./sanctions.ts";

export type SanctionsHostDeps = {
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: GatewayMetrics;
  readonly backbone: Pick<BackboneLine, "isUp" | "losses">;
};

const TICK_MS = 1_000;

export class SanctionsHost {
  readonly #sanctions: Sanctions;
  readonly #line: SanctionsLine;
  readonly #store: SanctionStore | undefined;
  readonly #deps: SanctionsHostDeps;
  #onChanged: (sanction: Sanction) => void = () => {};
  #cancelTick: () => void = () => {};
  /** After so many losses of the line the others were asked. */
  #askedAfter: number | undefined;
  /** Those that no other gateway tells if this one was not heard. */
  readonly #madeHere = new WeakSet<Sanction>();
  /** As it is before it has been read once. */
  #isStoreBehind = true;

  constructor(sanctions: Sanctions, line: SanctionsLine, store: SanctionStore | undefined, deps: SanctionsHostDeps) {
    this.#sanctions = sanctions;
    this.#line = line;
    this.#store = store;
    this.#deps = deps;
  }

  start(onChanged: (sanction: Sanction) => void): void {
    this.#onChanged = onChanged;
    this.#line.onTold((sanction) => this.#take(sanction));
    this.#line.onAsked(() => this.#sanctions.known);
    this.#tick();
  }

  stop(): void {
    this.#cancelTick();
  }

  get all(): readonly Sanction[] {
    return this.#sanctions.all;
  }

  banOf(tenant: TenantId, user: UserId): Sanction | undefined {
    return this.#sanctions.banOf(tenant, user);
  }

  banOfAddress(address: ClientAddress): Sanction | undefined {
    return this.#sanctions.banOfAddress(address);
  }

  /** In one room, or anywhere. */
  restriction(tenant: TenantId, user: UserId, room: RoomKey | undefined): Sanction | undefined {
    return this.#sanctions.restriction(tenant, user, room);
  }

  /** Made here. Holds here at once. */
  impose(made: Sanction): void {
    const lifted = this.#sanctions.liftedBy(made);
    if (lifted !== undefined) this.#spread(lifted);
    this.#spread(made);
  }

  #spread(made: Sanction): void {
    const sanction = this.#sanctions.madeLast(made);
    this.#madeHere.add(sanction);
    this.#deps.log.info({ sanction }, sanction.lifted ? "a sanction is lifted" : "a sanction is imposed");
    this.#take(sanction);
    this.#line.tell(sanction);
    this.#store?.save(sanction).catch((cause: unknown) => {
      this.#isStoreBehind = true;
      this.#deps.log.warn({ cause }, "a sanction could not be kept yet: it holds while a gateway runs that knows it");
    });
  }

  #take(sanction: Sanction): void {
    if (!this.#sanctions.receive(sanction, this.#deps.clock.wallNow())) return;
    this.#onChanged(sanction);
    this.#count();
  }

  #tick(): void {
    for (const sanction of this.#sanctions.expire(this.#deps.clock.wallNow())) this.#onChanged(sanction);
    this.#catchUpWithOthers();
    if (this.#store !== undefined && this.#isStoreBehind) this.#catchUpWithStore(this.#store);
    this.#count();
    this.#cancelTick = this.#deps.clock.after(TICK_MS, () => this.#tick());
  }

  /** At the start, and after each loss of the line: what was said meanwhile was heard on neither side. */
  #catchUpWithOthers(): void {
    const { isUp, losses } = this.#deps.backbone;
    if (!isUp || losses === this.#askedAfter) return;
    this.#askedAfter = losses;
    void this.#line.ask().then((theirs) => {
      this.#takeAll(theirs);
      for (const sanction of this.#sanctions.beyond(theirs)) if (this.#madeHere.has(sanction)) this.#line.tell(sanction);
    });
  }

  /** Tried every second until it succeeds: what it has kept comes here, what it missed goes there. */
  #catchUpWithStore(store: SanctionStore): void {
    const later = (cause: unknown): void => {
      this.#isStoreBehind = true;
      this.#deps.log.debug({ cause }, "Redis does not keep sanctions now: those that gateways know hold");
    };
    store
      .load()
      .then((kept) => {
        this.#takeAll(kept);
        this.#isStoreBehind = false; // From here on it misses what cannot be saved.
        return Promise.all(this.#sanctions.beyond(kept).map((sanction) => store.save(sanction)));
      })
      .catch(later);
  }

  #takeAll(sanctions: readonly Sanction[]): void {
    for (const sanction of sanctions) this.#take(sanction);
  }

  #count(): void {
    this.#deps.metrics.sanctions.set(this.#sanctions.all.length);
  }
}
