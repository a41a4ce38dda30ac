/** A gateway whose own listener uses TLS, with a self-signed certificate. */

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { get } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { afterAll, beforeAll, expect, test } from "vitest";

import { SettingError } from "../shared/settings/settings.ts";
import { CERTIFICATE, writeCertificate } from "../test/contract/certificate.ts";
import { gatewayRig, ROOM, tokenOf } from "./testing/gateway-rig.ts";
import { WireClient } from "./testing/wire-client.ts";

const rig = gatewayRig("tls");
let folder: string;
let tls: { tlsCertFile: string; tlsKeyFile: string };
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "coroom-gateway-tls-"));
  const { certFile, keyFile } = writeCertificate(folder);
  tls = { tlsCertFile: certFile, tlsKeyFile: keyFile };
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test("[GW28] a gateway with a certificate serves HTTP and WebSocket over TLS on one port, and refuses plain HTTP", async () => {
  rig.startOwner();
  const address = await rig.start(tls);
  const status = await new Promise<number | undefined>(
    (resolve, reject) =>
      void get(`https://${address}/readyz`, { ca: CERTIFICATE }, (answer) => resolve(answer.resume().statusCode)).on("error", reject),
  );
  expect(status).toBe(200);
  const client = await WireClient.open(`wss://${address}/v1/connect`, {}, CERTIFICATE);
  client.send({ type: "hello", version: 1, token: await tokenOf("ann"), agent: "test" });
  await client.next("welcome");
  const { channel } = await client.join(ROOM, "key-of-ann");
  client.edit(channel, 1, "over TLS".repeat(10_000));
  expect((await client.next("ack")).counter).toBe(1);
  client.close();
  await expect(fetch(`http://${address}/readyz`)).rejects.toThrow();
});

test("[GW29] a gateway with an unusable certificate does not start, and the error names the setting", async () => {
  const damaged = join(folder, "damaged.pem");
  writeFileSync(damaged, "SECRET");
  for (const [settings, message] of [
    [{ tlsCertFile: tls.tlsCertFile }, /COROOM_TLS_CERT_FILE and COROOM_TLS_KEY_FILE go together/],
    [{ ...tls, tlsKeyFile: join(folder, "nothing") }, /COROOM_TLS_KEY_FILE=.*cannot be read \(ENOENT\)/],
    [{ ...tls, tlsKeyFile: damaged }, /do not match, or are not PEM files/],
  ] as const) {
    const started = rig.start(settings);
    await expect(started).rejects.toThrow(SettingError);
    await expect(started).rejects.toThrow(message);
  }
});
