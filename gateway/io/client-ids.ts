/** Derives client ids from tenant, user and client key, so that no user can send under another user's id. */

import { hash } from "node:crypto";

import type { ClientId, ClientKey, TenantId, UserId } from "../../shared/ids.ts";

const DOMAIN = "coroom client id 1";
const ID_CHARACTERS = 16;

/** The first 96 bits of a SHA-256, as 16 characters. No part contains the NUL that separates the parts. */
export function clientIdOf(tenant: TenantId, user: UserId, key: ClientKey): ClientId {
  const digest = hash("sha256", [DOMAIN, tenant, user, key].join("\0"), "base64url");
  return Buffer.from(digest, "latin1").toString("latin1", 0, ID_CHARACTERS) as ClientId; // A slice would keep the whole digest in memory for as long as the connection exists.
}
