import { Registry } from "prom-client";
import { expect, test } from "vitest";

import { AssertionError } from "../../shared/assert.ts";
import type { StoragePeaks } from "../../shared/bus/storage-messages.ts";
import type { TenantId } from "../../shared/ids.ts";
import { FakeClock } from "../../shared/testing/fake-clock.ts";
import { SILENT_LOG } from "../../shared/testing/silent-log.ts";
import type { UsageDay } from "../../shared/time/usage-day.ts";
import { gatewayMetrics } from "../metrics.ts";
import type { UsageStore } from "../ports.ts";
import type { ConnectionSample } from "./connection-samples.ts";
import { TenantUsageHost } from "./tenant-usage-host.ts";
import { addUsage, noUsage, OTHER_TENANTS, type StoredUsage, type UsageCounts } from "./usage-counts.ts";
import type { UsageBatch } from "./usage-days.ts";
import { UsageMeter } from "./usage-meter.ts";

const acme = "acme" as TenantId;
const JUST_BEFORE_MIDNIGHT = Date.UTC(2026, 10, 30, 23, 59, 55);
const OPTIONS = { usageTenantsMax: 20, usageNamedTenantsMax: 3, usageTenantsPerBatchMax: 2, usageFlushMs: 10_000, usageSampleMs: 60_000 };

/** A store that adds each batch once, as the real one does. `fails`: it adds the batch and its answer is lost, or it is away. */
class ListStore implements UsageStore {
  fails: "lost-answer" | "away" | undefined;
  calls = 0;
  readonly sums = new Map<string, UsageCounts>();
  readonly raised: StoragePeaks["tenants"][number][] = [];
  #last = 0;

  add(batch: UsageBatch): Promise<void> {
    this.calls += 1;
    if (this.fails === "away") return Promise.reject(new Error("away"));
    if (batch.number > this.#last) for (const [tenant, usage] of batch.tenants) this.#count(`${batch.day} ${tenant}`, usage);
    this.#last = Math.max(this.#last, batch.number);
    return this.fails === "lost-answer" ? Promise.reject(new Error("the answer is lost")) : Promise.resolve();
  }

  #count(key: string, usage: Readonly<UsageCounts>): void {
    const sum = this.sums.get(key) ?? noUsage();
    this.sums.set(key, sum);
    addUsage(sum, usage);
  }

  readonly samples: ConnectionSample[] = [];
  sample(sample: ConnectionSample): Promise<number> {
    this.calls += 1;
    if (this.fails === "away") return Promise.reject(new Error("away"));
    this.samples.push(sample);
    return this.fails === "lost-answer" ? Promise.reject(new Error("the answer is lost")) : Promise.resolve(0);
  }

  /** One tenant has no space in the day. */
  raise({ tenants }: StoragePeaks): Promise<number> {
    if (this.fails === "away") return Promise.reject(new Error("away"));
    this.raised.push(...tenants);
    return Promise.resolve(1);
  }

  read(): Promise<ReadonlyMap<TenantId, StoredUsage>> {
    return Promise.resolve(new Map());
  }
}

function host<Store extends ListStore | null = ListStore>(store: Store = new ListStore() as Store) {
  const [clock, registry] = [new FakeClock(JUST_BEFORE_MIDNIGHT), new Registry()];
  const meter = new UsageMeter({ tenantsMax: OPTIONS.usageTenantsMax });
  const usage = new TenantUsageHost(meter, store ?? undefined, OPTIONS, { clock, log: SILENT_LOG, metrics: gatewayMetrics(registry) });
  usage.start();
  /** Values of a metric by the label `tenant`, and by `direction` where it has one. */
  const shown = async (name: string): Promise<Record<string, number>> => {
    const { values } = await registry.getSingleMetric(`coroom_gateway_${name}`)!.get();
    return Object.fromEntries(values.map(({ labels, value }) => [Object.values(labels).join(" "), value]));
  };
  return { clock, meter, usage, store, shown };
}

const editsIn = ({ sums }: ListStore): [string, number][] => [...sums].map(([key, { edits }]) => [key, edits]);

