import { expect, test } from "vitest";

import type { RoomKey } from "../../shared/ids.ts";
import type { InternalResponse } from "../../shared/io/internal-http.ts";
import { checkedEdit, editOf } from "../content.ts";
import { editOfJson } from "../json-content.ts";
import type { EditMaking } from "../ports.ts";
import { writeRoutes } from "./write-routes.ts";

const MAKING: EditMaking = {
  check: (edit) => Promise.resolve(checkedEdit(edit)),
  make: (content) => Promise.resolve(editOf(content)),
  makeOfJson: (body) => Promise.resolve(editOfJson(body)),
};
const [EDIT] = writeRoutes(MAKING);

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

test("[WRT6] JSON that is not content is refused with its first mistake, at any length", async () => {
  const refused = async (json: string): Promise<string> => {
    const { status, body } = await make(json);
    expect(status).toBe(400);
    return (JSON.parse(String(body)) as { message: string }).message;
  };
  const types = (count: number) => `{"types":{${Array.from({ length: count }, (_, index) => `"t${index}":{}`).join(",")}}}`;
  expect(await refused(types(50_000))).toBe("the JSON has 50000 shared types: send at most 100");
  expect(await refused(types(100))).toMatch(/^the JSON is not \{"types".*: types\.t0 has none of these kinds$/);
  for (const [json, mistake] of [
    ['{"types":[]}', "types is no object"],
    ["[]", "types is no object"],
    ['{"types":{"a":{"kind":"text","value":1}}}', "types.a is a text, and its value is no string"],
    ['{"types":{"a":{"kind":"array","value":{}}}}', "types.a is an array, and its value is none"],
    ['{"types":{"a":{"kind":"map","value":[]}}}', "types.a is a map, and its value is no object"],
    ['{"types":{"":{"kind":"map","value":{}}}}', "has no name of 1 to 128 characters"],
    [`{"types":{"${"n".repeat(100_000)}":null}}`, "has no name of 1 to 128 characters"],
  ] as const) {
    const message = await refused(json);
    expect(message).toContain(mistake);
    expect(message.length).toBeLessThan(200);
  }
  expect(await refused("{")).toBe("the body is no JSON");
});

test("[WRT7] content that clients would refuse as an edit is refused, although Yjs can write it", async () => {
  const json = (kind: string, value: string) => `{"types":{"name":{"kind":"${kind}","value":${value}}}}`;
  const lists = (count: number) => json("array", `[${Array(count).fill("[]").join(",")}]`);
  const map = (count: number) => json("map", `{${Array.from({ length: count }, (_, key) => `"${key}":1`).join(",")}}`);
  const refused = { status: 400, body: expect.stringContaining("more than 50000 arrays, objects and keys") };
  for (const content of [lists(50_001), map(50_001), lists(300_000)]) expect(await make(content)).toMatchObject(refused);
  // Numbers beside each other are one struct, and each number after a list is another one.
  expect((await make(json("array", `[${Array(100_000).fill(1).join(",")}]`))).status).toBe(200);
  const mixed = json("array", `[${Array(30_000).fill("[],1").join(",")}]`);
  expect(await make(mixed)).toMatchObject({ status: 400, body: expect.stringContaining("60000 structs, more than 50000") });
  expect((await make(lists(1_000))).status).toBe(200);
});
