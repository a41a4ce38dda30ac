/**
 * Takes the tenants' usage every second: counts it in the metrics, and holds it by day (UTC) until the store has it. A
 * second belongs to the day in which it ends. Nothing waits for the store. A process that is killed loses the usage of
 * the last interval, and all usage that Redis was not there to take. Document services report the stored bytes of
 * tenants and repeat them, so these go to the store at once. The open connections of a moment wait for the store until
 * the next one.
 */

import type { Clock } from "../../shared/time/clock.ts";
import { every } from "../../shared/time/every.ts";
import type { Millis, TenantId } from "../../shared/ids.ts";
import type { StoragePeaks } from "../../shared/bus/storage-messages.ts";
import type { Log } from "../../shared/process/log.ts";
import { rethrowMistake, within } from "../../shared/time/pause.ts";
import type { GatewayMetrics } from "../metrics.ts";
import type { UsageStore } from "../ports.ts";
import { ConnectionSamples } from "./connection-samples.ts";
import { TopTenants } from "./top-tenants.ts";
import { OTHER_TENANTS, type UsageCounts } from "./usage-counts.ts";
import { dayOf } from "../../shared/time/usage-day.ts";
import { UsageDays } from "./usage-days.ts";
import type { UsageMeter } from "./usage-meter.ts";

const TICK_MS = 1_000;
const TICKS_PER_PERIOD = 60;
/** Maximum wait for Redis when the gateway stops. */
const LAST_FLUSH_MS_MAX = 2_000;

type TenantUsageOptions = {
  readonly usageTenantsMax: number;
  readonly usageNamedTenantsMax: number;
  readonly usageTenantsPerBatchMax: number;
  readonly usageFlushMs: number;
  readonly usageSampleMs: number;
};
type TenantUsageDeps = { readonly clock: Clock; readonly log: Log; readonly metrics: GatewayMetrics };

export class TenantUsageHost {
  readonly #meter: UsageMeter;
  readonly #store: UsageStore | undefined;
  readonly #options: TenantUsageOptions;
  readonly #deps: TenantUsageDeps;
  readonly #days: UsageDays;
  readonly #top: TopTenants;
  readonly #samples: ConnectionSamples;
  #ticks = 0;
  #flushing: Promise<void> | undefined;
  #isSampling = false;
  #isStoreAway = false;
  #areRaisesRefused = false;
  /** Nothing has waited for the store at this time. */
  #storedAt: Millis;
  #cancelTick: () => void = () => {};

  /** Without a store only the metrics show usage. */
  constructor(meter: UsageMeter, store: UsageStore | undefined, options: TenantUsageOptions, deps: TenantUsageDeps) {
    this.#meter = meter;
    this.#store = store;
    this.#options = options;
    this.#deps = deps;
    this.#storedAt = deps.clock.now();
    this.#days = new UsageDays({ tenantDaysMax: options.usageTenantsMax, tenantsPerBatchMax: options.usageTenantsPerBatchMax });
    const { usageSampleMs: everyMs, usageTenantsMax: tenantsMax, usageTenantsPerBatchMax: tenantsPerPartMax } = options;
    this.#samples = new ConnectionSamples({ everyMs, tenantsMax, tenantsPerPartMax }, deps.clock.wallNow());
    this.#top = new TopTenants({ namedMax: options.usageNamedTenantsMax, knownMax: options.usageTenantsMax });
  }

  start(): void {
    this.#cancelTick = every(this.#deps.clock, TICK_MS, () => this.#tick());
  }

