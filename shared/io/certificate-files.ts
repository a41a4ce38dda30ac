/** Reads certificates and keys from files that settings name. The error names the setting, and never quotes a key. */

import { readFileSync } from "node:fs";
import { createSecureContext } from "node:tls";

import { SettingError } from "../settings/settings.ts";

type CertificateFiles = { readonly certFile: string; readonly keyFile: string };

/** `setting`: its name in the environment. */
export function textIn(setting: string, file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (cause) {
    const code = cause instanceof Error && "code" in cause ? String(cause.code) : "unknown";
    throw new SettingError(`${setting}=${file} cannot be read (${code}): name an existing file that Coroom's user may read`, { cause });
  }
}

/** Undefined: no file is named. `settings`: names in the environment of the certificate and of its key. */
export function certificateFiles(
  { certFile, keyFile }: CertificateFiles,
  settings: readonly [string, string],
): CertificateFiles | undefined {
  if (certFile === "" && keyFile === "") return undefined;
  const [ofCert, ofKey] = settings;
  if (certFile === "" || keyFile === "") {
    throw new SettingError(`${ofCert} and ${ofKey} go together: set both, the certificate and its private key, or neither`);
  }
  const [cert, key] = [textIn(ofCert, certFile), textIn(ofKey, keyFile)];
  try {
    createSecureContext({ cert, key });
  } catch {
    throw new SettingError(
      `${ofCert}=${certFile} and ${ofKey}=${keyFile} do not match, or are not PEM files. Set a certificate and its own key, without a passphrase`,
    ); // Without `cause`: it may quote the key.
  }
  return { certFile, keyFile };
}
