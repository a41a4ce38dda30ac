/** The address that a service announces to gateways: from a setting, otherwise the address on which it listens. */

import { SettingError } from "./settings.ts";

/** `urlSetting`: its name in the environment. */
export type ServiceAddress = { readonly host: string; readonly url: string; readonly urlSetting: string };

/** Parser of the setting. */
export function serviceUrl(raw: string): string {
  const url = URL.canParse(raw) ? new URL(raw) : undefined;
  // The address has no path, because requests have their own paths.
  if (url === undefined || !/^https?:$/.test(url.protocol) || `${url.origin}/` !== url.href) {
    throw new SettingError("must be an address such as http://documents-1:8081, without a path");
  }
  return raw;
}

/**
 * Throws a SettingError if the service listens on all addresses and no setting names one: other machines cannot
 * connect to such an address.
 */
export function refuseUnreachableAddress({ host, url, urlSetting }: ServiceAddress): void {
  if (url !== "" || !/^(?:0+(?:\.0+){0,3}|\[?[0:]+\]?)$/.test(host)) return;
  throw new SettingError(
    `${urlSetting} is not set: a service that listens on ${host} must announce an address to gateways. Set it to, for example, http://name-of-this-machine:port`,
  );
}

/** `isTls`: the service itself serves over TLS. */
export function serviceAddress({ host, url }: ServiceAddress, port: number, isTls = false): string {
  if (url !== "") return url;
  return `${isTls ? "https" : "http"}://${host.includes(":") && !host.startsWith("[") ? `[${host}]` : host}:${port}`;
}
