/** Errors of a wrong start: each is one message that names the remedy. */

import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

import { afterAll, beforeAll, expect, test } from "vitest";

import { type RealNats, startRealNats } from "../test/contract/real-nats.ts";
import { NODE_FLAGS } from "./node-flags.ts";

const SECRET = "a secret of the tests, 32 characters";
const ENDS_MS_MAX = 60_000;
/** No server listens there. */
const NOBODY = "nats://127.0.0.1:9";

let nats: RealNats;
let folder: string;
const taken = createServer();
beforeAll(async () => {
  nats = await startRealNats();
  folder = mkdtempSync(join(tmpdir(), "coroom-refused-"));
  await new Promise<void>((listening) => taken.listen(0, "127.0.0.1", listening));
});
afterAll(async () => {
  taken.close();
  await nats.stop();
  rmSync(folder, { recursive: true });
});

/** Returns the standard error of a process that ended with code 1. */
function refused(settings: Readonly<Record<string, string>>): Promise<string> {
  const given = {
    NATS_URL: nats.url,
    DATA_DIR: folder,
    LOG_LEVEL: "silent",
    PORT: "0",
    JWT_SECRET: SECRET,
    ROOM_SECRET: SECRET,
    INTERNAL_SECRET: SECRET,
    ...settings,
  };
  const env = {
    ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("COROOM_"))),
    ...Object.fromEntries(Object.entries(given).map(([name, value]) => [`COROOM_${name}`, value])),
  };
  return new Promise((done, fail) => {
    execFile(
      process.execPath,
      [...NODE_FLAGS, resolve("dist/cli/main.js"), "start"],
      { env, cwd: folder, timeout: ENDS_MS_MAX, killSignal: "SIGKILL" },
      (error, _, stderr) => {
        if (error?.code === 1) done(stderr);
        else fail(error ?? new Error("it was not refused"));
      },
    );
  });
}

test.each<[string, () => Record<string, string>, RegExp]>([
  [
    "a port that is taken",
    () => ({ ROLES: "gateway", PORT: String((taken.address() as AddressInfo).port) }),
    /^coroom: cannot listen on 127\.0\.0\.1:\d+: .*Set COROOM_PORT/,
  ],
  [
    "a document service's port that is taken",
    () => ({ ROLES: "document-service", DOCUMENTS_PORT: String((taken.address() as AddressInfo).port) }),
    /^coroom: the document service cannot listen on .*COROOM_DOCUMENTS_PORT/,
  ],
  [
    "a NATS that does not answer",
    () => ({ ROLES: "placement", NATS_URL: NOBODY }),
    /^coroom: no NATS server answers at .*[sS]et COROOM_NATS_URL/,
  ],
  ["two copies of the log", () => ({ ROLES: "placement", LOG_REPLICAS: "2" }), /COROOM_LOG_REPLICAS=2 must be one of 1, 3, 5/],
  [
    "three copies where there is one server, for placement",
    () => ({ ROLES: "placement", LOG_REPLICAS: "3" }),
    /^coroom: COROOM_LOG_REPLICAS is larger than the number of nats-servers/,
  ],
  [
    "three copies where there is one server, for a document service",
    () => ({ ROLES: "document-service", LOG_REPLICAS: "3" }),
    /^coroom: COROOM_LOG_REPLICAS is larger than the number of nats-servers/,
  ],
  [
    "a store of snapshots that does not answer",
    () => ({
      ROLES: "document-service",
      SNAPSHOTS_STORE: "s3",
      S3_URL: "http://127.0.0.1:9",
      S3_BUCKET: "documents",
      S3_ACCESS_KEY_ID: "key",
      S3_SECRET_ACCESS_KEY: "secret",
    }),
    /^coroom: the S3 store at http:\/\/127\.0\.0\.1:9 does not answer.*[sS]et COROOM_S3_URL/,
  ],
  [
    "a database for snapshots that does not answer",
    () => ({ ROLES: "document-service", SNAPSHOTS_STORE: "postgres", POSTGRES_URL: "postgres://ann:secret@127.0.0.1:9/documents" }),
    /^coroom: the PostgreSQL server at 127\.0\.0\.1:9\/documents does not answer.*set COROOM_POSTGRES_URL/,
  ],
  [
    "a data folder in a file system that creates no folders",
    () => ({ ROLES: "engines", DATA_DIR: "/proc/coroom" }),
    /^coroom: the data folder \/proc\/coroom cannot be used \(\w+\)\. Make it writable .* COROOM_DATA_DIR/,
  ],
  [
    "a folder of snapshots in a file system that creates no folders",
    () => ({ ROLES: "document-service", SNAPSHOTS_STORE: "folder", SNAPSHOTS_FOLDER: "/proc/coroom" }),
    /^coroom: the folder \/proc\/coroom\S* cannot be written\. .*COROOM_SNAPSHOTS_FOLDER/,
  ],
  [
    "a misspelt variable",
    () => ({ ROLES: "gateway", PRODUCTON: "true" }),
    /^coroom: unknown setting COROOM_PRODUCTON\. Did you mean COROOM_PRODUCTION\?/,
  ],
  [
    "a file of keys that is not there",
    () => ({ ROLES: "gateway", JWT_SECRET: "", JWKS_FILE: "/nope" }),
    /^coroom: COROOM_JWKS_FILE=\/nope cannot be read/,
  ],
  ["no address of keys", () => ({ ROLES: "gateway", JWT_SECRET: "", JWKS_URL: "nope" }), /COROOM_JWKS_URL must be an address/],
])("[START2] %s is reported in one sentence, without a stack", async (_, settings, message) => {
  const printed = await refused(settings());
  expect(printed).toMatch(message);
  expect(printed).not.toMatch(/\n +at /);
});
