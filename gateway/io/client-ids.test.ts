import { expect, test } from "vitest";

import { type ClientKey, parseClientId, type TenantId, type UserId } from "../../shared/ids.ts";
import { clientIdOf } from "./client-ids.ts";

const id = (tenant: string, user: string, key: string) => clientIdOf(tenant as TenantId, user as UserId, key as ClientKey);

test("[CID1] equal tenant, user and key always give the same well-formed client id", () => {
  expect(id("acme", "ann", "12345678")).toBe(id("acme", "ann", "12345678"));
  expect(parseClientId(id("acme", "ann", "12345678"))).toBeDefined();
});

test("[CID2] another tenant, user or key gives another id, even if the joined texts are equal", () => {
  const ids = [
    id("acme", "ann", "12345678"),
    id("acme", "ann1", "2345678x"),
    id("acmea", "nn", "12345678"),
    id("acme", "bob", "12345678"),
    id("acme", "ann", "12345679"),
  ];
  expect(new Set(ids).size).toBe(ids.length);
});

test("[CID3] ids are the same in all versions, because edits are numbered by them and clients move between gateway versions", () => {
  expect(id("acme", "ann", "12345678")).toBe("j2DOJNTzSWZGDmCC");
});
