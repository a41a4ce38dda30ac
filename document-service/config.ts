/** The document service's settings. */

import { oneOf, port, positiveInteger, SettingError, type Settings, text, type Values, wholeNumber } from "../shared/config.ts";
import { refuseNowhere, type ServiceAddress, serviceUrl } from "../shared/service-address.ts";
import type { SharedConfig } from "../shared/settings.ts";
import { webhookSecrets } from "../shared/webhook-endpoints.ts";

/** Where what lasts of documents is kept. */
export const storeSettings = {
  snapshotsStore: {
    parse: oneOf("jetstream", "folder", "s3"),
    fallback: "jetstream",
    meaning: "where snapshots and history are kept: NATS's object store, a folder, or an S3-compatible store",
  },
  snapshotsFolder: {
    parse: text,
    fallback: "",
    meaning: "the folder, for COROOM_SNAPSHOTS_STORE=folder; all document services must see the same",
  },
  s3Url: { parse: text, fallback: "", meaning: "the S3 endpoint, for COROOM_SNAPSHOTS_STORE=s3; buckets are addressed by path" },
  s3Region: { parse: text, fallback: "us-east-1", meaning: "the region that S3 requests are signed for" },
  s3Bucket: { parse: text, fallback: "", meaning: "the S3 bucket; made where it is missing" },
  s3AccessKeyId: { parse: text, fallback: "", meaning: "who S3 requests are signed by" },
  s3SecretAccessKey: { parse: text, secret: true, fallback: "", meaning: "what S3 requests are signed with" },
} as const satisfies Settings;

/** Of the threads that merge and read documents. */
export const threadSettings = {
  mergeMsMax: {
    parse: positiveInteger,
    fallback: 10_000,
    meaning: "a merge that takes longer is given up, with the thread it ran in; its room is tried again after a pause that doubles",
  },
  mergeThreads: {
    parse: positiveInteger,
    fallback: 1,
    meaning:
      "documents that are merged or read at a time, each in a thread and with the memory that it takes decoded, some ten times its bytes",
  },
  readsWaitingMax: {
    parse: positiveInteger,
    fallback: 100,
    meaning: "questions about documents that wait for a thread; more are told to ask again",
  },
} as const satisfies Settings;

