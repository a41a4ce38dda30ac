/** The files that a gateway's settings name, looked at before anything starts: those of TLS and of the keys to check tokens with. */

import { certificateFiles } from "../../shared/io/certificate-files.ts";
import { systemClock } from "../../shared/io/system-clock.ts";
import { jwtTokens, type TokenOptions } from "./jwt-tokens.ts";
import type { TlsOptions } from "./uws-app.ts";

/** Throws a SettingError for the first that cannot be used. */
export function refuseUnreadable(config: TokenOptions & TlsOptions): void {
  certificateFiles({ certFile: config.tlsCertFile, keyFile: config.tlsKeyFile }, ["COROOM_TLS_CERT_FILE", "COROOM_TLS_KEY_FILE"]);
  jwtTokens(config, systemClock); // Fetches nothing before a token is shown.
}
