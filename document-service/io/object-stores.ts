/** Opens the object store that the settings name. */

import type { JetStreamClient } from "@nats-io/jetstream";

import type { Subjects } from "../../shared/bus/subjects.ts";
import { refuseIncompleteStore, type StoreSettings } from "../config.ts";
import type { ObjectStore } from "../ports.ts";
import { folderObjects } from "./folder-objects.ts";
import { jetstreamObjects } from "./jetstream-objects.ts";
import { s3Objects } from "./s3-objects.ts";

type StoreConfig = StoreSettings & { readonly environment: string; readonly logReplicas: number };

export async function openStores(
  streams: JetStreamClient,
  subjects: Subjects,
  config: StoreConfig,
): Promise<{ snapshots: ObjectStore; history: ObjectStore }> {
  refuseIncompleteStore(config);
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