export const documentServiceSettings = {
  internalSecret: {
    parse: text,
    secret: true,
    fallback: "",
    meaning: "what the tiers show each other over HTTP; the same for all of them",
  },
  documentsHost: { parse: text, fallback: "127.0.0.1", meaning: "address that the document service's internal HTTP listens on" },
  documentsPort: { parse: port, fallback: 0, meaning: "port of the document service's internal HTTP; 0: any free one" },
  documentsUrl: {
    parse: serviceUrl,
    fallback: "",
    meaning: "where gateways reach that HTTP; empty: the address and port it listens on, which must not be 0.0.0.0 then",
  },
  documentBodyBytesMax: { parse: positiveInteger, fallback: 1024 ** 2, meaning: "largest body of a request to the document service" },
  documentsAnswerMsMax: {
    parse: positiveInteger,
    fallback: 10_000,
    meaning: "a snapshot that is not there by then is asked for again by the client",
  },
  documentsHeartbeatMs: {
    parse: positiveInteger,
    fallback: 1_000,
    meaning: "how often the document service tells the gateways where it is",
  },
  documentsLeaseMs: {
    parse: positiveInteger,
    fallback: 3_000,
    meaning: "another document service takes over a part of the log whose reader was silent for so long",
  },
  documentsReadMs: { parse: positiveInteger, fallback: 500, meaning: "how often the document service reads what is new in the log" },
  documentsDrainMsMax: {
    parse: positiveInteger,
    fallback: 10_000,
    meaning: "how long a stopping document service may take to save what is not yet in snapshots",
  },
  documentsSweepMs: {
    parse: positiveInteger,
    fallback: 3_600_000,
    meaning: "how often what a crash left behind is looked for: snapshots that nobody names, logs not yet trimmed",
  },

  ...storeSettings,

  snapshotEditsMax: { parse: positiveInteger, fallback: 5_000, meaning: "a room's snapshot is written after so many edits" },
  snapshotBytesMax: { parse: positiveInteger, fallback: 1024 ** 2, meaning: "a room's snapshot is written after so many bytes of edits" },
  snapshotAgeMsMax: { parse: positiveInteger, fallback: 30_000, meaning: "an edit is in a snapshot after so long at the latest" },
  snapshotIntervalMsMin: { parse: positiveInteger, fallback: 5_000, meaning: "a busy room's snapshot is written no more often" },
  snapshotLagBytesMax: {
    parse: wholeNumber,
    fallback: 65_536,
    meaning:
      "bytes of newest edits that the snapshot of a document of 1 MB and more may lack, for whoever joins from there is sent them; less than COROOM_LOG_READ_BYTES_MAX, or a joiner would be sent back to the snapshot",
  },
  replayWindowMs: {
    parse: positiveInteger,
    fallback: 300_000,
    meaning: "edits stay in the log for at least so long, for clients that come back",
  },
  boardsHoldMsMax: {
    parse: positiveInteger,
    fallback: 3 * 24 * 3_600_000,
    meaning:
      "edits that the boards have not counted stay in the log for so long, and are then trimmed all the same; where no leaderboard ever ran nothing is held",
  },
  checkpointClientsMax: {
    parse: positiveInteger,
    fallback: 5_000,
    meaning: "writers of a room whose progress a checkpoint remembers; past it the most silent are forgotten",
  },
  checkpointClientsBytesMax: {
    parse: positiveInteger,
    fallback: 768 * 1024,
    meaning: "bytes of those writers in a checkpoint, which is one message to NATS; past it the most silent are forgotten",
  },
  checkpointClientMsMax: {
    parse: positiveInteger,
    fallback: 3_600_000,
    meaning:
      "how long a checkpoint remembers a silent writer; no less than COROOM_DEDUPE_MS_MIN, or room servers and document services do not start",
  },

  historyMsMax: {
    parse: wholeNumber,
    fallback: 30 * 24 * 3_600_000,
    meaning: "a room's edits and versions are kept for so long; 0: only what the log still has and versions with a name",
  },
  historyBytesMax: {
    parse: positiveInteger,
    fallback: 256 * 1024 ** 2,
    meaning: "bytes of a room's history; past it the oldest goes, but for versions with a name",
  },
  historyVersionMsMin: {
    parse: positiveInteger,
    fallback: 600_000,
    meaning: "a version of an edited room is made when the newest is so old",
  },
  historyVersionEditsMax: {
    parse: positiveInteger,
    fallback: 5_000,
    meaning: "or when so many edits were made since; a state between is the version before it with the edits up to it",
  },
  historyVersionsMax: {
    parse: positiveInteger,
    fallback: 300,
    meaning: "versions of a room that have no name; past it every second one of the older half goes",
  },
  historyNamedMax: {
    parse: positiveInteger,
    fallback: 100,
    meaning: "versions of a room that have a name; they stay until they are removed",
  },
  historySegmentBytesMax: { parse: positiveInteger, fallback: 4 * 1024 ** 2, meaning: "bytes of edits in one object of a room's history" },
  historySegmentMsMin: {
    parse: positiveInteger,
    fallback: 60_000,
    meaning: "logs are trimmed so often, the rooms of a part of the log spread over this time; a room's history is rewritten no more often",
  },
  trimReadOverlapMin: {
    parse: positiveInteger,
    fallback: 64,
    meaning:
      "what rooms put into their histories is read in one pass over the log for all where together they would have it looked through so many times; below that each room's is asked for",
  },
  trimReadBytesMax: {
    parse: positiveInteger,
    fallback: 32 * 1024 ** 2,
    meaning: "bytes that such a pass over one part of the log holds; past it the rest waits for the next, which follows at once",
  },
  historySessionMsMax: {
    parse: positiveInteger,
    fallback: 300_000,
    meaning: "who is silent for longer and writes again begins another session in a room's history",
  },
  historyReadBytesMax: {
    parse: positiveInteger,
    fallback: 64 * 1024 ** 2,
    meaning: "bytes of edits that one question about a room's past may read",
  },

  webhookSecrets: {
    parse: webhookSecrets,
    secret: true,
    fallback: new Map<string, string>(),
    shownAs: "none",
    meaning: "what events are signed with, by the same names as COROOM_WEBHOOK_URLS: whsec_… as Standard Webhooks has it, comma-separated",
  },
  webhookQuietMs: { parse: positiveInteger, fallback: 2_000, meaning: "a change is told once its room was quiet for so long" },
  webhookChangeMsMax: { parse: positiveInteger, fallback: 30_000, meaning: "while a room is not quiet, its change is told after so long" },
  webhookTimeoutMs: { parse: positiveInteger, fallback: 15_000, meaning: "an endpoint that has not answered by then is asked again later" },
  webhookAttemptsMax: {
    parse: positiveInteger,
    fallback: 10,
    meaning: "tries to deliver an event, over some five hours; then it is given up",
  },
  webhookDeliveriesMax: {
    parse: positiveInteger,
    fallback: 8,
    meaning: "events under way to one endpoint at a time, from each document service",
  },
  webhookEventsMax: {
    parse: positiveInteger,
    fallback: 100_000,
    meaning: "events that are kept until they are delivered; past it the oldest are lost",
  },
  webhookBytesMax: { parse: positiveInteger, fallback: 64 * 1024 ** 2, meaning: "bytes of those" },
  webhookKeptMsMax: { parse: positiveInteger, fallback: 24 * 3_600_000, meaning: "how long an event is kept that is not delivered" },

  ...threadSettings,
  stalledBytesMax: {
    parse: positiveInteger,
    fallback: 16 * 1024 ** 2,
    meaning:
      "bytes of edits that are kept of a room whose merges are given up, or whose snapshot is missing; past it they are left in the log until its snapshot is there again, or the service starts again",
  },
  mergeEditsMax: { parse: positiveInteger, fallback: 10_000, meaning: "edits of a room that wait to be merged into its document" },
  mergeBytesMax: { parse: positiveInteger, fallback: 2 * 1024 ** 2, meaning: "bytes of a room's edits that wait to be merged" },
  documentsBytesMax: {
    parse: positiveInteger,
    fallback: 256 * 1024 ** 2,
    meaning: "bytes of documents and waiting edits in memory; past it the log is not read on",
  },
  documentsMax: { parse: positiveInteger, fallback: 20_000, meaning: "rooms known in memory; past it the log is not read on" },
  documentIdleMsMax: {
    parse: positiveInteger,
    fallback: 60_000,
    meaning: "a document that nobody edits or reads for so long leaves the memory; one that was never written in after 10 s",
  },
  documentOpeningsMax: { parse: positiveInteger, fallback: 64, meaning: "checkpoints looked up at a time" },
  documentSavesMax: { parse: positiveInteger, fallback: 4, meaning: "snapshots written at a time; logs are trimmed one by one" },
} as const satisfies Settings;

