/** The document service's settings. */

import {
  constant,
  oneOf,
  port,
  positiveInteger,
  SettingError,
  type Settings,
  text,
  type Values,
  wholeNumber,
} from "../shared/settings/settings.ts";
import { internalSecretSettings, internalTlsSettings } from "../shared/settings/internal-tls-settings.ts";
import { refuseUnreachableAddress, type ServiceAddress, serviceUrl } from "../shared/settings/service-address.ts";
import { postgresUrl } from "../shared/settings/postgres-address.ts";
import { refuseUnfitStorage, storageSettings } from "./storage/storage-settings.ts";
import { endpointSettings, refuseUnsigned, type SignedEndpoints } from "./webhooks/endpoint-settings.ts";

/** The stores of snapshots and history. */
export const storeSettings = {
  snapshotsStore: {
    parse: oneOf("jetstream", "folder", "s3", "postgres"),
    fallback: "jetstream",
    meaning: "Store for snapshots and history: jetstream (NATS object store), folder, s3, or postgres.",
    basic: true,
  },
  snapshotsFolder: {
    parse: text,
    fallback: "",
    meaning: "Folder for COROOM_SNAPSHOTS_STORE=folder. All document services must use the same folder.",
    basic: true,
  },
  s3Url: { parse: text, fallback: "", meaning: "S3 endpoint for COROOM_SNAPSHOTS_STORE=s3. Buckets are addressed by path.", basic: true },
  s3Region: { parse: text, fallback: "us-east-1", meaning: "Region that S3 requests are signed for." },
  s3Bucket: { parse: text, fallback: "", meaning: "S3 bucket. It is created if it does not exist.", basic: true },
  s3AccessKeyId: { parse: text, fallback: "", meaning: "Access key id for S3.", basic: true },
  s3SecretAccessKey: { parse: text, secret: true, fallback: "", meaning: "Secret access key for S3.", basic: true },
  postgresUrl: {
    parse: postgresUrl,
    secret: true,
    fallback: "",
    meaning: "PostgreSQL database for COROOM_SNAPSHOTS_STORE=postgres. The table coroom_objects is created if it does not exist.",
    basic: true,
  },
} as const satisfies Settings;

/** The threads that merge and read documents. */
export const threadSettings = {
  mergeMsMax: {
    parse: positiveInteger,
    fallback: 10_000,
    meaning:
      "Milliseconds after which the merge of a quarantined room is aborted together with its thread. The room is retried after a pause that doubles.",
  },
  mergeThreads: {
    parse: positiveInteger,
    fallback: 2,
    meaning:
      "Number of threads that merge and read documents. HTTP writes and quarantined rooms have one further thread each. Each needs about ten times the bytes of its document in memory.",
  },
  readsWaitingMax: {
    parse: positiveInteger,
    fallback: 100,
    meaning:
      "Maximum number of document reads, and of HTTP writes, that wait for a thread. Further requests are refused with a retry hint.",
  },
} as const satisfies Settings;