test("[USG9] usage is stored at an interval, on the day on which its second ends", async () => {
  const { clock, meter, store } = host();
  meter.add(acme, "edits", 3);
  await clock.advance(4_000);
  meter.add(acme, "edits", 2);
  await clock.advance(5_000);
  expect(store.calls).toBe(0);
  await clock.advance(1_000);
  expect(editsIn(store)).toEqual([
    ["2026-11-30 acme", 3],
    ["2026-12-01 acme", 2],
  ]);
});

test.each(["lost-answer", "away"] as const)("[USG10] usage waits and counts once when the store fails (%s)", async (fails) => {
  const { clock, meter, store, shown } = host();
  store.fails = fails;
  for (let second = 0; second < 100; second++) {
    meter.add(acme, "edits", 1);
    await clock.advance(1_000);
  }
  expect(store.calls).toBe(10);
  expect((await shown("usage_waiting"))[""]).toBeGreaterThan(0);
  expect((await shown("usage_unstored_seconds"))[""]).toBeGreaterThan(80);
  store.fails = undefined;
  await clock.advance(10_000);
  expect(editsIn(store).reduce((sum, [, edits]) => sum + edits, 0)).toBe(100);
  expect([await shown("usage_waiting"), await shown("usage_unstored_seconds")]).toEqual([{ "": 0 }, { "": 0 }]);
});

test("[USG11] a gateway that stops stores its last usage, and does not wait for a store that is away", async () => {
  const { clock, meter, usage, store } = host();
  meter.receiveOpened(acme, clock.now());
  await clock.advance(500);
  await usage.stop();
  expect([...store.sums.values()]).toMatchObject([{ connections: 1, connectionMs: 500 }]);
  expect(clock.pending).toBe(0);

  const other = host();
  other.store.fails = "away";
  other.meter.add(acme, "edits", 1);
  await other.usage.stop();
  expect([other.store.calls, other.clock.pending]).toEqual([1, 0]);

  const stuck = host();
  stuck.store.add = () => new Promise(() => {});
  stuck.meter.add(acme, "edits", 1);
  const stopped = stuck.usage.stop();
  await stuck.clock.advance(2_000);
  await stopped;
});

test("[USG12] too many tenants while the store is away count as others, and the limit is counted", async () => {
  const { clock, meter, store, shown } = host();
  store.fails = "away";
  for (let index = 0; index < 50; index++) {
    meter.add(`t${index}` as TenantId, "edits", 1);
    if (index % 5 === 4) await clock.advance(1_000);
  }
  expect((await shown("usage_waiting"))[""]).toBeLessThanOrEqual(22);
  expect((await shown("limits_reached_total"))["usage-tenants"]).toBeGreaterThan(20);
  store.fails = undefined;
  await clock.advance(10_000);
  const stored = editsIn(store);
  expect(stored.reduce((sum, [, edits]) => sum + edits, 0)).toBe(50);
  expect(stored.some(([key]) => key.endsWith(OTHER_TENANTS))).toBe(true);
});

test("[USG15] more tenants in one second than are counted apart reach the limit, also without a store", async () => {
  const { clock, meter, shown } = host(null);
  for (let index = 0; index < OPTIONS.usageTenantsMax + 1; index++) meter.add(`t${index}` as TenantId, "edits", 1);
  await clock.advance(1_000);
  expect((await shown("limits_reached_total"))["usage-tenants"]).toBe(1);
});

test("[USG13] metrics name a bounded number of tenants whatever names come, and each count has one label", async () => {
  const { clock, meter, shown } = host();
  let edits = 0;
  let before = 0;
  for (let minute = 0; minute < 20; minute++) {
    for (let index = 0; index < 30; index++) {
      const tenant = `t${minute}-${index}` as TenantId;
      meter.receiveOpened(tenant, clock.now());
      meter.add(tenant, "edits", 1);
      meter.add(tenant, "receivedBytes", 10_000 * (index + 1));
      meter.add(tenant, "refusals", 1);
      edits += 1;
    }
    await clock.advance(1_000);
    for (const name of ["tenant_connections", "tenant_edits_total", "tenant_refusals_total"])
      expect(Object.keys(await shown(name)).length).toBeLessThanOrEqual(4);
    expect(Object.keys(await shown("tenant_bytes_total")).length).toBeLessThanOrEqual(8);
    const connections = Object.values(await shown("tenant_connections"));
    expect(connections.reduce((sum, each) => sum + each, 0)).toBe(30 * (minute + 1));
    const others = (await shown("tenant_edits_total"))[OTHER_TENANTS]!;
    expect(others, "the shared counter never falls").toBeGreaterThanOrEqual(before);
    before = others;
    await clock.advance(59_000);
  }
  const counted = Object.values(await shown("tenant_edits_total")).reduce((sum, each) => sum + each, 0);
  expect(counted, "a tenant that lost its name takes its counts away").toBeLessThanOrEqual(edits);
  expect(counted).toBeGreaterThan(edits - 20);
});

