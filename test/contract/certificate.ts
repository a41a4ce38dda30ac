/** A self-signed certificate for tests of TLS, on both sides. */

import { writeFileSync } from "node:fs";
import { join } from "node:path";

/** A certificate and key for localhost and 127.0.0.1, valid from 2020 to 2120. They protect nothing. */
export const CERTIFICATE = `-----BEGIN CERTIFICATE-----
MIIBZzCCAQ2gAwIBAgIBATAKBggqhkjOPQQDAjAUMRIwEAYDVQQDDAlsb2NhbGhv
c3QwIBcNMjAwMTAxMDAwMDAwWhgPMjEyMDAxMDEwMDAwMDBaMBQxEjAQBgNVBAMM
CWxvY2FsaG9zdDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABE5FbW+Jcy2vTgLJ
l8uGybjS9W/ILkXUc0dv4v7F3k9y6BLN+S80wOYGnenRDbd7C74Rj/2QAlfKuwVf
WRck/6ujTjBMMBoGA1UdEQQTMBGCCWxvY2FsaG9zdIcEfwAAATAPBgNVHRMBAf8E
BTADAQH/MB0GA1UdDgQWBBQMBGzh6BU3t35EncWF8DcgkXCOwjAKBggqhkjOPQQD
AgNIADBFAiEA2du91vPzT0I4jg3MFG9yUZgna677SyocpauRyNkggmwCICfRE9Ac
W29F+POSqESI6yLoL3mKkjxFb7MO8hVJCZjn
-----END CERTIFICATE-----
`;
/** With the same key, only for the IP address 127.0.0.1. */
export const ADDRESS_CERTIFICATE = `-----BEGIN CERTIFICATE-----
MIIBUTCB+KADAgECAgECMAoGCCqGSM49BAMCMA8xDTALBgNVBAMMBG5hdHMwIBcN
MjAwMTAxMDAwMDAwWhgPMjEyMDAxMDEwMDAwMDBaMA8xDTALBgNVBAMMBG5hdHMw
WTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAARORW1viXMtr04CyZfLhsm40vVvyC5F
1HNHb+L+xd5PcugSzfkvNMDmBp3p0Q23ewu+EY/9kAJXyrsFX1kXJP+ro0MwQTAP
BgNVHREECDAGhwR/AAABMA8GA1UdEwEB/wQFMAMBAf8wHQYDVR0OBBYEFAwEbOHo
FTe3fkSdxYXwNyCRcI7CMAoGCCqGSM49BAMCA0gAMEUCIH+4+jAD1hKiSab5I32v
YjFiggw3SAPkbc+w7UZJE4/2AiEAjC7/wSdOAJDms62VcO1nOz6j64gFERSe2b5I
DPIPArs=
-----END CERTIFICATE-----
`;
export const KEY = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg0okhIjric+BtOG0x
EJMmwJ2gd9L6vmyG7h+8IK6X3sChRANCAARORW1viXMtr04CyZfLhsm40vVvyC5F
1HNHb+L+xd5PcugSzfkvNMDmBp3p0Q23ewu+EY/9kAJXyrsFX1kXJP+r
-----END PRIVATE KEY-----
`;

/** The location of both files. */
export function writeCertificate(folder: string, certificate = CERTIFICATE): { readonly certFile: string; readonly keyFile: string } {
  const files = { certFile: join(folder, "cert.pem"), keyFile: join(folder, "key.pem") };
  writeFileSync(files.certFile, certificate);
  writeFileSync(files.keyFile, KEY);
  return files;
}
