import { once } from "node:events";
import { mkdtempSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { expect, onTestFinished, test } from "vitest";

import { SettingError } from "../shared/settings/settings.ts";
import { writeCertificate } from "../test/contract/certificate.ts";
import { adminSettings, gatewayAddress } from "./command-settings.ts";
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

test("[ASG5] a WebSocket address, a path and a password are refused as a gateway address, and the error shows the right one", () => {
  const example = (raw: string): string => {
    expect(() => gatewayAddress(raw), raw).toThrow(SettingError);
    return raw;
  };
  expect(() => gatewayAddress(example("ws://gateway-3:8080/v1/connect"))).toThrow(/WebSocket address.* such as http:\/\/gateway-3:8080$/);
  expect(() => gatewayAddress(example("wss://rooms.example"))).toThrow(/such as https:\/\/rooms\.example$/);
  for (const raw of ["https://rooms.example/coroom", "https://rooms.example?a=b", "https://rooms.example/#top"])
    expect(() => gatewayAddress(example(raw))).toThrow(/without a path.* such as https:\/\/rooms\.example$/);
  expect(() => gatewayAddress(example("http://ann:secret@gateway-3"))).toThrow(
    /no user or password.*--token.* such as http:\/\/gateway-3$/,
  );
  expect(gatewayAddress("https://rooms.example/")).toBe("https://rooms.example/");
});

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
    /failed \(self-signed certificate.*, DEPTH_ZERO_SELF_SIGNED_CERT\).*NODE_EXTRA_CA_CERTS/,
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

test("[ASG9] the help of a drain states that it concerns the gateway of --url alone", () => {
  expect(adminSettings.drain.url.meaning).toMatch(/^URL of the gateway to drain/);
  expect(adminSettings.kick.url.meaning).toMatch(/^URL of any gateway\. Commands reach all gateways/);
});

test("[ASG8] a token where only operators are allowed gets one remedy, which is not another token", async () => {
  const refusal = JSON.stringify({ error: "not-an-operator", message: "only operators may do this: send COROOM_OPERATOR_SECRET" });
  const server = createServer((_, response) => response.writeHead(401).end(refusal)).listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  const url = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/admin/drain`);
  for (const text of ["eyJhbGciOiJIUzI1NiJ9.e30.x", "bad"])
    await expect(askGateway(url, token(text), {})).rejects.toThrow(
      /^only operators may do this, whatever the rights of a token\. Leave out --token \(COROOM_TOKEN\), and set COROOM_OPERATOR_SECRET \(--operator-secret\) to the gateway's value$/,
    );
  await expect(askGateway(url, secret("other"), {})).rejects.toThrow(/^the operator secret differs from the gateway's/);
  await expect(askGateway(url, token("operator.1700000000.c2VhbA"), {})).rejects.toThrow(/^the operator pass has expired/);
});

async function failureOf(url: string): Promise<string> {
  const failed = await askGateway(new URL("/v1/admin/bans", url), secret("operator"), {}).catch((error: unknown) => error);
  expect(failed).toBeInstanceOf(SettingError);
  return (failed as SettingError).message;
}

test("[ASG6] a port that fetch blocks, an unknown host, and an address without a server have different remedies", async () => {
  for (const port of [1, 22, 6000]) {
    const failure = await failureOf(`http://127.0.0.1:${port}`);
    expect(failure).toMatch(/never sends requests to port \d+, nor do browsers\. Let the gateway listen on another port/);
    expect(failure).not.toMatch(/certificate|NODE_EXTRA/);
  }
  expect(await failureOf("http://no-such-host.invalid:8080")).toMatch(
    /the host name no-such-host\.invalid has no address \(.*(ENOTFOUND|EAI_AGAIN).*\)\. Check --url/,
  );
  expect(await failureOf("http://127.0.0.1:2")).toMatch(/^no gateway answers at http:\/\/127\.0\.0\.1:2 \(.*ECONNREFUSED/);
});

test("[ASG7] https:// to a server without TLS, and http:// to one with TLS, name the other scheme", async () => {
  const plain = createServer((_, response) => response.end("{}")).listen(0, "127.0.0.1");
  const { certFile, keyFile } = writeCertificate(mkdtempSync(join(tmpdir(), "coroom-")));
  const tls = createTlsServer({ cert: readFileSync(certFile), key: readFileSync(keyFile) }).listen(0, "127.0.0.1");
  await Promise.all([once(plain, "listening"), once(tls, "listening")]);
  const addressOf = ({ port }: AddressInfo): string => `127.0.0.1:${port}`;
  const [toPlain, toTls] = [addressOf(plain.address() as AddressInfo), addressOf(tls.address() as AddressInfo)];
  expect(await failureOf(`https://${toPlain}`)).toMatch(new RegExp(`does not speak TLS.*Set --url to http://${toPlain}$`));
  expect(await failureOf(`http://${toTls}`)).toMatch(
    new RegExp(`closed the connection without an answer.*If it speaks TLS, set --url to https://${toTls}`),
  );
  plain.close();
  tls.close();
});
