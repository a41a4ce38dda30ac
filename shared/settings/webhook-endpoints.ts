/**
 * Endpoints of webhooks and of first content, from settings: one for all tenants, or one per tenant. Only operators set them: no token and
 * no client can name an endpoint.
 */

import { parseTenantId, type TenantId } from "../ids.ts";
import { SettingError } from "./settings.ts";

/** `tenant` undefined: all tenants. `name`: of its JetStream consumer; it must never change. */
export type WebhookEndpoint = { readonly name: string; readonly tenant: TenantId | undefined; readonly url: string };

/** `https://a.example/hook, acme=https://b.example/hook`. */
export function webhookEndpoints(raw: string): readonly WebhookEndpoint[] {
  const endpoints = entriesOf(raw).map(({ tenant, value }): WebhookEndpoint => {
    if (!URL.canParse(value) || !/^https?:$/.test(new URL(value).protocol)) {
      throw new SettingError(
        "must be http:// or https:// URLs. A plain URL receives the events of all tenants, and tenant=URL receives the events of one tenant",
      );
    }
    const { username, password } = new URL(value);
    if (username !== "" || password !== "") {
      throw new SettingError("must be URLs without a user and a password: fetch sends none. Let the endpoint verify webhook-signature");
    }
    return { name: tenant ?? "all-tenants", tenant, url: value };
  });
  if (new Set(endpoints.map(({ name }) => name)).size < endpoints.length) {
    throw new SettingError("must have at most one URL for each tenant, and at most one URL for all tenants");
  }
  return endpoints;
}

/** The secret of each endpoint, in the same form: `whsec_…, acme=whsec_…`. */
export function webhookSecrets(raw: string): ReadonlyMap<string, string> {
  const secrets = entriesOf(raw).map(({ tenant, value }): [string, string] => {
    if (!/^whsec_[A-Za-z0-9+/]{32,}={0,2}$/.test(value)) {
      throw new SettingError("must be secrets in the format of Standard Webhooks: whsec_ followed by at least 24 random bytes in base64");
    }
    return [tenant ?? "all-tenants", value];
  });
  const byName = new Map(secrets);
  if (byName.size < secrets.length) {
    throw new SettingError(
      "must have at most one secret for each tenant, and at most one for all tenants. To change a secret, let the endpoint accept the old and the new one for a time",
    );
  }
  return byName;
}

/** The tenant's own endpoint, or the one for all tenants. */
export function endpointFor(tenant: TenantId, endpoints: readonly WebhookEndpoint[]): WebhookEndpoint | undefined {
  return endpoints.find((endpoint) => endpoint.tenant === tenant) ?? endpoints.find((endpoint) => endpoint.tenant === undefined);
}

/** Whether any endpoint receives the tenant's events. */
export function wantsEventsOf(tenant: TenantId, endpoints: readonly WebhookEndpoint[]): boolean {
  return endpoints.some((endpoint) => endpoint.tenant === undefined || endpoint.tenant === tenant);
}

function entriesOf(raw: string): { tenant: TenantId | undefined; value: string }[] {
  return raw
    .split(",")
    .map((part) => part.trim())
    .filter((part) => part !== "")
    .map((part) => {
      const [, tenantText, value = part] = /^([A-Za-z0-9_-]{1,64})=((?:https?:|whsec_).*)$/.exec(part) ?? [];
      return { tenant: tenantText === undefined ? undefined : parseTenantId(tenantText), value };
    });
}
