import { expect, test } from "vitest";

import type { RoomKey } from "../../shared/ids.ts";
import type { InternalResponse } from "../../shared/io/internal-http.ts";
import { editOf } from "../content.ts";
import type { DocumentReads } from "../ports.ts";
import { writeRoutes } from "./write-routes.ts";

const READING = { make: (content) => Promise.resolve(editOf(content)) } as Partial<DocumentReads> as DocumentReads;
const [EDIT] = writeRoutes(READING);

function make(content: string | Uint8Array, type = "application/json", query = ""): Promise<InternalResponse> {
  const header = (name: string) => (name === "content-type" ? type : "");
  const body = () => Promise.resolve(typeof content === "string" ? new TextEncoder().encode(content) : content);
  return EDIT!.answer({
    method: "POST",
    segments: [],
    query: new URLSearchParams(query),
    tenant: "acme",
    header,
    body,
    room: "acme.notes" as RoomKey,
    parameters: [],
    signal: new AbortController().signal,
  });
}

/** `levels` nested arrays and objects; four of them surround the value. */
function nested(levels: number): string {
  return `{"types":{"list":{"kind":"array","value":[${"[".repeat(levels - 4)}${"]".repeat(levels - 4)}]}}}`;
}

test("[WRT1] content with the maximum nesting becomes an edit; one level more, or a million, is refused with the limit", async () => {
  expect((await make(nested(100))).status).toBe(200);
  for (const levels of [1_000_000, 101])
    expect(await make(nested(levels))).toMatchObject({
      status: 400,
      name: "bad-content",
      body: expect.stringContaining("more than 100 deep"),
    });
});

test("[WRT2] a body over its maximum length is refused with the limit", async () => {
  const question = {
    method: "POST",
    segments: [],
    query: new URLSearchParams(),
    tenant: "acme",
    header: () => "",
    body: () => Promise.resolve(undefined),
    room: "acme.notes" as RoomKey,
    parameters: [],
    signal: new AbortController().signal,
  };
  expect(await EDIT!.answer(question)).toMatchObject({ status: 413, name: "too-large" });
});

test("[WRT3] a body that is no UTF-8, or declares another charset, is refused and not stored with other characters", async () => {
  const latin = new Uint8Array([0x63, 0x61, 0x66, 0xe9]);
  for (const type of ["text/plain", "application/json"])
    expect(await make(latin, type)).toMatchObject({ status: 400, body: expect.stringContaining("UTF-8") });
  expect(await make("café", "text/plain; charset=iso-8859-1")).toMatchObject({ status: 415, body: expect.stringContaining("iso-8859-1") });
  for (const type of ["text/plain; charset=UTF-8", 'text/plain;charset="utf-8"', "text/plain"])
    expect((await make("café", type)).status).toBe(200);
});

test("[WRT4] a key that cannot be stored is refused, not dropped", async () => {
  const json = '{"types":{"settings":{"kind":"map","value":{"kept":1,"inner":{"__proto__":{"lost":1}}}}}}';
  expect(await make(json)).toMatchObject({ status: 400, body: expect.stringContaining("__proto__") });
});

test("[WRT5] the name of a plain text follows the rule of names in JSON", async () => {
  const named = async (name: string): Promise<number> => (await make("content", "text/plain", `type=${name}`)).status;
  expect([await named("a".repeat(128)), await named("t%C3%A4xt")]).toEqual([200, 200]);
  expect([await named("a".repeat(129)), await named(""), await named("__proto__")]).toEqual([400, 400, 400]);
});
