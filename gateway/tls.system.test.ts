/** A gateway whose own listener speaks TLS, with a certificate that nobody signed but itself. */

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

test("[GW28] with a certificate HTTP and WebSocket are over TLS, on one port, and nothing is served without", async () => {
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

test("[GW29] a gateway does not start with a certificate that cannot be used, and says why", async () => {
  const damaged = join(folder, "damaged.pem");
  writeFileSync(damaged, "SECRET");
  for (const [settings, message] of [
    [{ tlsCertFile: tls.tlsCertFile }, /COROOM_TLS_CERT_FILE and COROOM_TLS_KEY_FILE go together/],
    [{ ...tls, tlsKeyFile: join(folder, "nothing") }, /COROOM_TLS_KEY_FILE=.*cannot be read \(ENOENT\)/],
    [{ ...tls, tlsKeyFile: damaged }, /do not fit together, or are no PEM/],
  ] as const) {
    const started = rig.start(settings);
    await expect(started).rejects.toThrow(SettingError);
    await expect(started).rejects.toThrow(message);
  }
});
