/** Derives client ids. Bound to tenant and user by construction: nobody can send under another user's. */

import { createHash } from "node:crypto";

import type { ClientId, ClientKey, TenantId, UserId } from "../../shared/ids.ts";

const DOMAIN = "coroom client id 1";
const ID_BYTES = 12;

/** The first 96 bits of a SHA-256, as 16 characters. None of the parts can contain the NUL that separates them. */
export function clientIdOf(tenant: TenantId, user: UserId, key: ClientKey): ClientId {
  return createHash("sha256").update([DOMAIN, tenant, user, key].join("\0")).digest().toString("base64url", 0, ID_BYTES) as ClientId;
}
