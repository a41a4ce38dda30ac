/** One partition of the log over stores in memory, with what is given of records in the log; nothing new comes. */

import { Registry } from "prom-client";

import type { StoredRecord } from "../../shared/bus/stored-record.ts";
import { readSettings } from "../../shared/config.ts";
import type { RoomKey } from "../../shared/ids.ts";
import type { Lease } from "../../shared/lease.ts";
import { FakeClock } from "../../shared/testing/fake-clock.ts";
import { documentServiceSettings } from "../config.ts";
import type { DocumentHostOptions } from "../document-host.ts";
import { documentServiceMetrics } from "../metrics.ts";
import type { EditLog } from "../ports.ts";
import type { PartitionPorts } from "../rooms/partition-host.ts";
import { Undecodable } from "../../shared/undecodable.ts";
import { NO_NEWS } from "../webhooks/news-host.ts";
import { Stores } from "./one-room.ts";

const LEASE_MS = 1_000;
const SETTINGS = readSettings(documentServiceSettings, { env: {}, flags: { documentsLeaseMs: String(LEASE_MS) } });
/** Its checkpoint does not decode, as those of all rooms whose names begin so, until they are mended. */
export const BROKEN = "acme.broken" as RoomKey;

export class OnePartition {
  readonly clock = new FakeClock();
  readonly stores = new Stores();
  readonly options: DocumentHostOptions = { ...SETTINGS, service: "this", logPartitions: 1 };
  readonly deps;
  readonly ports: PartitionPorts;
  readonly mended = new Set<RoomKey>();
  lease: Lease | undefined;
  #revision = 0;

  constructor(...records: readonly StoredRecord[]) {
    const silent = () => {};
    this.deps = {
      clock: this.clock,
      log: { debug: silent, info: silent, warn: silent, error: silent },
      metrics: documentServiceMetrics(new Registry()),
      news: NO_NEWS,
    };
    this.stores.snapshots.set(`${BROKEN}/1-1-older`, Uint8Array.of(1));
    this.ports = this.#ports(records);
  }

  setLease(holder: string): void {
    this.lease = { holder, floor: 0 };
    this.#revision += 1;
  }

  /** For a minute at the most. */
  async until(holds: () => boolean): Promise<void> {
    for (let ms = 0; ms < 60_000 && !holds(); ms += 50) await this.clock.advance(50);
    if (!holds()) throw new Error("it did not come to be so");
  }

  #ports(records: readonly StoredRecord[]): PartitionPorts {
    const { ports } = this.stores;
    const follow: EditLog["follow"] = async function* (_partition, after, signal) {
      yield* records.filter(({ streamSeq }) => streamSeq > after);
      if (!signal.aborted) await new Promise((resolve) => signal.addEventListener("abort", resolve));
    };
    return {
      ...ports,
      log: { ...ports.log, follow },
      checkpoints: {
        ...ports.checkpoints,
        read: (room) =>
          room.startsWith(BROKEN) && !this.mended.has(room)
            ? Promise.reject(new Undecodable("it does not decode"))
            : ports.checkpoints.read(room),
      },
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
