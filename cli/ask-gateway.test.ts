import { once } from "node:events";
import { mkdtempSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { expect, test } from "vitest";

import { SettingError } from "../shared/config.ts";
import { writeCertificate } from "../test/contract/certificate.ts";
import { gatewayAddress } from "./admin-settings.ts";
import { askGateway } from "./ask-gateway.ts";

test.each(["gateway-3:8080", "127.0.0.1:8080", "ftp://gateway-3", ""])("[ASG1] %o is no gateway's address, and one is shown", (raw) => {
  expect(() => gatewayAddress(raw)).toThrow(SettingError);
  expect(() => gatewayAddress(raw)).toThrow(/such as http:\/\/gateway-3:8080/);
  expect(gatewayAddress("https://gateway-3")).toBe("https://gateway-3");
});

test.each([
  [200, "<!doctype html>"],
  [502, ""],
  [200, "null"],
])("[ASG2] an answer of %i that is no JSON object (%o) is told as what it is", async (status, body) => {
  const server = createServer((_, response) => response.writeHead(status).end(body)).listen(0, "127.0.0.1");
  await once(server, "listening");
  const asked = askGateway(new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/admin/bans`), "operator", {});
  await expect(asked).rejects.toThrow(SettingError);
  await expect(asked).rejects.toThrow(new RegExp(`is no gateway \\(HTTP ${status}`));
  server.close();
});

test("[ASG3] a certificate that is not trusted is not told as nobody being there", async () => {
  const { certFile, keyFile } = writeCertificate(mkdtempSync(join(tmpdir(), "coroom-")));
  const server = createTlsServer({ cert: readFileSync(certFile), key: readFileSync(keyFile) }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = new URL(`https://127.0.0.1:${(server.address() as AddressInfo).port}/v1/admin/bans`);
  await expect(askGateway(url, "operator", {})).rejects.toThrow(
    /could not be asked \(self-signed certificate, DEPTH_ZERO_SELF_SIGNED_CERT\).*NODE_EXTRA_CA_CERTS/,
  );
  await expect(askGateway(new URL("/", "https://127.0.0.1:2"), "operator", {})).rejects.toThrow(
    /no gateway answers at https:\/\/127\.0\.0\.1:2 \(.*ECONNREFUSED.*\): start one/,
  );
  server.close();
});

test("[ASG4] a secret or pass that is not the gateway's is told as one; a token that it refuses, as the gateway says it", async () => {
  const refusal = JSON.stringify({ message: "the token was refused: it is no signed JWT" });
  const server = createServer((_, response) => response.writeHead(401).end(refusal)).listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/admin/bans`);
  await expect(askGateway(url, "another secret", {})).rejects.toThrow(/is not this gateway's: give the COROOM_INTERNAL_SECRET/);
  await expect(askGateway(url, "operator.1700000000.c2VhbA", {})).rejects.toThrow(/or its time is over: make one with "coroom ops pass"/);
  for (const token of ["eyJhbGciOiJIUzI1NiJ9.e30.x", "eyAiYWxnIjoiSFMyNTYifQ.e30.x"])
    await expect(askGateway(url, token, {})).rejects.toThrow(/it is no signed JWT$/);
  server.close();
});
