import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { afterAll, beforeAll, expect, test } from "vitest";

import { CERTIFICATE, KEY, writeCertificate } from "../../test/contract/certificate.ts";
import { internalTls, trustedCertificates } from "./internal-tls.ts";

let folder: string;
let files: { internalCertFile: string; internalKeyFile: string };
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "coroom-internal-tls-"));
  const { certFile, keyFile } = writeCertificate(folder);
  files = { internalCertFile: certFile, internalKeyFile: keyFile };
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const at = (host: string, url = "") => ({ host, url, urlSetting: "COROOM_DOCUMENTS_URL" });

test("[ITLS1] a service serves over TLS with a certificate for the host of its address", () => {
  expect(internalTls({ internalCertFile: "", internalKeyFile: "" }, at("10.0.0.1"))).toBeUndefined();
  for (const fit of [at("127.0.0.1"), at("0.0.0.0", "https://localhost:8081")])
    expect(internalTls(files, fit)).toEqual({ cert: CERTIFICATE, key: KEY });
});

test.each([
  [at("10.0.0.1"), /does not contain 10\.0\.0\.1.* COROOM_DOCUMENTS_URL/],
  [at("::1"), /does not contain ::1/],
  [at("127.0.0.1", "https://documents-1:8081"), /does not contain documents-1/],
  [at("127.0.0.1", "http://localhost:8081"), /COROOM_DOCUMENTS_URL=http:.* is not over TLS.* https:/],
])("[ITLS2] a certificate that gateways would refuse at %s is an error at the start", (address, message) => {
  expect(() => internalTls(files, address)).toThrow(message);
});

test("[ITLS3] a file that holds no certificate is refused, and its setting is named", () => {
  const file = join(folder, "empty.pem");
  writeFileSync(file, "");
  expect(() => trustedCertificates(file)).toThrow(/COROOM_INTERNAL_CA_FILE=.* contains no PEM certificate/);
  expect(trustedCertificates(files.internalCertFile)).toBe(CERTIFICATE);
  expect(trustedCertificates("")).toBeUndefined();
});
