import { Registry } from "prom-client";
import { expect, test } from "vitest";
import * as Y from "yjs";

import { type RoomId, type RoomKey, roomKey, type TenantId } from "../../shared/ids.ts";
import type { InternalResponse } from "../../shared/io/internal-http.ts";
import type { Log } from "../../shared/process/log.ts";
import { FakeClock } from "../../shared/testing/fake-clock.ts";
import { SILENT_LOG } from "../../shared/testing/silent-log.ts";
import { checkedEdit, editOf } from "../content.ts";
import { editOfJson } from "../json-content.ts";
import { documentServiceMetrics } from "../metrics.ts";
import type { ApplicationAnswer, EditMaking } from "../ports.ts";
import type { Served } from "../rooms/room-messages.ts";
import { firstContentRoutes } from "./first-content-routes.ts";
import type { RoomQuestion } from "./http.ts";

const keyOf = (name: string): RoomKey => roomKey("acme" as TenantId, name as RoomId);
const NOTES = keyOf("notes");
const NO_DOCUMENT: Served = { kind: "no-document" };

type Given = {
  readonly answer?: ApplicationAnswer;
  readonly served?: Served;
  readonly isHeld?: boolean;
  readonly hasEdit?: boolean;
};

function route({ answer = { kind: "none" }, served = NO_DOCUMENT, isHeld = true, hasEdit = false }: Given) {
  const metrics = documentServiceMetrics(new Registry());
  const asked: RoomKey[] = [];
  const release: (() => void)[] = [];
  const documents = { serve: () => Promise.resolve(served), holds: () => isHeld, hasEdit: () => Promise.resolve(hasEdit) };
  const making: EditMaking = {
    check: (edit) => Promise.resolve(checkedEdit(edit)),
    make: (content) => Promise.resolve(editOf(content)),
    makeOfJson: (body) => Promise.resolve(editOfJson(body)),
  };
  const ask = (room: RoomKey): Promise<ApplicationAnswer> => {
    asked.push(room);
    return new Promise((resolve) => release.push(() => resolve(answer)));
  };
  const logged: object[] = [];
  const log: Log = { ...SILENT_LOG, warn: (facts) => void logged.push(facts), error: (facts) => void logged.push(facts) };
  const [check, load] = firstContentRoutes(documents, making, ask, { clock: new FakeClock(), log, metrics });
  const request = (room = NOTES): Promise<InternalResponse> => load!.answer({ room } as RoomQuestion);
  const hasEdits = async (): Promise<boolean> => (await check!.answer({ room: NOTES } as RoomQuestion)).status === 409;
  return { request, hasEdits, asked, release, metrics, logged };
}

const settled = () => new Promise((resolve) => setImmediate(resolve));

async function answered(given: Given): Promise<InternalResponse> {
  const { request, release } = route(given);
  const answer = request();
  await settled();
  release[0]?.();
  return answer;
}

const content = (contentType: string, body: Uint8Array | string): ApplicationAnswer => ({
  kind: "content",
  contentType,
  content: typeof body === "string" ? new TextEncoder().encode(body) : body,
});

test("[FCD6] a Yjs update, a text and JSON become an edit", async () => {
  const doc = new Y.Doc();
  doc.getText("text").insert(0, "words");
  const json = JSON.stringify({ types: { text: { kind: "text", value: "words" } } });
  for (const answer of [
    content("application/octet-stream", Y.encodeStateAsUpdate(doc)),
    content("text/plain; charset=utf-8", "words"),
    content("application/json", json),
  ]) {
    const { status, body } = await answered({ answer });
    const made = new Y.Doc();
    Y.applyUpdate(made, body as Uint8Array);
    expect([status, made.getText("text").toString()]).toEqual([200, "words"]);
  }
});

test("[FCD7] a document without content counts as none, and an answer that makes no edit is refused with the reason", async () => {
  expect((await answered({})).status).toBe(204);
  expect((await answered({ answer: content("application/octet-stream", Y.encodeStateAsUpdate(new Y.Doc())) })).status).toBe(204);
  for (const [answer, why] of [
    [content("application/octet-stream", "no update"), /no Yjs update/],
    [content("text/html", "<p>"), /send application\/octet-stream/],
    [content("application/json", "{"), /no JSON/],
    [{ kind: "failed", why: "HTTP 500" }, /HTTP 500/],
  ] as const) {
    const { status, body } = await answered({ answer });
    expect([status, body]).toEqual([502, expect.stringMatching(why)]);
  }
});

test("[FCD8] the application is not asked for a room with an edit, a deleted room, or one that another service holds", async () => {
  const statusOf = async (given: Given) => {
    const { request, asked } = route(given);
    return [(await request()).status, asked.length];
  };
  expect(await statusOf({ hasEdit: true })).toEqual([409, 0]);
  expect(await statusOf({ served: { kind: "not-a-document" } })).toEqual([409, 0]);
  expect(await statusOf({ served: { kind: "stalled" } })).toEqual([409, 0]);
  expect(await statusOf({ served: { kind: "deleted" } })).toEqual([410, 0]);
  expect(await statusOf({ served: { kind: "loading" } })).toEqual([503, 0]);
  expect(await statusOf({ isHeld: false })).toEqual([503, 0]);
});

test("[FCD9] gateways that request a room's content at the same time share one request to the application", async () => {
  const { request, asked, release } = route({ answer: content("text/plain", "words") });
  const both = [request(), request()];
  await settled();
  release[0]!();
  const [first, second] = await Promise.all(both);
  expect([asked, first!.body]).toEqual([[NOTES], second!.body]);
  void request();
  await settled();
  expect(asked, "a later one asks again").toHaveLength(2);
});

test("[FCD10] the rooms whose content is requested are counted", async () => {
  const { request, release, metrics } = route({});
  const both = ["a", "b"].map((name) => request(keyOf(name)));
  await settled();
  const counted = async () => (await metrics.firstContents.get()).values[0]!.value;
  expect(await counted()).toBe(2);
  for (const one of release) one();
  await Promise.all(both);
  expect(await counted()).toBe(0);
});

test("[FCD12] whether a room has edits is answered by every service, without the application", async () => {
  for (const hasEdit of [true, false]) {
    const { hasEdits, asked } = route({ hasEdit, isHeld: false });
    expect([await hasEdits(), asked]).toEqual([hasEdit, []]);
  }
});

test("[FCD13] an application that fails for many rooms writes ten lines a second into the log, each with a room and the reason", async () => {
  const { request, release, logged } = route({ answer: { kind: "failed", why: "HTTP 404" } });
  const all = Array.from({ length: 50 }, (_, index) => request(keyOf(`room-${index}`)));
  await settled();
  for (const one of release) one();
  await Promise.all(all);
  expect(logged).toEqual(Array.from({ length: 10 }, (_, index) => ({ room: keyOf(`room-${index}`), why: "HTTP 404" })));
});
