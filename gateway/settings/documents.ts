/** Documents over HTTP: who may read and write how much of them. */

import { positiveInteger, type Settings, type Values, wholeNumber } from "../../shared/config.ts";
import type { HttpConfig } from "./http.ts";
import type { SessionConfig } from "./sessions.ts";

export const documentSettings = {
  snapshotBurst: { parse: positiveInteger, fallback: 20, meaning: "snapshots that one user may fetch from a gateway at once" },
  snapshotsPerSecond: { parse: positiveInteger, fallback: 2, meaning: "snapshots that one user may fetch from a gateway in the long run" },
  gatewaySnapshotBurst: {
    parse: positiveInteger,
    fallback: 4_000,
    meaning: "snapshots that all users together may fetch from a gateway at once",
  },
  gatewaySnapshotsPerSecond: {
    parse: positiveInteger,
    fallback: 1_000,
    meaning: "snapshots that all users together may fetch from a gateway in the long run",
  },
  snapshotSharedMs: {
    parse: wholeNumber,
    fallback: 1_000,
    meaning:
      "a snapshot is fetched once for all who ask for it within so long, and on while somebody does and nothing has come in its room; what came since follows as edits. 0: only while it is being fetched",
  },
  snapshotSharedBytesMax: {
    parse: positiveInteger,
    fallback: 134_217_728,
    meaning: "bytes of snapshots held for that, or still on their way to whoever asked, at most; larger ones are fetched for each who asks",
  },
  streamedAnswersMax: {
    parse: positiveInteger,
    fallback: 64,
    meaning:
      "answers about documents that are not held in memory and are on their way to whoever asked, each over a connection to the document service",
  },
  streamedAnswersPerUserMax: { parse: positiveInteger, fallback: 8, meaning: "those of one user" },
  documentWriteBurst: {
    parse: positiveInteger,
    fallback: 100,
    meaning: "edits and documents that one user may send to a gateway over HTTP at once",
  },
  documentWritesPerSecond: { parse: positiveInteger, fallback: 20, meaning: "those that one user may send in the long run" },
  writesMax: {
    parse: positiveInteger,
    fallback: 1_000,
    meaning: "edits over HTTP that wait for the log at one gateway; more are refused with a hint to come back",
  },
  writeMsMax: {
    parse: positiveInteger,
    fallback: 10_000,
    meaning: "an edit over HTTP that is not in the log by then is answered with 504: the same request again finds out",
  },
} as const satisfies Settings;

type DocumentConfig = Values<typeof documentSettings>;

/** What reading documents keeps to. */
export function documentReadOptions(config: DocumentConfig & HttpConfig) {
  return {
    internalSecret: config.internalSecret,
    shared: { sharedMs: config.snapshotSharedMs, bytesMax: config.snapshotSharedBytesMax },
    eachUser: { burst: config.snapshotBurst, perSecond: config.snapshotsPerSecond },
    everybody: { burst: config.gatewaySnapshotBurst, perSecond: config.gatewaySnapshotsPerSecond },
    readersMax: config.connectionsMax,
  };
}

/** What answers that are passed on as they come keep to. */
export function streamedAnswersOptions({ streamedAnswersMax, streamedAnswersPerUserMax }: DocumentConfig) {
  return { eachMax: streamedAnswersPerUserMax, allMax: streamedAnswersMax };
}

/** What writing documents keeps to. */
export function documentWriteOptions(config: DocumentConfig & HttpConfig & Pick<SessionConfig, "editBytesMax">) {
  return {
    internalSecret: config.internalSecret,
    eachUser: { burst: config.documentWriteBurst, perSecond: config.documentWritesPerSecond },
    writersMax: config.connectionsMax,
    editBytesMax: config.editBytesMax,
  };
}
