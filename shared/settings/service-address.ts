/** Where gateways reach a service that tells them so itself: at the address that a setting names, else where it listens. */

import { SettingError } from "./settings.ts";

/** `urlSetting`: as in the environment. */
export type ServiceAddress = { readonly host: string; readonly url: string; readonly urlSetting: string };

/** As a setting. */
export function serviceUrl(raw: string): string {
  const url = URL.canParse(raw) ? new URL(raw) : undefined;
  // What is asked there has a path of its own.
  if (url === undefined || !/^https?:$/.test(url.protocol) || `${url.origin}/` !== url.href) {
    throw new SettingError("must be an address such as http://documents-1:8081, without a path");
  }
  return raw;
}

/** Throws a SettingError for every address of a machine, where none is named: nobody else can go there. */
export function refuseNowhere({ host, url, urlSetting }: ServiceAddress): void {
  if (url !== "" || !/^(?:0+(?:\.0+){0,3}|\[?[0:]+\]?)$/.test(host)) return;
  throw new SettingError(
    `${urlSetting} is not set: whoever listens on ${host} has to tell gateways where they reach it, such as http://name-of-this-machine:port`,
  );
}

/** `isTls`: the service itself serves over TLS. */
export function serviceAddress({ host, url }: ServiceAddress, port: number, isTls = false): string {
  if (url !== "") return url;
  return `${isTls ? "https" : "http"}://${host.includes(":") && !host.startsWith("[") ? `[${host}]` : host}:${port}`;
}
