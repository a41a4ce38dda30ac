/** A complete Coroom whose tiers call each other over TLS, with a certificate of a private authority. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { afterAll, beforeAll, expect, test } from "vitest";

import { writeCertificate } from "../contract/certificate.ts";
import { SystemCluster } from "./cluster.ts";
import { eventually } from "./eventually.ts";

let folder: string;
let cluster: SystemCluster;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "coroom-tls-tiers-"));
  const { certFile, keyFile } = writeCertificate(folder);
  const settings = { INTERNAL_CERT_FILE: certFile, INTERNAL_KEY_FILE: keyFile, INTERNAL_CA_FILE: certFile };
  cluster = await SystemCluster.start({ gateways: 1, roomServers: 1, settings });
});
afterAll(async () => {
  await cluster?.stop();
  rmSync(folder, { recursive: true, force: true });
});

test("[ITLS4] documents are written and read over HTTP while the tiers use TLS", async () => {
  const token = await cluster.token("notes", "backend");
  const ask = (method: string, path: string, body?: string) =>
    fetch(`${cluster.gateways[0]!.httpUrl}/v1/rooms/notes/${path}`, {
      method,
      headers: { "authorization": `Bearer ${token}`, "content-type": "text/plain" },
      ...(body === undefined ? {} : { body }),
    });
  await eventually("the document service is found", async () => (await ask("GET", "snapshot")).status === 404);
  expect((await ask("PUT", "document", "over TLS")).status).toBe(201);
  expect(await (await ask("GET", "text?minSeq=1")).text()).toBe("over TLS");
  expect(cluster.gateways[0]!.process.printed()).not.toContain("TLS to a service failed");
});
