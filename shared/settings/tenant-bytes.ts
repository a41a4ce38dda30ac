/** Maximum bytes that a tenant stores: one number for all tenants, and others for single ones. 0: no limit. */

import { parseTenantId, type TenantId } from "../ids.ts";
import { SettingError } from "./settings.ts";

export class TenantBytesMax {
  readonly #all: number;
  readonly #each: ReadonlyMap<TenantId, number>;

  constructor(all: number, each: ReadonlyMap<TenantId, number>) {
    this.#all = all;
    this.#each = each;
  }

  of(tenant: TenantId): number {
    return this.#each.get(tenant) ?? this.#all;
  }
}

export const NO_TENANT_LIMIT = new TenantBytesMax(0, new Map());

/** `100000000000, acme=500000000000`. */
export function tenantBytesMax(raw: string): TenantBytesMax {
  let all: number | undefined;
  const each = new Map<TenantId, number>();
  for (const part of raw.split(",").map((text) => text.trim())) {
    if (part === "") continue;
    const [, name, digits] = /^(?:([^=]*)=)?(\d{1,15})$/.exec(part) ?? [];
    const tenant = name === undefined ? undefined : parseTenantId(name);
    if (digits === undefined || (name !== undefined && tenant === undefined)) {
      throw new SettingError("must be bytes for all tenants, and tenant=bytes for single ones: 100000000000, acme=500000000000");
    }
    if (tenant === undefined ? all !== undefined : each.has(tenant)) {
      throw new SettingError("must have at most one number of bytes for each tenant, and at most one for all tenants");
    }
    if (tenant === undefined) all = Number(digits);
    else each.set(tenant, Number(digits));
  }
  return new TenantBytesMax(all ?? 0, each);
}
