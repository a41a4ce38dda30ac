import { expect, test } from "vitest";

import { type Millis, parseRoomId, type TenantId, type UserId } from "../../shared/ids.ts";
import { admit, type Identity } from "./identity.ts";

function holder(rooms: string[], rights: Partial<Identity["rights"]> = {}): Identity {
  return {
    tenant: "acme" as TenantId,
    user: "ann" as UserId,
    name: "Ann",
    rooms,
    rights: { read: true, write: true, admin: false, award: false, boards: false, ...rights },
    expiresAt: 0 as Millis,
  };
}

const room = (text: string) => parseRoomId(text)!;

test("[IDN1] a token opens the rooms that it names, and the rooms that a trailing * matches", () => {
  expect(admit(holder(["notes", "draft/*"]), room("notes"))).toMatchObject({ kind: "admitted", room: "acme.notes" });
  expect(admit(holder(["notes", "draft/*"]), room("draft/7")).kind).toBe("admitted");
  expect(admit(holder(["*"]), room("anything")).kind).toBe("admitted");
  for (const other of ["notes2", "note", "Notes", "draft"]) expect(admit(holder(["notes", "draft/*"]), room(other)).kind).toBe("refused");
});

test("[IDN2] a * elsewhere than at the end is an ordinary character", () => {
  expect(admit(holder(["a*c"]), room("abc")).kind).toBe("refused");
  expect(admit(holder(["a*c"]), room("a*c")).kind).toBe("admitted");
});

test("[IDN3] a join needs the right to read; the right to write is separate", () => {
  expect(admit(holder(["*"], { read: false }), room("notes")).kind).toBe("refused");
  expect(admit(holder(["*"], { write: false }), room("notes"))).toMatchObject({ rights: { read: true, write: false } });
});

test("[IDN4] a banned user receives the reason, if there is one", () => {
  const banned = (reason: string): Identity => ({ ...holder(["*"]), restrictionIn: () => ({ level: "banned", reason }) });
  expect(admit(banned("spam"), room("notes"))).toEqual({
    kind: "refused",
    why: "banned from the room for a time: spam",
    retryAfterMs: 10_000,
  });
  expect(admit(banned(""), room("notes"))).toMatchObject({ kind: "refused", why: "banned from the room for a time" });
});