export const documentServiceSettings = {
  ...internalTlsSettings,
  ...internalSecretSettings,
  documentsHost: {
    parse: text,
    fallback: "127.0.0.1",
    meaning: "Address that the document service's internal HTTP server listens on.",
    basic: true,
  },
  documentsPort: {
    parse: port,
    fallback: 0,
    meaning: "Port of the document service's internal HTTP server; 0 chooses a free port.",
    basic: true,
  },
  documentsUrl: {
    parse: serviceUrl,
    fallback: "",
    meaning: "URL at which gateways reach the document service. Empty: its listening address and port, which must not be 0.0.0.0.",
    basic: true,
  },
  documentBodyBytesMax: {
    parse: positiveInteger,
    fallback: 1024 ** 2,
    meaning: "Maximum body size of a request to the document service in bytes.",
  },
  documentsAnswerMsMax: {
    parse: positiveInteger,
    fallback: 10_000,
    meaning: "Milliseconds after which a snapshot request that is not answered is reported as retryable to the client.",
  },
  /** Milliseconds between two announcements of the document service's URL to the gateways. */
  documentsHeartbeatMs: constant(1_000),
  documentsLeaseMs: {
    parse: positiveInteger,
    fallback: 3_000,
    meaning: "Milliseconds after which another document service takes over the log partitions of a silent one.",
  },
  documentsReadMs: {
    parse: positiveInteger,
    fallback: 500,
    meaning: "Milliseconds between two reads of new log records by the document service.",
  },
  documentsDrainMsMax: {
    parse: positiveInteger,
    fallback: 10_000,
    meaning: "Milliseconds that a stopping document service may spend on saving snapshots.",
  },
  documentsSweepMs: {
    parse: positiveInteger,
    fallback: 3_600_000,
    meaning: "Milliseconds between two searches for orphaned snapshots and untrimmed logs that a crash left behind.",
  },

  ...storeSettings,

  snapshotEditsMax: { parse: positiveInteger, fallback: 5_000, meaning: "Number of edits after which a room's snapshot is written." },
  snapshotBytesMax: { parse: positiveInteger, fallback: 1024 ** 2, meaning: "Bytes of edits after which a room's snapshot is written." },
  snapshotAgeMsMax: { parse: positiveInteger, fallback: 30_000, meaning: "Maximum milliseconds until an edit is in a snapshot." },
  snapshotIntervalMsMin: { parse: positiveInteger, fallback: 5_000, meaning: "Minimum milliseconds between two snapshots of a room." },
  snapshotLagBytesMax: {
    parse: wholeNumber,
    fallback: 65_536,
    meaning:
      "Maximum bytes of recent edits that are missing in a served snapshot of 1 MB or more. The joining client receives them as edits. Must be less than COROOM_LOG_READ_BYTES_MAX.",
  },
  replayWindowMs: {
    parse: positiveInteger,
    fallback: 300_000,
    meaning: "Minimum milliseconds that an edit stays in the log, so that a reconnecting client needs no snapshot.",
  },
  boardsHoldMsMax: {
    parse: positiveInteger,
    fallback: 3 * 24 * 3_600_000,
    meaning:
      "Maximum milliseconds that edits stay in the log until the leaderboard has counted them. The time begins again when another document service reads them. A deployment without a leaderboard holds no edits.",
  },
  checkpointClientsMax: {
    parse: positiveInteger,
    fallback: 5_000,
    meaning:
      "Maximum number of writers per room whose last edit number a checkpoint stores. Writers that have been silent longest are removed first; their repeated edits may be ordered again.",
  },
  checkpointClientsBytesMax: {
    parse: positiveInteger,
    fallback: 768 * 1024,
    meaning:
      "Maximum bytes of the writers in a checkpoint, which is one NATS message. Writers that have been silent longest are removed first.",
  },
  checkpointClientMsMax: {
    parse: positiveInteger,
    fallback: 3_600_000,
    meaning: "Milliseconds that a checkpoint keeps a silent writer. At least COROOM_DEDUPE_MS_MIN.",
  },

  historyMsMax: {
    parse: wholeNumber,
    fallback: 30 * 24 * 3_600_000,
    meaning: "Milliseconds that a room's edits and versions are kept. 0 keeps only the log's content and named versions.",
    basic: true,
  },
  historyBytesMax: {
    parse: positiveInteger,
    fallback: 256 * 1024 ** 2,
    meaning: "Maximum bytes of one room's history. The oldest content is removed first, except for named versions.",
  },
  ...storageSettings,
  historyVersionMsMin: {
    parse: positiveInteger,
    fallback: 600_000,
    meaning: "Minimum milliseconds between two automatic versions of an edited room.",
  },
  historyVersionEditsMax: {
    parse: positiveInteger,
    fallback: 5_000,
    meaning: "Number of edits after which a new automatic version is made.",
  },
  historyVersionsMax: {
    parse: positiveInteger,
    fallback: 300,
    meaning: "Maximum number of unnamed versions per room. Beyond it, every second version of the older half is removed.",
  },
  historyNamedMax: {
    parse: positiveInteger,
    fallback: 100,
    meaning: "Maximum number of named versions per room. They stay until they are deleted.",
  },
  /** Maximum bytes of edits in one history object. */
  historySegmentBytesMax: constant(4 * 1024 ** 2),
  historySegmentMsMin: {
    parse: positiveInteger,
    fallback: 60_000,
    meaning: "Minimum milliseconds between two trims of a room's log. It also limits how often history objects are rewritten.",
  },
  trimReadOverlapMin: {
    parse: positiveInteger,
    fallback: 64,
    meaning: "Number of repeated reads of the same log range above which one shared pass archives all rooms instead.",
  },
  trimReadBytesMax: {
    parse: positiveInteger,
    fallback: 32 * 1024 ** 2,
    meaning: "Maximum bytes of edits in memory during one shared archiving pass. The next pass reads the rest.",
  },
  /** Milliseconds of silence after which a writer's next edit starts a new session in the room's history. */
  historySessionMsMax: constant(300_000),
  historyReadBytesMax: {
    parse: positiveInteger,
    fallback: 64 * 1024 ** 2,
    meaning: "Maximum bytes of edits that one history request may read.",
  },

  ...endpointSettings,
  ...threadSettings,
  stalledBytesMax: {
    parse: positiveInteger,
    fallback: 16 * 1024 ** 2,
    meaning:
      "Maximum bytes of edits kept in memory for a room whose merge fails or whose snapshot is missing. Further edits stay in the log.",
  },
  mergeEditsMax: { parse: positiveInteger, fallback: 10_000, meaning: "Maximum number of edits per room that wait for a merge." },
  mergeBytesMax: { parse: positiveInteger, fallback: 2 * 1024 ** 2, meaning: "Maximum bytes of edits per room that wait for a merge." },
  documentsBytesMax: {
    parse: positiveInteger,
    fallback: 256 * 1024 ** 2,
    meaning: "Maximum bytes of documents and waiting edits in memory. Beyond it the document service stops reading the log.",
  },
  documentsMax: {
    parse: positiveInteger,
    fallback: 20_000,
    meaning: "Maximum number of rooms in a document service's memory. Beyond it the document service stops reading the log.",
  },
  documentIdleMsMax: {
    parse: positiveInteger,
    fallback: 60_000,
    meaning: "Milliseconds without edits or reads after which a document leaves memory. Documents without any edit leave after 10 s.",
  },
  /** Maximum number of concurrent checkpoint reads. */
  documentOpeningsMax: constant(64),
  /** Maximum number of concurrent snapshot writes. Logs are trimmed one at a time. */
  documentSavesMax: constant(4),
} as const satisfies Settings;

