/** The store of objects that the settings name, and what is missing of the settings for it. */

import type { JetStreamClient } from "@nats-io/jetstream";

import type { Subjects } from "../../shared/bus/subjects.ts";
import { SettingError } from "../../shared/config.ts";
import type { DocumentServiceConfig } from "../config.ts";
import type { ObjectStore } from "../ports.ts";
import { folderObjects } from "./folder-objects.ts";
import { jetstreamObjects } from "./jetstream-objects.ts";
import { s3Objects } from "./s3-objects.ts";

type StoreConfig = Pick<DocumentServiceConfig, "snapshotsStore" | "snapshotsFolder" | "s3Url" | "s3Region" | "s3Bucket" | "s3AccessKeyId" | "s3SecretAccessKey"> & { readonly environment: string; readonly logReplicas: number };

export async function openStores(streams: JetStreamClient, subjects: Subjects, config: StoreConfig): Promise<{ snapshots: ObjectStore; history: ObjectStore }> {
  refuseIncomplete(config);
  const open = (bucket: string): Promise<ObjectStore> => {
    switch (config.snapshotsStore) {
      case "jetstream":
        return jetstreamObjects(streams, bucket, config.logReplicas);
      case "folder":
        return folderObjects(`${config.snapshotsFolder}/${bucket}`);
      case "s3":
        return s3Objects(config, `${bucket}/`);
    }
  };
  return { snapshots: await open(subjects.snapshotsBucket), history: await open(subjects.historyObjectsBucket) };
}

function refuseIncomplete(config: StoreConfig): void {
  if (config.snapshotsStore === "folder" && config.snapshotsFolder === "") throw new SettingError("snapshots are to be kept in a folder: set COROOM_SNAPSHOTS_FOLDER to one that all document services see");
  const { s3Url, s3Bucket, s3AccessKeyId, s3SecretAccessKey } = config;
  if (config.snapshotsStore === "s3" && [s3Url, s3Bucket, s3AccessKeyId, s3SecretAccessKey].includes("")) {
    throw new SettingError("snapshots are to be kept in S3: set COROOM_S3_URL, COROOM_S3_BUCKET, COROOM_S3_ACCESS_KEY_ID and COROOM_S3_SECRET_ACCESS_KEY");
  }
}
