/** A nats-server whose certificate nobody signed but itself. */

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { afterAll, beforeAll, expect, test } from "vitest";

import { type RealNats, startRealNats } from "../../test/contract/real-nats.ts";
import { SettingError } from "../config.ts";
import { closeNats, connectNats } from "./nats.ts";

/** Of localhost and 127.0.0.1, from 2020 to 2120. They guard nothing. */
const CERTIFICATE = `-----BEGIN CERTIFICATE-----
MIIBZzCCAQ2gAwIBAgIBATAKBggqhkjOPQQDAjAUMRIwEAYDVQQDDAlsb2NhbGhv
c3QwIBcNMjAwMTAxMDAwMDAwWhgPMjEyMDAxMDEwMDAwMDBaMBQxEjAQBgNVBAMM
CWxvY2FsaG9zdDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABE5FbW+Jcy2vTgLJ
l8uGybjS9W/ILkXUc0dv4v7F3k9y6BLN+S80wOYGnenRDbd7C74Rj/2QAlfKuwVf
WRck/6ujTjBMMBoGA1UdEQQTMBGCCWxvY2FsaG9zdIcEfwAAATAPBgNVHRMBAf8E
BTADAQH/MB0GA1UdDgQWBBQMBGzh6BU3t35EncWF8DcgkXCOwjAKBggqhkjOPQQD
AgNIADBFAiEA2du91vPzT0I4jg3MFG9yUZgna677SyocpauRyNkggmwCICfRE9Ac
W29F+POSqESI6yLoL3mKkjxFb7MO8hVJCZjn
-----END CERTIFICATE-----
`;
const KEY = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg0okhIjric+BtOG0x
EJMmwJ2gd9L6vmyG7h+8IK6X3sChRANCAARORW1viXMtr04CyZfLhsm40vVvyC5F
1HNHb+L+xd5PcugSzfkvNMDmBp3p0Q23ewu+EY/9kAJXyrsFX1kXJP+r
-----END PRIVATE KEY-----
`;

let folder: string;
let guarded: RealNats;
let plain: RealNats;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "coroom-nats-tls-"));
  const tls = { certFile: join(folder, "cert.pem"), keyFile: join(folder, "key.pem") };
  writeFileSync(tls.certFile, CERTIFICATE);
  writeFileSync(tls.keyFile, KEY);
  [guarded, plain] = await Promise.all([startRealNats({ tls }), startRealNats()]);
});
afterAll(async () => {
  await Promise.all([guarded.stop(), plain.stop()]);
  rmSync(folder, { recursive: true, force: true });
});

test("[NAT14] NATS is believed whose certificate is signed as COROOM_NATS_CA says, and no other", async () => {
  const nats = await connectNats({ servers: guarded.url, name: "test", natsCa: join(folder, "cert.pem") });
  await nats.flush();
  await closeNats(nats);
  const error = await connectNats({ servers: guarded.url, name: "test" }).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(SettingError);
  expect(String(error)).toMatch(/certificate that is not trusted \(DEPTH_ZERO_SELF_SIGNED_CERT\).*COROOM_NATS_CA/);
});

test("[NAT15] where TLS is asked for, nothing is said without", async () => {
  const asked = connectNats({ servers: plain.url.replace("nats://", "tls://"), name: "test" });
  await expect(asked).rejects.toThrow(/no NATS server answers at tls:.* over TLS/);
});