test("[USG14] a tenant that gets a name after others starts at 0, and a tenant that lost its name counts with the others from then on", async () => {
  const { clock, meter, shown } = host();
  for (const tenant of ["a", "b", "c", "hot"] as TenantId[]) meter.add(tenant, "edits", 1);
  await clock.advance(1_000);
  expect(await shown("tenant_edits_total")).toEqual({ "a": 1, "b": 1, "c": 1, "(other)": 1 });
  meter.add("hot" as TenantId, "receivedBytes", 1_000);
  for (const tenant of ["b", "c"] as TenantId[]) meter.add(tenant, "receivedBytes", 10);
  await clock.advance(60_000);
  expect(await shown("tenant_edits_total")).toEqual({ "b": 1, "c": 1, "(other)": 1 });
  for (const tenant of ["a", "hot"] as TenantId[]) meter.add(tenant, "edits", 5);
  await clock.advance(1_000);
  expect(await shown("tenant_edits_total")).toEqual({ "b": 1, "c": 1, "(other)": 6, "hot": 5 });
});

test("[USG16] stored bytes go to the store at once, tenants without space count as a reached limit, and a store that is away stops nothing", async () => {
  const { usage, store, shown } = host();
  const peaks: StoragePeaks = { day: "2026-11-30" as UsageDay, tenants: [[acme, 700]] };
  store.fails = "away";
  await usage.receivePeaks(peaks);
  expect([store.raised, await shown("limits_reached_total")]).toEqual([[], {}]);
  store.fails = undefined;
  await usage.receivePeaks(peaks);
  expect([store.raised, await shown("limits_reached_total")]).toEqual([[[acme, 700]], { "usage-tenants": 1 }]);
});

test("[USG19] open connections are sampled at each minute, offered until the store has them, and replaced by the next sample", async () => {
  const { clock, meter, store } = host();
  const midnight = Date.UTC(2026, 11, 1);
  for (const tenant of ["a", "b", "c"] as TenantId[]) meter.receiveOpened(tenant, clock.now());
  await clock.advance(4_000);
  expect(store.samples).toEqual([]);
  store.fails = "lost-answer";
  await clock.advance(3_000);
  store.fails = undefined;
  await clock.advance(10_000);
  const [first] = store.samples;
  expect(first).toEqual({ moment: midnight, part: 1, tenants: [["a", 1], ["b", 1]] }); // prettier-ignore
  expect(store.samples.filter((sample) => sample === first).length, "the same part again").toBeGreaterThan(1);
  expect(store.samples.at(-1)).toEqual({ moment: midnight, part: 2, tenants: [["c", 1]] });

  store.fails = "away";
  meter.receiveClosed("b" as TenantId, clock.now());
  await clock.advance(60_000);
  meter.receiveClosed("c" as TenantId, clock.now());
  store.samples.length = 0;
  await clock.advance(60_000);
  store.fails = undefined;
  await clock.advance(1_000);
  expect(store.samples, "the newest only").toEqual([{ moment: midnight + 120_000, part: 1, tenants: [["a", 1]] }]);
});

test("[USG20] a programming mistake in the store is not taken for a store that is away", async () => {
  const mistaken = (): Promise<never> => Promise.reject(new AssertionError("a batch has tenants"));
  const { meter, usage, store } = host();
  store.raise = mistaken;
  await expect(usage.receivePeaks({ day: "2026-11-30" as UsageDay, tenants: [[acme, 700]] })).rejects.toThrow(AssertionError);
  store.add = mistaken;
  meter.add(acme, "edits", 1);
  await expect(usage.stop()).rejects.toThrow(AssertionError);
});
