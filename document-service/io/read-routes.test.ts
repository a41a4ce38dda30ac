import { expect, test } from "vitest";

import type { Epoch, RoomKey, Seq } from "../../shared/ids.ts";
import type { InternalResponse } from "../../shared/io/internal-http.ts";
import { FakeClock } from "../../shared/testing/fake-clock.ts";
import type { DocumentReads } from "../ports.ts";
import { type Documents, readRoutes } from "./read-routes.ts";

const ROOM = "acme.notes" as RoomKey;
const STATE = Uint8Array.of(1);
const SERVED: Documents = {
  holds: () => true,
  serve: () => Promise.resolve({ kind: "snapshot", state: STATE, position: { epoch: 1 as Epoch, seq: 5 as Seq } }),
};
const NEVER: DocumentReads = { diff: never, json: never, text: never, check: never, make: never };
function never(): never {
  throw new Error("nobody reads");
}

function reader(
  reading: Partial<DocumentReads>,
  documents: Documents = SERVED,
): (place: string, query?: string) => Promise<InternalResponse> {
  const routes = readRoutes(documents, { ...NEVER, ...reading }, { documentsAnswerMsMax: 1_000 }, new FakeClock());
  return (place, query = "") => {
    const route = routes.find((one) => one.place === place)!;
    return route.answer({
      method: "GET",
      segments: [],
      query: new URLSearchParams(query),
      tenant: "acme",
      header: () => "",
      body: () => Promise.resolve(STATE),
      room: ROOM,
      parameters: [],
      signal: new AbortController().signal,
    });
  };
}

test("[RRT1] the error for a document that cannot be read in the requested form names the alternative", async () => {
  const ask = reader({
    json: () => Promise.resolve("unreadable"),
    text: () => Promise.resolve("unreadable"),
    diff: () => Promise.resolve("unreadable"),
  });
  for (const place of ["document", "text", "diff"])
    expect(await ask(place)).toMatchObject({ status: 422, name: "unreadable", body: expect.stringContaining("fetch the snapshot") });
});

test("[RRT2] a request for one shared type as two kinds is refused, and nothing is read", async () => {
  expect(await reader({})("document", "type=a:text&type=a:array")).toMatchObject({
    status: 400,
    name: "bad-type",
    body: expect.stringContaining("each once"),
  });
});

test("[RRT3] the text without a name and the text with the empty name are cached separately", async () => {
  const asked: (string | undefined)[] = [];
  const ask = reader({ text: (_, name) => (asked.push(name), Promise.resolve({ kind: "text", text: STATE })) });
  await ask("text");
  await ask("text", "type=");
  await ask("text", "type=");
  expect(asked).toEqual([undefined, ""]);
});

test.each(["", "x", "-1", "0.5", "0x1", "1e3", "+1"])(
  "[RRT4] minSeq=%s is refused, because only decimal digits are a seq",
  async (minSeq) => {
    for (const place of ["snapshot", "document", "text"])
      expect(await reader({})(place, new URLSearchParams({ minSeq }).toString())).toMatchObject({
        status: 400,
        name: "bad-seq",
        body: expect.stringContaining("decimal digits"),
      });
  },
);
