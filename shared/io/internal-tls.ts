/**
 * TLS between tiers: the certificate of a service, checked before the service is announced. A gateway cannot call a
 * service whose certificate is for another host. Without the check, each request would fail long after the start.
 */

import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { isIP } from "node:net";

import type { InternalTlsConfig } from "../settings/internal-tls-settings.ts";
import type { ServiceAddress } from "../settings/service-address.ts";
import { SettingError } from "../settings/settings.ts";
import { certificateFiles, textIn } from "./certificate-files.ts";

export type InternalTls = { readonly cert: string; readonly key: string };

/** Undefined: plain HTTP. Throws a SettingError for a certificate that no gateway would accept at the service's address. */
export function internalTls(
  { internalCertFile, internalKeyFile }: InternalTlsConfig,
  { host, url, urlSetting }: ServiceAddress,
): InternalTls | undefined {
  const names = ["COROOM_INTERNAL_CERT_FILE", "COROOM_INTERNAL_KEY_FILE"] as const;
  const files = certificateFiles({ certFile: internalCertFile, keyFile: internalKeyFile }, names);
  if (files === undefined) return undefined;
  if (url.startsWith("http:"))
    throw new SettingError(`${urlSetting}=${url} is not over TLS, but ${names[0]} is set: begin the address with https://`);
  const cert = readFileSync(files.certFile, "utf8");
  const certificate = new X509Certificate(cert);
  const name = (url === "" ? host : new URL(url).hostname).replace(/^\[|\]$/g, "");
  if ((isIP(name) === 0 ? certificate.checkHost(name) : certificate.checkIP(name)) === undefined)
    throw new SettingError(
      `the certificate ${names[0]}=${files.certFile} does not contain ${name}, the host at which gateways reach this service. Use a certificate with this host, or set ${urlSetting} to a host in the certificate`,
    );
  if (Date.parse(certificate.validTo) < Date.now())
    throw new SettingError(`${names[0]}=${files.certFile} expired on ${certificate.validTo}: renew the certificate`);
  return { cert, key: readFileSync(files.keyFile, "utf8") };
}

/** The certificates that gateways trust for services. Undefined: the authorities that Node trusts. */
export function trustedCertificates(internalCaFile: string): string | undefined {
  if (internalCaFile === "") return undefined;
  const certificates = textIn("COROOM_INTERNAL_CA_FILE", internalCaFile);
  try {
    new X509Certificate(certificates);
    return certificates;
  } catch (cause) {
    throw new SettingError(
      `COROOM_INTERNAL_CA_FILE=${internalCaFile} contains no PEM certificate. Set it to the file of the certificate authority`,
      {
        cause,
      },
    );
  }
}
