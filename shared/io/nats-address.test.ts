import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ConnectionOptions, PeerCertificate } from "node:tls";

import { type Authenticator, nkeys } from "nats";
import { afterEach, beforeEach, expect, test } from "vitest";

import { rememberAddress } from "../../cli/local-addresses.ts";
import { writeCertificate } from "../../test/contract/certificate.ts";
import { SettingError } from "../settings/settings.ts";
import { natsAddress, type NatsSettings, withoutSecrets } from "./nats-address.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "coroom-nats-address-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

test("[NAT7] user and password are removed from the addresses of NATS, and decoded", () => {
  const { servers, options } = natsAddress({ natsUrl: "nats://ada:p%40ss%2C1@nats-1:4222, nats-2:4223,tls://ada:p%40ss%2C1@[::1]:4224" });
  expect(servers).toEqual(["nats://nats-1:4222", "nats://nats-2:4223", "tls://[::1]:4224"]);
  expect(options).toEqual({ user: "ada", pass: "p@ss,1", tls: { checkServerIdentity: expect.any(Function) as unknown } });
  expect(natsAddress({ natsUrl: "nats://word@nats-1" })).toEqual({ servers: ["nats://nats-1"], options: { token: "word" } });
  expect(natsAddress({ natsUrl: "nats://nats-1:4222" }).options).toEqual({});
});

test("[NAT8] an error names the setting and the remedy, and contains no secret", () => {
  const nothing = join(folder, "nothing");
  const damaged = join(folder, "damaged.creds");
  writeFileSync(damaged, "SECRET");
  const { certFile } = writeCertificate(folder);
  const refused: readonly (readonly [NatsSettings, RegExp])[] = [
    [{ natsUrl: "http://ada:SECRET@nats" }, /COROOM_NATS_URL is no address: it is nats:/],
    [{ natsUrl: "nats://ada:SECRET%zz@nats" }, /Percent-encode special characters in a password, for example @ as %40/],
    [{ natsUrl: "nats://ada:SECRET%ff@nats" }, /Percent-encode special characters in a password/],
    [{ natsUrl: "nats://ada:SECRET@nats:port" }, /COROOM_NATS_URL is no address/],
    [{ natsUrl: "nats://ada:SECRET@nats,nats://bob:SECRET@nats" }, /names several users/],
    [{ natsUrl: "nats://ada:SECRET@nats", natsCredentials: damaged }, /set one of them/],
    [{ natsUrl: "nats", natsCredentials: nothing }, /COROOM_NATS_CREDENTIALS=.*nothing cannot be read \(ENOENT\)/],
    [{ natsUrl: "nats", natsCredentials: damaged }, /contains no credentials: name a .creds file/],
    [{ natsUrl: "nats", natsCert: damaged }, /COROOM_NATS_CERT and COROOM_NATS_KEY go together/],
    [{ natsUrl: "nats", natsKey: damaged }, /COROOM_NATS_CERT and COROOM_NATS_KEY go together/],
    [{ natsUrl: "nats", natsCert: damaged, natsKey: nothing }, /COROOM_NATS_KEY=.*nothing cannot be read/],
    [{ natsUrl: "nats", natsCert: certFile, natsKey: damaged }, /do not match, or are not PEM files/],
    [{ natsUrl: "nats", natsCa: folder }, /COROOM_NATS_CA=.* cannot be read \(EISDIR\)/],
  ];
  for (const [settings, message] of refused) {
    const read = () => natsAddress(settings);
    expect(read).toThrow(SettingError);
    expect(read).toThrow(message);
    expect(read).not.toThrow(/SECRET/);
  }
});

test("[NAT9] a credentials file signs connections, and certificates are used only for TLS", () => {
  const [creds, ca] = [join(folder, "coroom.creds"), join(folder, "ca.pem")];
  writeFileSync(creds, credentialsOf("jwt"));
  writeFileSync(ca, "certificates");
  const { options } = natsAddress({ natsUrl: "nats", natsCredentials: creds, natsCa: ca });
  expect(options.tls).toEqual({ ca: "certificates" });
  expect((options.authenticator as (nonce: string) => unknown)("nonce")).toMatchObject({ jwt: "jwt", sig: expect.any(String) });
});

test("[NAT31] a certificate fits a server with an IP address only by an IP address, and Node's name for such a server is localhost", () => {
  const ca = join(folder, "ca.pem");
  writeFileSync(ca, "certificates");
  const accepts = (natsUrl: string, name: string, subjectaltname: string): boolean => {
    const { checkServerIdentity: check } = natsAddress({ natsUrl, natsCa: ca }).options.tls as Pick<
      ConnectionOptions,
      "checkServerIdentity"
    >;
    return check!(name, { subject: {}, subjectaltname } as PeerCertificate) === undefined;
  };
  const [ofAddress, ofLocalhost, ofName] = ["IP Address:10.0.0.2", "DNS:localhost", "DNS:nats-1"];
  expect(accepts("tls://10.0.0.1,tls://10.0.0.2", "localhost", ofAddress)).toBe(true);
  expect(accepts("tls://10.0.0.1", "localhost", ofAddress)).toBe(false);
  expect(accepts("tls://10.0.0.1", "localhost", ofLocalhost)).toBe(false);
  expect(accepts("tls://10.0.0.1,tls://localhost", "localhost", ofLocalhost)).toBe(true);
  // Node 22.23 accepts no certificate for an IPv6 address (nodejs/node#64144).
  if (!process.version.startsWith("v22.23.")) expect(accepts("tls://[::1]", "localhost", "IP Address:0:0:0:0:0:0:0:1")).toBe(true);
  expect(accepts("tls://10.0.0.2,tls://nats-1", "nats-1", ofName)).toBe(true);
  expect(accepts("tls://10.0.0.2,tls://nats-1", "nats-1", ofAddress)).toBe(false);
});

test("[NAT16] replaced credentials sign from the next connection on, and a damaged file keeps the earlier ones", () => {
  const creds = join(folder, "coroom.creds");
  const write = (jwt: string): void => writeFileSync(creds, credentialsOf(jwt));
  write("first");
  const authenticator = natsAddress({ natsUrl: "nats", natsCredentials: creds }).options.authenticator as Authenticator;
  expect(authenticator("nonce")).toMatchObject({ jwt: "first" });
  write("second");
  expect(authenticator("nonce")).toMatchObject({ jwt: "second", sig: expect.any(String) });
  writeFileSync(creds, "half written");
  expect(authenticator("nonce")).toMatchObject({ jwt: "second" });
  rmSync(creds);
  expect(authenticator("nonce")).toMatchObject({ jwt: "second" });
  write("third");
  expect(authenticator("nonce")).toMatchObject({ jwt: "third" });
});

test("[NAT10] the file that gives other terminals the NATS address holds no password", () => {
  rememberAddress("nats", folder, "nats://ada:SECRET@nats-1:4222,nats-2");
  expect(readFileSync(join(folder, "nats-url"), "utf8")).toBe("nats://nats-1:4222,nats://nats-2");
  expect(withoutSecrets("nats://127.0.0.1:4222")).toBe("nats://127.0.0.1:4222");
});

function credentialsOf(jwt: string): string {
  const seed = new TextDecoder().decode(nkeys.createUser().getSeed());
  return `-----BEGIN NATS USER JWT-----\n${jwt}\n------END NATS USER JWT------\n\n-----BEGIN USER NKEY SEED-----\n${seed}\n------END USER NKEY SEED------\n`;
}
