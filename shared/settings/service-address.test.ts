import { expect, test } from "vitest";

import { documentServiceSettings } from "../../document-service/config.ts";
import { readSettings, SettingError } from "./settings.ts";
import { refuseUnreachableAddress, serviceAddress } from "./service-address.ts";

const at = (host: string, url = "") => ({ host, url, urlSetting: "COROOM_DOCUMENTS_URL" });

test.each(["0.0.0.0", "0", "::", "[::]", "0:0:0:0:0:0:0:0"])(
  "[SVC1] a service that listens on %s requires a setting with its announced address",
  (host) => {
    expect(() => refuseUnreachableAddress(at(host))).toThrow(SettingError);
    expect(() => refuseUnreachableAddress(at(host))).toThrow(/^COROOM_DOCUMENTS_URL is not set/);
    expect(() => refuseUnreachableAddress(at(host, "http://documents-1:8081"))).not.toThrow();
  },
);

test.each(["127.0.0.1", "10.0.0.0", "::1", "documents-1"])("[SVC2] a service may announce the address %s", (host) => {
  expect(() => refuseUnreachableAddress(at(host))).not.toThrow();
});

test("[SVC3] a service is at its announced address, else at its listening address", () => {
  expect(serviceAddress(at("0.0.0.0", "http://documents-1:8081"), 9)).toBe("http://documents-1:8081");
  expect(serviceAddress(at("127.0.0.1"), 9)).toBe("http://127.0.0.1:9");
  expect(serviceAddress(at("::1"), 9)).toBe("http://[::1]:9");
});

test("[SVC4] an invalid announced address is refused", () => {
  const read = (documentsUrl: string) => () =>
    readSettings(documentServiceSettings, { flags: {}, env: { COROOM_DOCUMENTS_URL: documentsUrl } });
  expect(read("documents-1:8081")).toThrow(/COROOM_DOCUMENTS_URL=documents-1:8081 must be an address such as http:/);
  for (const more of ["/docs", "?a=b", "#a"]) expect(read(`http://documents-1:8081${more}`)).toThrow(/without a path/);
  expect(read("http://ann:secret@documents-1:8081")).toThrow(/without a path/);
  for (const good of ["https://documents-1:8081", "http://documents-1:8081/"]) expect(read(good)).not.toThrow();
});
