/** Checks before anything starts that the files named by the gateway's settings can be used: TLS files and token keys. */

import { certificateFiles } from "../../shared/io/certificate-files.ts";
import { trustedCertificates } from "../../shared/io/internal-tls.ts";
import { systemClock } from "../../shared/io/system-clock.ts";
import { tokenVerifier, type TokenOptions } from "./jwt-tokens.ts";
import type { TlsOptions } from "./sockets/load-uws.ts";

/** Throws a SettingError for the first file that cannot be used. */
export function refuseUnreadableFiles(config: TokenOptions & TlsOptions & { readonly internalCaFile: string }): void {
  certificateFiles({ certFile: config.tlsCertFile, keyFile: config.tlsKeyFile }, ["COROOM_TLS_CERT_FILE", "COROOM_TLS_KEY_FILE"]);
  trustedCertificates(config.internalCaFile);
  tokenVerifier(config, systemClock); // Fetches no keys until a token arrives.
}