export type DocumentServiceConfig = Values<typeof documentServiceSettings>;

/** Throws if the configuration is not permitted or not complete. */
export function refuseUnfit(config: DocumentServiceConfig & SignedEndpoints): void {
  if (config.internalSecret === "") {
    throw new SettingError(
      "the document service refuses requests without a secret. Set COROOM_INTERNAL_SECRET to the secret of the gateways",
    );
  }
  refuseUnreachableAddress(documentsAddress(config));
  refuseIncompleteStore(config);
  refuseUnsigned(config);
  refuseUnfitStorage(config);
}

export type StoreSettings = Values<typeof storeSettings>;

export function refuseIncompleteStore(config: StoreSettings): void {
  const { snapshotsStore: store } = config;
  if (store === "folder" && config.snapshotsFolder === "") {
    throw new SettingError(
      "COROOM_SNAPSHOTS_STORE is folder, and no folder is named: set COROOM_SNAPSHOTS_FOLDER to a folder that all document services can access",
    );
  }
  if (store === "s3" && [config.s3Url, config.s3Bucket, config.s3AccessKeyId, config.s3SecretAccessKey].includes("")) {
    throw new SettingError(
      "COROOM_SNAPSHOTS_STORE is s3, and its address or keys are missing. Set COROOM_S3_URL, COROOM_S3_BUCKET, COROOM_S3_ACCESS_KEY_ID and COROOM_S3_SECRET_ACCESS_KEY",
    );
  }
  if (store === "postgres" && config.postgresUrl === "") {
    throw new SettingError(
      "COROOM_SNAPSHOTS_STORE is postgres, and no database is named: set COROOM_POSTGRES_URL to postgres://user:password@host:port/database",
    );
  }
}

export function documentsAddress({ documentsHost, documentsUrl }: DocumentServiceConfig): ServiceAddress {
  return { host: documentsHost, url: documentsUrl, urlSetting: "COROOM_DOCUMENTS_URL" };
}

/** The parts of a checkpoint in addition to its list of writers. The largest is the snapshot's name, which contains the room's key. */
const BESIDE_CLIENTS_BYTES = 8_192;

/** Throws if a checkpoint could exceed `maxPayload`, the bytes of one NATS message. */
export function refuseUnwritable({ checkpointClientsBytesMax }: DocumentServiceConfig, maxPayload: number | undefined): void {
  if (maxPayload === undefined || checkpointClientsBytesMax + BESIDE_CLIENTS_BYTES <= maxPayload) return;
  throw new SettingError(
    `a checkpoint's list of writers may have ${checkpointClientsBytesMax} bytes, more than NATS accepts (max_payload ${maxPayload}). Raise max_payload, or lower COROOM_CHECKPOINT_CLIENTS_BYTES_MAX`,
  );
}
