/** A nats-server with a self-signed certificate. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { afterAll, beforeAll, expect, test } from "vitest";

import { ADDRESS_CERTIFICATE, writeCertificate } from "../../test/contract/certificate.ts";
import { type RealNats, startRealNats } from "../../test/contract/real-nats.ts";
import { SettingError } from "../settings/settings.ts";
import { closeNats, connectAs, connectNats } from "./nats.ts";

let folder: string;
let own: ReturnType<typeof writeCertificate>;
let guarded: RealNats;
let strict: RealNats;
let plain: RealNats;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "coroom-nats-tls-"));
  own = writeCertificate(folder);
  [guarded, strict, plain] = await Promise.all([
    startRealNats({ tls: own }),
    startRealNats({ tls: { ...own, clientsCaFile: own.certFile } }),
    startRealNats(),
  ]);
});
afterAll(async () => {
  await Promise.all([guarded.stop(), strict.stop(), plain.stop()]);
  rmSync(folder, { recursive: true, force: true });
});

test("[NAT14] a client trusts NATS only with a certificate signed by COROOM_NATS_CA", async () => {
  const nats = await connectNats({ servers: guarded.url, name: "test", natsCa: own.certFile });
  await nats.flush();
  await closeNats(nats);
  const error = await connectNats({ servers: guarded.url, name: "test" }).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(SettingError);
  expect(String(error)).toMatch(/is not trusted \(DEPTH_ZERO_SELF_SIGNED_CERT\).*COROOM_NATS_CA/);
});

test("[NAT30] a certificate for the IP address of a server is trusted at this address, and not at a name", async () => {
  const ofAddress = writeCertificate(mkdtempSync(join(folder, "address-")), ADDRESS_CERTIFICATE);
  const { certFile: natsCa } = ofAddress;
  const server = await startRealNats({ tls: ofAddress });
  try {
    const nats = await connectNats({ servers: server.url, name: "test", natsCa });
    await nats.flush();
    await closeNats(nats);
    const named = connectNats({ servers: server.url.replace("127.0.0.1", "localhost"), name: "test", natsCa });
    await expect(named).rejects.toThrow(/is not trusted \(ERR_TLS_CERT_ALTNAME_INVALID\).*host name or IP address/);
  } finally {
    await server.stop();
  }
});

test("[NAT15] a client that requires TLS sends nothing without it", async () => {
  const asked = connectNats({ servers: plain.url.replace("nats://", "tls://"), name: "test" });
  await expect(asked).rejects.toThrow(/no NATS server answers at tls:.* over TLS/);
});

test("[NAT17] a server that requires a certificate receives COROOM_NATS_CERT; without one the error names the setting", async () => {
  const { certFile: natsCert, keyFile: natsKey } = own;
  const nats = await connectAs("operator", "test", {
    environment: "test",
    natsUrl: strict.url,
    natsCredentials: "",
    natsCa: own.certFile,
    natsCert,
    natsKey,
  });
  await nats.flush();
  await closeNats(nats);
  const bare = connectNats({ servers: strict.url, name: "test", natsCa: own.certFile, timeoutMs: 1_000 });
  await expect(bare).rejects.toThrow(/requires client certificates, set COROOM_NATS_CERT and COROOM_NATS_KEY/);
});
