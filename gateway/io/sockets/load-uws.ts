/**
 * Loads the uWebSockets.js build that runs here. The newer build supports Node 22, 24 and 26 and needs glibc 2.38. The
 * older build supports Node 20, 22 and 23 and runs on glibc 2.36. If both run, the newer one is loaded.
 */

import { createRequire } from "node:module";
import type { TemplatedApp } from "uWebSockets.js-glibc-2.36";
import { certificateFiles } from "../../../shared/io/certificate-files.ts";
import { StartError } from "../../../shared/process/lifecycle.ts";

export type Uws = typeof import("uWebSockets.js-glibc-2.36");

const require = createRequire(import.meta.url);
const NODE_OF_NEWER = 22;
/**
 * uWebSockets.js answers 431 to more bytes of URL and headers; its default is 4 KiB. A HELLO may contain a token of
 * nearly 16 KiB, and the client sends the same token as a header when it fetches a snapshot. 4 KiB are for the rest.
 */
const HEADER_BYTES_MAX = 20 * 1024;

/** Throws a StartError, with the reason of each build as its cause, when neither runs. */
export function loadUws(load: (name: string) => unknown = require, version = process.versions.node): Uws {
  const node = Number(version.split(".")[0]);
  // Under Node 20 the newer build would load the binary of the older build, which is in the same folder, with its own
  // JavaScript.
  const names = node >= NODE_OF_NEWER ? ["uWebSockets.js", "uWebSockets.js-glibc-2.36"] : ["uWebSockets.js-glibc-2.36"];
  const reasons: unknown[] = [];
  process.env["UWS_HTTP_MAX_HEADERS_SIZE"] ??= String(HEADER_BYTES_MAX); // Read once, when the library is loaded.
  for (const name of names) {
    try {
      return load(name) as Uws;
    } catch (error) {
      reasons.push(error); // No binary for this Node, or a binary that needs a newer libc: both are reported as a plain Error.
    }
  }
  throw new StartError(
    `uWebSockets.js does not run under Node ${version} on ${process.platform} ${process.arch} with ${libc()}: use Node 20 or 22, or on Linux with glibc 2.38 or newer (Debian 13), on macOS or on Windows also 24 or 26. If you changed Node after npm had installed the packages, install them again`,
    { cause: new AggregateError(reasons) },
  );
}

function libc(): string {
  const { header } = process.report.getReport() as { header: { glibcVersionRuntime?: string } };
  return header.glibcVersionRuntime === undefined ? "no glibc" : `glibc ${header.glibcVersionRuntime}`;
}

/** Paths of the certificate and its key. Empty: no TLS. */
export type TlsOptions = { readonly tlsCertFile: string; readonly tlsKeyFile: string };

/**
 * The uWebSockets.js server for sockets and HTTP, with TLS where a certificate is configured. Throws a SettingError when
 * the certificate cannot be used. The certificate is read once: a renewed one takes effect at the next start.
 */
export function uwsApp(uws: Uws, { tlsCertFile, tlsKeyFile }: TlsOptions): TemplatedApp {
  const files = certificateFiles({ certFile: tlsCertFile, keyFile: tlsKeyFile }, ["COROOM_TLS_CERT_FILE", "COROOM_TLS_KEY_FILE"]);
  return files === undefined ? uws.App() : uws.SSLApp({ cert_file_name: files.certFile, key_file_name: files.keyFile });
}
