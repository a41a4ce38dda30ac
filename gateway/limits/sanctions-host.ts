/**
 * Keeps the sanctions of all gateways equal: publishes and receives each sanction, and exchanges all of them when
 * messages may have been lost. Saves them in a store if there is one. A sanction takes effect at this gateway at once,
 * before it is published or saved.
 */

import type { Sanction } from "../../shared/bus/admin-messages.ts";
import type { Millis, RoomKey, TenantId, UserId } from "../../shared/ids.ts";
import type { ClientAddress } from "../../shared/limits/client-address.ts";
import type { Log } from "../../shared/process/log.ts";
import type { Clock } from "../../shared/time/clock.ts";
import { every } from "../../shared/time/every.ts";
import type { GatewayMetrics } from "../metrics.ts";
import type { SanctionsBus, SanctionStore } from "../ports.ts";
import type { BackboneStatus } from "../rooms/backbone-status.ts";
import type { Sanctions } from "./sanctions.ts";

type SanctionsHostDeps = {
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: GatewayMetrics;
  readonly backbone: Pick<BackboneStatus, "isUp" | "losses">;
};

const TICK_MS = 1_000;
/** Pause before a message is sent again. Each later pause is twice as long. */
const REPEATED_MS_MIN = 5_000;

type Repeat = { readonly at: Millis; readonly pauseMs: number };

export class SanctionsHost {
  readonly #sanctions: Sanctions;
  readonly #bus: SanctionsBus;
  readonly #store: SanctionStore | undefined;
  readonly #deps: SanctionsHostDeps;
  #onChanged: (sanction: Sanction) => void = () => {};
  #cancelTick: () => void = () => {};
  /** The number of connection losses when the other gateways were last asked. */
  #askedAfter: number | undefined;
  /**
   * The others are asked again while none answers with a sanction: NATS may have lost the question, or they had just started
   * and knew none yet.
   */
  #nextQuestion: Repeat | undefined;
  /**
   * Sanctions that this gateway imposed. If their publication is lost, no other gateway repeats them. NATS servers that are
   * cut from each other lose it although no connection of a gateway is lost.
   */
  readonly #madeHere = new Map<Sanction, Repeat>();
  /** The number of the store's lost connections when it last had all sanctions; undefined while it lacks some. */
  #storedAfter: number | undefined;

  constructor(sanctions: Sanctions, bus: SanctionsBus, store: SanctionStore | undefined, deps: SanctionsHostDeps) {
    this.#sanctions = sanctions;
    this.#bus = bus;
    this.#store = store;
    this.#deps = deps;
  }

  start(onChanged: (sanction: Sanction) => void): void {
    this.#onChanged = onChanged;
    this.#bus.onSanction((sanction) => this.#take(sanction));
    this.#bus.onRequest(() => this.#sanctions.known);
    this.#tick();
    this.#cancelTick = every(this.#deps.clock, TICK_MS, () => this.#tick());
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

  /** Imposes a sanction. It takes effect at this gateway at once. */
  impose(made: Sanction): void {
    const lifted = this.#sanctions.liftedBy(made);
    if (lifted !== undefined) this.#spread(lifted);
    this.#spread(made);
  }

  #spread(made: Sanction): void {
    const sanction = this.#sanctions.madeLast(made);
    this.#madeHere.set(sanction, this.#repeatAfter(REPEATED_MS_MIN));
    this.#deps.log.info({ sanction }, sanction.lifted ? "a sanction is lifted" : "a sanction is imposed");
    this.#take(sanction);
    this.#bus.publishSanction(sanction);
    this.#store?.save(sanction).catch((cause: unknown) => {
      this.#storedAfter = undefined;
      this.#deps.log.warn({ cause }, "a sanction could not be kept yet: it holds while a gateway runs that knows it");
    });
  }

  #take(sanction: Sanction): void {
    if (!this.#sanctions.receiveSanction(sanction, this.#deps.clock.wallNow())) return;
    this.#onChanged(sanction);
    this.#count();
  }

  #tick(): void {
    for (const sanction of this.#sanctions.expire(this.#deps.clock.wallNow())) this.#onChanged(sanction);
    this.#repeatMade(this.#deps.clock.now());
    this.#catchUpWithOthers();
    if (this.#store !== undefined && this.#store.breaks() !== this.#storedAfter) this.#catchUpWithStore(this.#store);
    this.#count();
  }

  /** Until the sanction ends, or another one replaces it. */
  #repeatMade(now: Millis): void {
    for (const [sanction, { at, pauseMs }] of this.#madeHere) {
      if (!this.#sanctions.isKnown(sanction)) {
        this.#madeHere.delete(sanction);
      } else if (now >= at) {
        this.#bus.publishSanction(sanction);
        this.#madeHere.set(sanction, this.#repeatAfter(2 * pauseMs));
      }
    }
  }

  #repeatAfter(pauseMs: number): Repeat {
    return { at: (this.#deps.clock.now() + pauseMs) as Millis, pauseMs };
  }

  /** At the start and after each lost connection, because messages in both directions were lost meanwhile. */
  #catchUpWithOthers(): void {
    const { isUp, losses } = this.#deps.backbone;
    const { at, pauseMs } = this.#nextQuestion ?? { at: Number.POSITIVE_INFINITY, pauseMs: 0 };
    const isFirst = losses !== this.#askedAfter;
    if (!isUp || (!isFirst && this.#deps.clock.now() < at)) return;
    this.#nextQuestion = this.#repeatAfter(isFirst ? REPEATED_MS_MIN : 2 * pauseMs);
    this.#askedAfter = losses;
    void this.#bus.requestSanctions().then((theirs) => {
      if (theirs.length > 0) this.#nextQuestion = undefined;
      this.#takeAll(theirs);
      for (const sanction of this.#sanctions.beyond(theirs)) if (this.#madeHere.has(sanction)) this.#bus.publishSanction(sanction);
    });
  }

  /** At the start and after each lost connection, every second until it succeeds: loads the sanctions that the store has, and saves those that it lacks. */
  #catchUpWithStore(store: SanctionStore): void {
    const later = (cause: unknown): void => {
      this.#storedAfter = undefined;
      this.#deps.log.debug({ cause }, "Redis does not keep sanctions now: those that gateways know hold");
    };
    const breaks = store.breaks();
    store
      .load()
      .then((kept) => {
        this.#takeAll(kept);
        this.#storedAfter = breaks; // From now on the store lacks each sanction that cannot be saved.
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
