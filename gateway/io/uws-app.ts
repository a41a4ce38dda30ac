/** The server that a gateway's sockets and HTTP are on: over TLS where a certificate is named, else plain. */

import type { TemplatedApp } from "uws-node20";

import { certificateFiles } from "../../shared/io/certificate-files.ts";
import type { Uws } from "./load-uws.ts";

export type TlsOptions = { readonly tlsCertFile: string; readonly tlsKeyFile: string };

/** Throws a SettingError where the certificate cannot be used. It is read once: a renewed one is served from the next start on. */
export function uwsApp(uws: Uws, { tlsCertFile, tlsKeyFile }: TlsOptions): TemplatedApp {
  const files = certificateFiles({ certFile: tlsCertFile, keyFile: tlsKeyFile }, ["COROOM_TLS_CERT_FILE", "COROOM_TLS_KEY_FILE"]);
  return files === undefined ? uws.App() : uws.SSLApp({ cert_file_name: files.certFile, key_file_name: files.keyFile });
}
