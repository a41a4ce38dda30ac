/** Derives client ids. Bound to tenant and user by construction: nobody can send under another user's. */

import { hash } from "node:crypto";

import type { ClientId, ClientKey, TenantId, UserId } from "../../shared/ids.ts";

const DOMAIN = "coroom client id 1";
const ID_CHARACTERS = 16;

/** The first 96 bits of a SHA-256, as 16 characters. None of the parts can contain the NUL that separates them. */
export function clientIdOf(tenant: TenantId, user: UserId, key: ClientKey): ClientId {
  const digest = hash("sha256", [DOMAIN, tenant, user, key].join("\0"), "base64url");
  return Buffer.from(digest, "latin1").toString("latin1", 0, ID_CHARACTERS) as ClientId; // A slice would keep the whole digest, for as long as somebody is connected.
}
