import { once } from "node:events";
import { mkdtempSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { expect, test } from "vitest";

import { SettingError } from "../shared/settings/settings.ts";
import { writeCertificate } from "../test/contract/certificate.ts";
import { gatewayAddress } from "./command-settings.ts";
import { askGateway } from "./ask-gateway.ts";

const secret = (text: string) => ({ isToken: false, text });
const token = (text: string) => ({ isToken: true, text });

test.each(["gateway-3:8080", "127.0.0.1:8080", "ftp://gateway-3", ""])(
  "[ASG1] %o is refused as a gateway address, and the error shows an example",
  (raw) => {
    expect(() => gatewayAddress(raw)).toThrow(SettingError);
    expect(() => gatewayAddress(raw)).toThrow(/such as http:\/\/gateway-3:8080/);
    expect(gatewayAddress("https://gateway-3")).toBe("https://gateway-3");
  },
);

test.each([
  [200, "<!doctype html>"],
  [502, ""],
  [200, "null"],
])("[ASG2] an answer with status %i and without a JSON object (%o) is reported as such", async (status, body) => {
  const server = createServer((_, response) => response.writeHead(status).end(body)).listen(0, "127.0.0.1");
  await once(server, "listening");
  const asked = askGateway(new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/admin/bans`), secret("operator"), {});
  await expect(asked).rejects.toThrow(SettingError);
  await expect(asked).rejects.toThrow(new RegExp(`is not a gateway \\(HTTP ${status}`));
  server.close();
});

test("[ASG3] an untrusted certificate is not reported as a missing gateway", async () => {
  const { certFile, keyFile } = writeCertificate(mkdtempSync(join(tmpdir(), "coroom-")));
  const server = createTlsServer({ cert: readFileSync(certFile), key: readFileSync(keyFile) }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = new URL(`https://127.0.0.1:${(server.address() as AddressInfo).port}/v1/admin/bans`);
  await expect(askGateway(url, secret("operator"), {})).rejects.toThrow(
    /failed \(self-signed certificate, DEPTH_ZERO_SELF_SIGNED_CERT\).*NODE_EXTRA_CA_CERTS/,
  );
  await expect(askGateway(new URL("/", "https://127.0.0.1:2"), secret("operator"), {})).rejects.toThrow(
    /no gateway answers at https:\/\/127\.0\.0\.1:2 \(.*ECONNREFUSED.*\)\. Start one/,
  );
  server.close();
});

test("[ASG4] a refused secret, pass or token is reported as such, each with its remedy", async () => {
  const refusal = JSON.stringify({ message: "the token was refused: it is no signed JWT" });
  const server = createServer((_, response) => response.writeHead(401).end(refusal)).listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/admin/bans`);
  await expect(askGateway(url, secret("another secret"), {})).rejects.toThrow(
    /^the operator secret differs from the gateway's\. Set COROOM_OPERATOR_SECRET/,
  );
  for (const bearer of [token("operator.1700000000.c2VhbA"), secret("operator.1700000000.c2VhbA")])
    await expect(askGateway(url, bearer, {})).rejects.toThrow(
      /^the operator pass has expired or belongs to another system\. Create a new one with "coroom ops pass"$/,
    );
  const remedy = "Set --token (COROOM_TOKEN) to a valid token with the right admin, or leave it out to use the operator secret";
  for (const jwt of ["eyJhbGciOiJIUzI1NiJ9.e30.x", "eyAiYWxnIjoiSFMyNTYifQ.e30.x"])
    await expect(askGateway(url, token(jwt), {})).rejects.toThrow(`the token was refused: it is no signed JWT. ${remedy}`);
  await expect(askGateway(url, token("bad"), {})).rejects.toThrow(
    `the value of --token (COROOM_TOKEN) is neither a token nor an operator pass. ${remedy}`,
  );
  server.close();
});
