/** One partition of the log over stores in memory, with given records in the log and no new ones. */

import { Registry } from "prom-client";

import type { StoredRecord } from "../../shared/bus/record.ts";
import { readSettings } from "../../shared/settings/settings.ts";
import type { RoomKey } from "../../shared/ids.ts";
import type { Lease } from "../../shared/cluster/lease.ts";
import { FakeClock } from "../../shared/testing/fake-clock.ts";
import { documentServiceSettings } from "../config.ts";
import type { DocumentHostOptions, DocumentPorts } from "../document-host.ts";
import { documentServiceMetrics } from "../metrics.ts";
import type { EditLog, StorageBus, StorageQuestions } from "../ports.ts";
import { UndecodableEntry } from "../../shared/bus/json-messages.ts";
import { LeftOutEdits } from "../rooms/left-out-edits.ts";
import { NO_NOTIFICATIONS } from "../webhooks/change-queue-host.ts";
import { Stores } from "./one-room.ts";

const LEASE_MS = 1_000;
const SETTINGS = readSettings(documentServiceSettings, { env: {}, flags: { documentsLeaseMs: String(LEASE_MS) } });
/** Rooms whose names begin with this have a checkpoint that does not decode, until they are in `repaired`. */
export const BROKEN = "acme.broken" as RoomKey;

/** Nobody reports or answers. */
export const SILENT_STORAGE: StorageBus = {
  publishCounts: () => {},
  publishFull: () => {},
  publishPeaks: () => {},
  onCounts: () => {},
  onFull: () => {},
};
export const NO_STORAGE_QUESTIONS: StorageQuestions = { onQuestion: () => {} };

export class OnePartition {
  readonly clock = new FakeClock();
  readonly stores = new Stores();
  readonly options: DocumentHostOptions = { ...SETTINGS, service: "this", logPartitions: 1 };
  readonly deps;
  readonly ports: DocumentPorts;
  readonly repaired = new Set<RoomKey>();
  lease: Lease | undefined;
  #revision = 0;

  constructor(...records: readonly StoredRecord[]) {
    const silent = () => {};
    this.deps = {
      clock: this.clock,
      log: { debug: silent, info: silent, warn: silent, error: silent },
      metrics: documentServiceMetrics(new Registry()),
      notifications: NO_NOTIFICATIONS,
      operations: { report: () => {} },
      leftOut: new LeftOutEdits(),
    };
    this.stores.snapshots.set(`${BROKEN}/1-1-older`, Uint8Array.of(1));
    this.ports = this.#ports(records);
  }

  setLease(holder: string): void {
    this.lease = { holder, floor: 0 };
    this.#revision += 1;
  }

  /** Waits for at most one minute. */
  async until(holds: () => boolean): Promise<void> {
    for (let ms = 0; ms < 60_000 && !holds(); ms += 50) await this.clock.advance(50);
    if (!holds()) throw new Error("the condition did not become true within one minute");
  }

  #ports(records: readonly StoredRecord[]): DocumentPorts {
    const { ports } = this.stores;
    const follow: EditLog["follow"] = async function* (_partition, { after }, signal) {
      yield* records.filter(({ streamSeq }) => streamSeq > after);
      if (!signal.aborted) await new Promise((resolve) => signal.addEventListener("abort", resolve));
    };
    return {
      ...ports,
      storage: SILENT_STORAGE,
      storageQuestions: NO_STORAGE_QUESTIONS,
      log: { ...ports.log, follow, at: (_, streamSeq) => Promise.resolve(records.find((stored) => stored.streamSeq === streamSeq)) },
      checkpoints: {
        ...ports.checkpoints,
        read: (room) =>
          room.startsWith(BROKEN) && !this.repaired.has(room)
            ? Promise.reject(new UndecodableEntry("it does not decode"))
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