  /** Takes the last usage. Resolves when the store has it, or does not take it in time. */
  async stop(): Promise<void> {
    this.#cancelTick();
    this.#takeUsage();
    const { clock, log } = this.#deps;
    const flushed = (this.#flushing ?? Promise.resolve()).then(() => this.#flush());
    await within(clock, LAST_FLUSH_MS_MAX, flushed, undefined);
    if (this.#days.waiting > 0)
      log.warn(
        { tenants: this.#days.waiting },
        "the last usage of these tenants is lost, because Redis did not take it: bills lack it. Check COROOM_REDIS_URL before the next stop",
      );
  }

  /** Without success the document service sends the same or more a minute later, perhaps to another gateway. */
  async receivePeaks(peaks: StoragePeaks): Promise<void> {
    const { log, metrics } = this.#deps;
    try {
      const leftOut = (await this.#store?.raise(peaks)) ?? 0;
      if (leftOut > 0) metrics.limitsReached.inc({ limit: "usage-tenants" }, leftOut);
      this.#areRaisesRefused = false;
    } catch (cause) {
      rethrowMistake(cause);
      if (!this.#areRaisesRefused)
        log.warn({ cause, day: peaks.day }, "Redis does not take the stored bytes of tenants; they are sent again");
      this.#areRaisesRefused = true; // Redis is away, or has no memory left.
    }
  }

  #tick(): void {
    this.#takeUsage();
    this.#ticks += 1;
    if (this.#ticks % TICKS_PER_PERIOD === 0) this.#forgetLabel(this.#top.endPeriod());
    this.#showConnections();
    this.#takeSample();
    if ((this.#ticks * TICK_MS) % this.#options.usageFlushMs < TICK_MS) void this.#flush();
  }

  #takeUsage(): void {
    const { clock, metrics } = this.#deps;
    const day = dayOf(clock.wallNow());
    for (const [tenant, counts] of this.#meter.takeCounts(clock.now())) {
      this.#showCounts(tenant, counts);
      const isStored = this.#store === undefined || this.#days.receiveUsage(day, tenant, counts);
      if (tenant === OTHER_TENANTS || !isStored) metrics.limitsReached.inc({ limit: "usage-tenants" });
    }
    this.#showWaiting();
  }

  #takeSample(): void {
    if (this.#store === undefined) return;
    const { clock, metrics } = this.#deps;
    const leftOut = this.#samples.receiveTick(this.#meter.openConnections, clock.wallNow());
    if (leftOut > 0) metrics.limitsReached.inc({ limit: "usage-tenants" }, leftOut);
    if (!this.#isSampling) void this.#storeSample(this.#store);
  }

  /** Repeated every second until the store has the sample. `#storeAll` reports a store that is away. */
  async #storeSample(store: UsageStore): Promise<void> {
    this.#isSampling = true;
    try {
      for (let part = this.#samples.next; part !== undefined; part = this.#samples.next) {
        const leftOut = await store.sample(part);
        if (leftOut > 0) this.#deps.metrics.limitsReached.inc({ limit: "usage-tenants" }, leftOut);
        this.#samples.receiveStored(part);
      }
    } catch (cause) {
      rethrowMistake(cause); // Redis is away, or has no memory left.
    } finally {
      this.#isSampling = false;
    }
  }

  #showWaiting(): void {
    const { clock, metrics } = this.#deps;
    if (this.#days.waiting === 0) this.#storedAt = clock.now();
    metrics.usageWaiting.set(this.#days.waiting);
    metrics.usageUnstored.set((clock.now() - this.#storedAt) / 1_000);
  }

  /** Stores batch after batch. A batch that the store may not have is sent again by the next flush. */
  #flush(): Promise<void> {
    const store = this.#store;
    if (store === undefined) return Promise.resolve();
    this.#flushing ??= this.#storeAll(store).finally(() => {
      this.#flushing = undefined;
      this.#showWaiting();
    });
    return this.#flushing;
  }

  async #storeAll(store: UsageStore): Promise<void> {
    try {
      for (let batch = this.#days.nextBatch(); batch !== undefined; batch = this.#days.nextBatch()) {
        await store.add(batch);
        this.#days.receiveStored();
      }
      this.#noteStore(false);
    } catch (cause) {
      rethrowMistake(cause);
      this.#noteStore(true, cause); // Redis is away, or has no memory left.
    }
  }

  #noteStore(isAway: boolean, cause?: unknown): void {
    const { log } = this.#deps;
    if (isAway && !this.#isStoreAway)
      log.warn(
        { cause },
        "usage by tenant waits in this gateway until Redis takes it: check COROOM_REDIS_URL, the memory of Redis, and the permissions of its user (coroom redis-users)",
      );
    if (!isAway && this.#isStoreAway) log.info({}, "Redis takes usage by tenant again");
    this.#isStoreAway = isAway;
  }

  #showCounts(tenant: TenantId, { edits, receivedBytes, deliveredBytes, refusals }: UsageCounts): void {
    const { tenantEdits, tenantBytes, tenantRefusals } = this.#deps.metrics;
    const label = this.#top.labelOf(tenant);
    this.#top.receiveUse(tenant, receivedBytes + deliveredBytes);
    tenantEdits.inc({ tenant: label }, edits);
    tenantBytes.inc({ tenant: label, direction: "received" }, receivedBytes);
    tenantBytes.inc({ tenant: label, direction: "delivered" }, deliveredBytes);
    tenantRefusals.inc({ tenant: label }, refusals);
  }

  #showConnections(): void {
    const { tenantConnections } = this.#deps.metrics;
    const counts = new Map<TenantId, number>([...this.#top.named].map((tenant) => [tenant, 0]));
    for (const [tenant, { count }] of this.#meter.openConnections) {
      const label = this.#top.labelOf(tenant);
      counts.set(label, (counts.get(label) ?? 0) + count);
    }
    tenantConnections.reset();
    for (const [tenant, count] of counts) tenantConnections.set({ tenant }, count);
  }

  #forgetLabel(tenant: TenantId | undefined): void {
    if (tenant === undefined) return;
    const { tenantEdits, tenantBytes, tenantRefusals } = this.#deps.metrics;
    tenantEdits.remove({ tenant });
    tenantRefusals.remove({ tenant });
    for (const direction of ["received", "delivered"]) tenantBytes.remove({ tenant, direction });
  }
}
