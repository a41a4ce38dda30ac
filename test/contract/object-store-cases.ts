/** The supported object stores, each started for a test: JetStream, a folder, S3 (OpenStack Swift), PostgreSQL. */

import { mkdtempSync, rmSync, truncateSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { AwsClient } from "aws4fetch";
import pg from "pg";

import { connectNats, type NatsConnection } from "../../shared/io/nats.ts";
import { folderObjects } from "../../document-service/io/folder-objects.ts";
import { jetstreamObjects } from "../../document-service/io/object-stores.ts";
import { connectPostgres } from "../../document-service/io/postgres-connection.ts";
import { postgresObjects } from "../../document-service/io/postgres-objects.ts";
import { s3Objects, type S3Options } from "../../document-service/io/s3-objects.ts";
import type { ObjectStore } from "../../document-service/ports.ts";
import { type PostgresServer, type PostgresServerOptions, startPostgresServer } from "../../engines/postgres-server.ts";
import { type S3Server, startS3Server } from "../../engines/s3-server.ts";
import { type RealNats, startRealNats } from "./real-nats.ts";

export const START_MS_MAX = 180_000;
/**
 * `open`: returns another adapter on the same objects, as another service has it. `damage`: changes the stored object,
 * as a broken disk does.
 */
export type ObjectStoreCase = { open(): Promise<ObjectStore>; damage(name: string): Promise<void>; stop(): Promise<void> };

async function jetstreamCase(): Promise<ObjectStoreCase> {
  const server: RealNats = await startRealNats();
  const nats: NatsConnection = await connectNats({ servers: server.url, name: "test" });
  return {
    open: () => jetstreamObjects(jetstream(nats), "contract", 1),
    damage: async (name) => {
      const manager = await jetstreamManager(nats);
      const { nuid } = JSON.parse(
        (await manager.streams.getMessage("OBJ_contract", {
          last_by_subj: `$O.contract.M.${Buffer.from(name).toString("base64").replaceAll("+", "-").replaceAll("/", "_")}`,
        }))!.string(),
      ) as { nuid: string };
      const chunk = await manager.streams.getMessage("OBJ_contract", { last_by_subj: `$O.contract.C.${nuid}` });
      await manager.streams.deleteMessage("OBJ_contract", chunk!.seq);
    },
    stop: async () => {
      await nats.close();
      await server.stop();
    },
  };
}

function folderCase(): Promise<ObjectStoreCase> {
  const root = mkdtempSync(join(tmpdir(), "coroom-objects-"));
  return Promise.resolve({
    open: () => folderObjects(join(root, "objects")),
    damage: (name) => Promise.resolve(truncateSync(join(root, "objects", name), 3)),
    stop: () => Promise.resolve(rmSync(root, { recursive: true, force: true })),
  });
}

export async function s3Case(): Promise<ObjectStoreCase & { readonly options: S3Options }> {
  const dataDir = mkdtempSync(join(tmpdir(), "coroom-s3-"));
  const server: S3Server = await startS3Server({ dataDir });
  const options = {
    s3Url: server.url,
    s3Region: "us-east-1",
    s3Bucket: "contract",
    s3AccessKeyId: server.accessKeyId,
    s3SecretAccessKey: server.secretAccessKey,
  };
  return {
    options,
    open: () => s3Objects(options, "snapshots/"),
    damage: async (name) => {
      const client = new AwsClient({
        accessKeyId: server.accessKeyId,
        secretAccessKey: server.secretAccessKey,
        service: "s3",
        region: "us-east-1",
      });
      await client.fetch(`${server.url}/contract/snapshots/${name}`, { method: "PUT", body: "dam" });
    },
    stop: async () => {
      await server.stop();
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

export type PostgresCase = ObjectStoreCase & {
  readonly server: PostgresServer;
  queryIn(database: string, statement: string): Promise<void>;
};

export async function postgresCase(options: Pick<PostgresServerOptions, "settings" | "tls"> = {}): Promise<PostgresCase> {
  const dataDir = mkdtempSync(join(tmpdir(), "coroom-postgres-"));
  const server = await startPostgresServer({ dataDir, ...options });
  const queryIn = async (database: string, statement: string): Promise<void> => {
    const client = new pg.Client(Object.assign(new URL(server.url), { pathname: `/${database}` }).href); // The address wins over a field.
    await client.connect();
    try {
      await client.query(statement);
    } finally {
      await client.end();
    }
  };
  return {
    server,
    queryIn,
    open: async () => postgresObjects(await connectPostgres(server.url), "contract"),
    damage: (name) => queryIn("postgres", `UPDATE coroom_objects SET bytes = 'dam' WHERE bucket = 'contract' AND name = '${name}'`),
    stop: async () => {
      await server.stop();
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

export const OBJECT_STORES: readonly [name: string, start: () => Promise<ObjectStoreCase>][] = [
  ["JetStream", jetstreamCase],
  ["a folder", folderCase],
  ["S3", s3Case],
  ["PostgreSQL", postgresCase],
];
