/** Derives client ids. Bound to tenant and user by construction: nobody can send under another user's. */

import { createHash } from "node:crypto";

import type { ClientId, ClientKey, TenantId, UserId } from "../../shared/ids.ts";

const DOMAIN = "coroom client id 1";
const ID_CHARACTERS = 16;

/** The first 96 bits of a SHA-256. None of the parts can contain the NUL that separates them. */
export function clientIdOf(tenant: TenantId, user: UserId, key: ClientKey): ClientId {
  return createHash("sha256").update([DOMAIN, tenant, user, key].join("\0")).digest("base64url").slice(0, ID_CHARACTERS) as ClientId;
}
