import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { afterEach, beforeEach, expect, test } from "vitest";

import { envName, readSettings, SettingError } from "../shared/settings/settings.ts";
import { refuseUnfit } from "./start-checks.ts";
import { startSettings } from "./settings.ts";
import { start } from "./start.ts";

const SECRET = "a secret of the tests, 32 characters";
const read = (settings: Readonly<Record<string, string>>) =>
  readSettings(startSettings, {
    flags: {},
    env: Object.fromEntries(
      Object.entries({ jwtSecret: SECRET, roomSecret: SECRET, internalSecret: SECRET, ...settings }).map(([name, value]) => [
        envName(name),
        value,
      ]),
    ),
  });

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "coroom-fitting-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

test("[FIT4] when a gateway may not start, no part of its process starts, engines included", async () => {
  const dataDir = join(folder, "data");
  await expect(start(read({ production: "true", dataDir }))).rejects.toThrow(/COROOM_ALLOWED_ORIGINS/);
  expect(existsSync(dataDir)).toBe(false);
});

test.each<[string, Record<string, string>, RegExp]>([
  ["the log's address", { roles: "placement", natsUrl: "http://nats" }, /COROOM_NATS_URL is no address/],
  ["a room server's thresholds", { roles: "room-server", flatAgainParticipants: "50" }, /COROOM_FLAT_AGAIN_PARTICIPANTS must be below/],
  ["a document service's address", { roles: "document-service", documentsHost: "0.0.0.0" }, /COROOM_DOCUMENTS_URL is not set/],
  ["its folder", { roles: "document-service", snapshotsStore: "folder" }, /COROOM_SNAPSHOTS_FOLDER/],
  ["its database", { roles: "document-service", snapshotsStore: "postgres" }, /COROOM_POSTGRES_URL/],
  ["its bucket", { roles: "document-service", snapshotsStore: "s3", s3Url: "http://s3" }, /COROOM_S3_BUCKET/],
  [
    "its webhooks' secrets",
    { roles: "document-service", webhookUrls: "https://hooks.example,acme=https://a.example" },
    /add whsec_…,acme=whsec_… to COROOM_WEBHOOK_SECRETS/,
  ],
  ["its certificate's key", { roles: "document-service", internalCertFile: "/nope" }, /COROOM_INTERNAL_CERT_FILE and .* go together/],
  ["the certificates it trusts", { roles: "gateway", internalCaFile: "/nope" }, /COROOM_INTERNAL_CA_FILE=.nope cannot be read/],
  ["a leaderboard's address", { roles: "leaderboard", boardsHost: "::" }, /COROOM_BOARDS_URL is not set/],
  ["a gateway's keys", { roles: "gateway", jwtSecret: "", jwksFile: "/nope" }, /COROOM_JWKS_FILE=.nope cannot be read/],
  ["its certificate", { roles: "gateway", tlsCertFile: "/nope" }, /COROOM_TLS_CERT_FILE and COROOM_TLS_KEY_FILE go together/],
  ["a bridge without a gateway", { roles: "y-websocket" }, /COROOM_Y_GATEWAY_URL must name a gateway/],
  ["a probe without a gateway", { roles: "probe" }, /COROOM_PROBE_GATEWAY_URLS is not set/],
  [
    "a probe's gateways",
    { roles: "probe", probeGatewayUrls: "ws://a,ftp://b" },
    /COROOM_PROBE_GATEWAY_URLS must name gateways, .* not "ftp:\/\/b"/,
  ],
  [
    "a probe's tokens",
    { roles: "probe", probeGatewayUrls: "ws://a", jwtSecret: "" },
    /set COROOM_JWT_SECRET .* or COROOM_PROBE_TOKEN_FILE/,
  ],
  [
    "a probe's file with a token",
    { roles: "probe", probeGatewayUrls: "ws://a", probeTokenFile: "/nope" },
    /COROOM_PROBE_TOKEN_FILE=.nope cannot be read \(ENOENT\)/,
  ],
  ["a probe of a gateway over TLS", { roles: "gateway,probe", tlsCertFile: "/nope" }, /COROOM_PROBE_GATEWAY_URLS is not set. Over TLS/],
  ["a bridge to a gateway over TLS", { roles: "gateway,y-websocket", tlsCertFile: "/nope" }, /COROOM_Y_GATEWAY_URL is not set. Over TLS/],
])("[FIT5] %s is checked before anything starts", async (_, settings, message) => {
  const config = read(settings);
  await expect(refuseUnfit(config)).rejects.toThrow(SettingError);
  await expect(refuseUnfit(config)).rejects.toThrow(message);
});

test("[FIT6] problems of several roles are reported together", async () => {
  const several = refuseUnfit(
    read({
      roles: "document-service,leaderboard,gateway,y-websocket",
      production: "true",
      documentsHost: "0.0.0.0",
      boardsHost: "0.0.0.0",
    }),
  );
  await expect(several).rejects.toThrow(/COROOM_DOCUMENTS_URL[^]*COROOM_BOARDS_URL[^]*COROOM_ALLOWED_ORIGINS/);
});

test("[FIT9] a setting that several roles share is reported once", async () => {
  const shared = refuseUnfit(
    read({ roles: "document-service,leaderboard", internalCertFile: "package.json", internalKeyFile: "package.json" }),
  );
  await expect(shared).rejects.toThrow(/^COROOM_INTERNAL_CERT_FILE=.* do not match[^\n]*$/);
});

test("[FIT7] the default settings fit all roles, y-websocket and probe included", async () => {
  await expect(
    refuseUnfit(read({ roles: "engines,placement,room-server,document-service,leaderboard,gateway,y-websocket,probe" })),
  ).resolves.toBeUndefined();
});
