/** Settings of documents over HTTP: the limits of reads and writes. */

import { positiveInteger, type Settings, type Values, wholeNumber } from "../../shared/settings/settings.ts";
import type { HttpConfig } from "./http.ts";
import type { SessionConfig } from "./sessions.ts";

export const documentSettings = {
  snapshotBurst: { parse: positiveInteger, fallback: 20, meaning: "Number of snapshots that one user may fetch from a gateway at once." },
  snapshotsPerSecond: {
    parse: positiveInteger,
    fallback: 2,
    meaning: "Maximum sustained snapshots per second and user from one gateway. Lists of rooms have a separate limit of the same size.",
  },
  gatewaySnapshotBurst: {
    parse: positiveInteger,
    fallback: 4_000,
    meaning: "Number of snapshots that all users may fetch from a gateway at once.",
  },
  gatewaySnapshotsPerSecond: {
    parse: positiveInteger,
    fallback: 1_000,
    meaning: "Maximum sustained snapshots per second from one gateway.",
  },
  snapshotSharedMs: {
    parse: wholeNumber,
    fallback: 1_000,
    meaning:
      "Milliseconds that a gateway reuses a fetched snapshot for other clients. It is kept longer while the room is unchanged. 0: only concurrent requests share.",
  },
  snapshotSharedBytesMax: {
    parse: positiveInteger,
    fallback: 134_217_728,
    meaning: "Maximum bytes of shared snapshots in a gateway's memory. Larger snapshots are fetched for each client.",
  },
  streamedAnswersMax: {
    parse: positiveInteger,
    fallback: 64,
    meaning:
      "Maximum number of concurrent document answers that a gateway streams from the document service. One tenant has at most three quarters of them.",
  },
  streamedAnswersPerUserMax: {
    parse: positiveInteger,
    fallback: 8,
    meaning: "Maximum number of concurrent streamed document answers per user.",
  },
  documentWriteBurst: {
    parse: positiveInteger,
    fallback: 100,
    meaning: "Number of edits and documents that one user may send over HTTP at once.",
  },
  documentWritesPerSecond: {
    parse: positiveInteger,
    fallback: 20,
    meaning:
      "Maximum sustained HTTP writes per second, per user and gateway. Edits, document creations and restores share this limit; deletions have a separate limit of the same size.",
  },
  writesMax: {
    parse: positiveInteger,
    fallback: 1_000,
    meaning: "Maximum number of HTTP edits that wait for the log at one gateway. Further ones are refused with a retry hint.",
  },
  writeMsMax: {
    parse: positiveInteger,
    fallback: 10_000,
    meaning: "Milliseconds that an HTTP edit waits for the log before the answer is 504. The same request can be repeated safely.",
  },
} as const satisfies Settings;

type DocumentConfig = Values<typeof documentSettings>;

/** Limits of document reads. */
export function documentReadOptions(config: DocumentConfig & HttpConfig) {
  return {
    internalSecret: config.internalSecret,
    shared: { sharedMs: config.snapshotSharedMs, bytesMax: config.snapshotSharedBytesMax },
    eachUser: { burst: config.snapshotBurst, perSecond: config.snapshotsPerSecond },
    everybody: { burst: config.gatewaySnapshotBurst, perSecond: config.gatewaySnapshotsPerSecond },
    readersMax: config.connectionsMax,
  };
}

/** Limits of streamed answers. */
export function streamedAnswersOptions({ streamedAnswersMax, streamedAnswersPerUserMax }: DocumentConfig) {
  return { eachMax: streamedAnswersPerUserMax, allMax: streamedAnswersMax };
}

/** Limits of document writes. */
export function documentWriteOptions(config: DocumentConfig & HttpConfig & Pick<SessionConfig, "editBytesMax">) {
  return {
    internalSecret: config.internalSecret,
    operatorSecret: config.operatorSecret,
    eachUser: { burst: config.documentWriteBurst, perSecond: config.documentWritesPerSecond },
    writersMax: config.connectionsMax,
    editBytesMax: config.editBytesMax,
  };
}
