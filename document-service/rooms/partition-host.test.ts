import { Registry } from "prom-client";
import { expect, test } from "vitest";

import { readSettings } from "../../shared/config.ts";
import { type Lease, NOBODY } from "../../shared/lease.ts";
import { FakeClock } from "../../shared/testing/fake-clock.ts";
import { documentServiceSettings } from "../config.ts";
import { documentServiceMetrics } from "../metrics.ts";
import type { EditLog } from "../ports.ts";
import { recordsOf, ROOM, Run, Stores } from "../testing/one-room.ts";
import { NO_NEWS } from "../webhooks/news-host.ts";
import { PartitionHost, type PartitionPorts } from "./partition-host.ts";

const LEASE_MS = 1_000;
const SETTINGS = readSettings(documentServiceSettings, { env: {}, flags: { documentsLeaseMs: String(LEASE_MS) } });
/** Its checkpoint cannot be read. */
const BROKEN = "acme.broken";

/** The only partition of a log in which nothing new comes. */
class Rig {
  readonly clock = new FakeClock();
  readonly stores = new Stores();
  lease: Lease | undefined;
  #revision = 0;
  readonly host: PartitionHost;

  constructor() {
    const silent = () => {};
    const deps = { clock: this.clock, log: { debug: silent, info: silent, warn: silent, error: silent }, metrics: documentServiceMetrics(new Registry()), news: NO_NEWS };
    this.stores.snapshots.set(`${BROKEN}/1-1-older`, Uint8Array.of(1));
    this.host = new PartitionHost(0, this.#ports(), { ...SETTINGS, service: "this", logPartitions: 1 }, deps);
  }

  setLease(holder: string): void {
    this.lease = { holder, floor: 0 };
    this.#revision += 1;
  }

  async until(holds: () => boolean): Promise<void> {
    for (let ms = 0; ms < 60_000 && !holds(); ms += 50) await this.clock.advance(50);
    expect(holds()).toBe(true);
  }

  #ports(): PartitionPorts {
    const { ports } = this.stores;
    const follow: EditLog["follow"] = async function* (_partition, _after, signal) {
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
      yield* [];
    };
    return {
      ...ports,
      log: { ...ports.log, follow },
      checkpoints: { ...ports.checkpoints, read: (room) => (room === BROKEN ? Promise.reject(new Error("it does not decode")) : ports.checkpoints.read(room)) },
      leases: {
        read: () => Promise.resolve({ lease: this.lease, revision: this.#revision }),
        write: (_, { holder }, revision) => {
          if (revision !== this.#revision) return Promise.resolve({ kind: "superseded" });
          this.setLease(holder);
          return Promise.resolve({ kind: "written", revision: this.#revision });
        },
      },
      boards: { read: () => Promise.resolve({ lease: undefined, revision: 0 }) },
    };
  }
}

test("[PTH1] a partition that is lost while a room of it does not open is held again later, and given back at the end", async () => {
  const rig = new Rig();
  const run = rig.host.run();
  await rig.until(() => rig.host.isHeld);
  rig.setLease("other");
  await rig.until(() => !rig.host.isHeld);
  rig.setLease(NOBODY);
  await rig.until(() => rig.host.isHeld);

  let hasEnded = false;
  void run.then(() => (hasEnded = true));
  rig.host.stop();
  await rig.until(() => hasEnded);
  expect(rig.lease?.holder).toBe(NOBODY);
});

test("[PTH2] a look for what a crash left behind goes past a room that does not open", async () => {
  const rig = new Rig();
  const { stores } = rig;
  const earlier = new Run(stores);
  await earlier.take(...recordsOf("ab"));
  await earlier.room.save();
  const orphan = `${ROOM}/1-1-older`;
  stores.snapshots.set(orphan, Uint8Array.of(1));
  void rig.host.run();
  await rig.until(() => !stores.snapshots.has(orphan));
  expect([...stores.snapshots.keys()]).toEqual([`${BROKEN}/1-1-older`, stores.checkpoint?.snapshot.object]);
});
