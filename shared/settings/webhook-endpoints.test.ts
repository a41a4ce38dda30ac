import { expect, test } from "vitest";

import type { TenantId } from "../ids.ts";
import { wantsEventsOf, webhookEndpoints, webhookSecrets } from "./webhook-endpoints.ts";

const SECRET = `whsec_${"c2VjcmV0".repeat(5)}`;

test("[WHK1] an endpoint receives all tenants' events or one tenant's; an event is queued if either endpoint exists", () => {
  const endpoints = webhookEndpoints("https://a.example/hook?of=coroom, acme=http://10.0.0.7:8080/");
  expect(endpoints).toEqual([
    { name: "all-tenants", tenant: undefined, url: "https://a.example/hook?of=coroom" },
    { name: "acme", tenant: "acme", url: "http://10.0.0.7:8080/" },
  ]);
  expect([
    wantsEventsOf("other" as TenantId, endpoints),
    wantsEventsOf("other" as TenantId, endpoints.slice(1)),
    wantsEventsOf("acme" as TenantId, endpoints.slice(1)),
    wantsEventsOf("acme" as TenantId, []),
  ]).toEqual([true, false, true, false]);
  expect(webhookSecrets(`${SECRET}, acme=${SECRET}`)).toEqual(
    new Map([
      ["all-tenants", SECRET],
      ["acme", SECRET],
    ]),
  );
  expect(webhookEndpoints("")).toEqual([]);
});

test.each([
  "ftp://a.example",
  "nonsense",
  "acme=file:///etc/passwd",
  "https://a.example, https://b.example",
  "a.b=https://x.example",
  "https://ann:secret@a.example/",
])("[WHK2] %j is refused as a setting for addresses", (raw) => {
  expect(() => webhookEndpoints(raw)).toThrow();
});

test.each([`${SECRET}, ${SECRET}2`, `acme=${SECRET}, acme=${SECRET}2`])("[WHK15] two secrets under one name are refused: %j", (raw) => {
  expect(() => webhookSecrets(raw)).toThrow("at most one");
});

test.each(["secret", "whsec_c2hvcnQ=", `acme=${"x".repeat(40)}`])("[WHK2] %j is refused as a setting for secrets", (raw) => {
  expect(() => webhookSecrets(raw)).toThrow();
});