export type DocumentServiceConfig = Values<typeof documentServiceSettings>;

/** Throws where it may not, or cannot, be started so. */
export function refuseUnfit(config: DocumentServiceConfig & Pick<SharedConfig, "webhookUrls">): void {
  if (config.internalSecret === "") {
    throw new SettingError("the document service answers only who shows a secret: set COROOM_INTERNAL_SECRET, the same as the gateways'");
  }
  refuseNowhere(whereDocumentsAre(config));
  refuseIncompleteStore(config);
  refuseUnsigned(config);
}

export type StoreSettings = Values<typeof storeSettings>;

export function refuseIncompleteStore({
  snapshotsStore,
  snapshotsFolder,
  s3Url,
  s3Bucket,
  s3AccessKeyId,
  s3SecretAccessKey,
}: StoreSettings): void {
  if (snapshotsStore === "folder" && snapshotsFolder === "") {
    throw new SettingError("snapshots are to be kept in a folder: set COROOM_SNAPSHOTS_FOLDER to one that all document services see");
  }
  if (snapshotsStore === "s3" && [s3Url, s3Bucket, s3AccessKeyId, s3SecretAccessKey].includes("")) {
    throw new SettingError(
      "snapshots are to be kept in S3: set COROOM_S3_URL, COROOM_S3_BUCKET, COROOM_S3_ACCESS_KEY_ID and COROOM_S3_SECRET_ACCESS_KEY",
    );
  }
}

function refuseUnsigned({ webhookUrls, webhookSecrets: secrets }: DocumentServiceConfig & Pick<SharedConfig, "webhookUrls">): void {
  const unsigned = webhookUrls.filter(({ name }) => !secrets.has(name));
  if (unsigned.length > 0) {
    throw new SettingError(`webhooks are signed: give COROOM_WEBHOOK_SECRETS a secret for ${unsigned.map(({ name }) => name).join(", ")}`);
  }
}

export function whereDocumentsAre({ documentsHost, documentsUrl }: DocumentServiceConfig): ServiceAddress {
  return { host: documentsHost, url: documentsUrl, urlSetting: "COROOM_DOCUMENTS_URL" };
}

/** What a checkpoint holds beside the list of writers: the snapshot's name, which holds the room's key, is the most of it. */
const BESIDE_CLIENTS_BYTES = 8_192;

/** Refuses checkpoints that NATS would not carry: `maxPayload` bytes a message. */
export function refuseUnwritable({ checkpointClientsBytesMax }: DocumentServiceConfig, maxPayload: number | undefined): void {
  if (maxPayload === undefined || checkpointClientsBytesMax + BESIDE_CLIENTS_BYTES <= maxPayload) return;
  throw new SettingError(
    `a checkpoint's writers may have ${checkpointClientsBytesMax} bytes, more than NATS takes (max_payload ${maxPayload}): raise max_payload, or lower COROOM_CHECKPOINT_CLIENTS_BYTES_MAX`,
  );
}
