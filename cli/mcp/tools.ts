/**
 * The tools that `coroom mcp` offers to a language model: list rooms, read a document, edit a text, wait for a change. Each
 * answer is JSON. A failure is an answer that states what to do, so that the model can correct its call.
 */

import { createHash, randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";

import { type CallToolResult, McpServer } from "@modelcontextprotocol/server";
import * as Y from "yjs";
import { z } from "zod";

import { BoundedMap } from "../../shared/collections/bounded-map.ts";
import { SettingError } from "../../shared/settings/settings.ts";
import { DocumentError, type DocumentsClient } from "../documents-client.ts";
import { editText, isText, type NamedType, namedTypesIn } from "./text-edits.ts";

const REPLACEMENTS_MAX = 100;
const WAIT_SECONDS_MAX = 60;
const WATCH_MS = 1_000;
const EMPTY_STATE = Y.encodeStateAsUpdate(new Y.Doc());
const EMPTY_VECTOR = Y.encodeStateVector(new Y.Doc());
/** Maximum number of rooms whose last edit by this program is remembered: at least the last 1,000 rooms. */
const WRITTEN_ROOMS_MAX = 2_000;
const BINARY = { "content-type": "application/octet-stream" };

/** A URL with `.` or `..` as the room names another path. */
const room = z
  .string()
  .min(1)
  .max(128)
  .refine((id) => id !== "." && id !== "..", "`.` and `..` are no room ids")
  .describe("Room id, which names the document.");
const text = z.string().default("text").describe("Name of the shared text (Y.Text) in the document.");
const seq = z.number().int().nonnegative();
/** Half of a surrogate pair would be stored as another character, and as a passage would cut an emoji in two. */
const passage = z.string().refine((written) => written.isWellFormed(), "contains half of a surrogate pair");

const List = z.strictObject({
  prefix: z.string().default("").describe("Beginning of the room ids."),
  after: z.string().default("").describe("`next` of the page before."),
  limit: z.number().int().min(1).max(1_000).default(100),
});
const Read = z.strictObject({
  room,
  text,
  types: z
    .array(z.string())
    .max(100)
    .default([])
    .describe("Shared types to read as JSON instead of the text, each as name:kind. Kinds: text, array, map, xml (rich text)."),
  minSeq: seq.default(0).describe("Seq of an edit that the answer must include. Edits of edit_document are always included."),
});
const Edit = z.strictObject({
  room,
  text,
  replacements: z
    .array(z.strictObject({ find: passage.min(1), replace: passage }))
    .max(REPLACEMENTS_MAX)
    .default([])
    .describe("Passages to replace, one after the other. Each must occur exactly once at its turn. An empty `replace` deletes."),
  append: passage.default("").describe("Text to append at the end."),
  key: z
    .string()
    .min(1)
    .max(200)
    .optional()
    .describe("Name of this edit. A repeated call with the same key and arguments makes the edit only once."),
});
const Watch = z.strictObject({
  room,
  text,
  afterSeq: seq.describe("Seq that is known already."),
  seconds: z.number().min(0).max(WAIT_SECONDS_MAX).default(30).describe("Maximum wait."),
});

export function mcpServer(documents: DocumentsClient, version: string): McpServer {
  const server = new McpServer({ name: "coroom", version });
  const written = new WrittenSeqs();
  const reading = { annotations: { readOnlyHint: true } } as const;

  server.registerTool(
    "list_rooms",
    {
      ...reading,
      description: "Lists the rooms that have a document, a page at a time. `next` in the answer: there are more.",
      inputSchema: List,
    },
    ({ prefix, after, limit }) =>
      answered(
        async () =>
          JSON.parse(decoded((await documents.ask(`?${new URLSearchParams({ prefix, after, limit: String(limit) })}`)).bytes)) as object,
      ),
  );

  server.registerTool(
    "read_document",
    {
      ...reading,
      description: "Reads a document's text, or other shared types as JSON, with the seq of its last edit.",
      inputSchema: Read,
    },
    (asked) => answered(() => readDocument(documents, written, asked)),
  );

  server.registerTool(
    "edit_document",
    { description: "Edits a text. Everybody in the room sees the edit, and it is stored before the answer.", inputSchema: Edit },
    (asked) => answered(() => editDocument(documents, written, asked)),
  );

  server.registerTool(
    "watch_document",
    { ...reading, description: "Waits until a document has an edit after a seq, and returns its text.", inputSchema: Watch },
    (asked, { mcpReq }) => answered(() => watchDocument(documents, asked, mcpReq.signal)),
  );
  return server;
}

/**
 * The last edit of this program in each room. A document service reads the log with a delay, so without this seq a second
 * edit could be made on a document that lacks the first, and a passage would be replaced twice.
 */
class WrittenSeqs {
  readonly #seqs = new BoundedMap<string, number>(WRITTEN_ROOMS_MAX);

  note(id: string, at: number): void {
    this.#seqs.set(id, at);
  }

  /** Calls `read` with the seq that its answer must include. A log that was lost never reaches the seq, so a failure forgets it. */
  async reading<Answer>(id: string, read: (minSeq: number) => Promise<Answer>): Promise<Answer> {
    try {
      return await read(this.#seqs.get(id) ?? 0);
    } catch (error) {
      if (error instanceof DocumentError && error.status === 503) this.#seqs.delete(id);
      throw error;
    }
  }
}

async function readDocument(documents: DocumentsClient, written: WrittenSeqs, asked: z.output<typeof Read>): Promise<object> {
  const { room: id, text: name, types } = asked;
  return written.reading(id, async (seqOfOwn) => {
    const minSeq = String(Math.max(asked.minSeq, seqOfOwn));
    if (types.length === 0) {
      const { seq: at, bytes } = await askText(documents, id, name, { minSeq });
      return { room: id, seq: at, text: decoded(bytes) };
    }
    const query = new URLSearchParams([...types.map((type) => ["type", type]), ["minSeq", minSeq]]);
    const { seq: at, bytes } = await documents.ask(`${pathOf(id)}/document?${query}`);
    return { room: id, seq: at, ...(JSON.parse(decoded(bytes)) as object) };
  });
}

/** The gateway names the texts in terms of HTTP. A model needs them in terms of its tool. */
async function askText(
  documents: DocumentsClient,
  id: string,
  name: string,
  query: Readonly<Record<string, string>>,
  headers: Readonly<Record<string, string>> = {},
): ReturnType<DocumentsClient["ask"]> {
  try {
    return await documents.ask(`${pathOf(id)}/text?${new URLSearchParams({ type: name, ...query })}`, { headers });
  } catch (error) {
    if (!(error instanceof DocumentError) || error.code !== "no-such-text") throw error;
    const types = namedTypesIn((await newestState(documents, id, 0)) ?? EMPTY_STATE);
    const texts = types.filter((type) => isText(type) || type.kind === "xml");
    throw new DocumentError(404, noSuchText(name, texts, types));
  }
}

/** `texts`: those of the types that the tool can use as a text. */
function noSuchText(name: string, texts: readonly NamedType[], types: readonly NamedType[]): string {
  const others = types.filter((type) => !texts.includes(type));
  const usable = texts.length === 0 ? "" : ` Set \`text\` to one of: ${texts.map((type) => type.name).join(", ")}.`;
  const readable = others.map((type) => JSON.stringify(`${type.name}:${type.kind}`)).join(", ");
  const unusable = others.length === 0 ? "" : ` read_document reads its other types: set \`types\` to [${readable}].`;
  return `the document has no text ${JSON.stringify(name)} for this tool.${usable}${unusable}`;
}

async function editDocument(documents: DocumentsClient, written: WrittenSeqs, asked: z.output<typeof Edit>): Promise<object> {
  const { room: id, text: name, replacements, append, key = randomUUID() } = asked;
  if (replacements.length === 0 && append === "") throw new DocumentError(400, "there is nothing to edit: give `replacements` or `append`");
  const state = await written.reading(id, (minSeq) => newestState(documents, id, minSeq));
  const call = JSON.stringify([id, key, name, replacements, append]); // With other arguments it is another edit, for which the gateway refuses the key.
  const edited = editText(state, name, { key: call, replacements, append });
  switch (edited.kind) {
    case "edited": {
      const digest = createHash("sha256").update(key).digest("base64url"); // A header has no letters beyond Latin-1.
      const headers = { ...BINARY, "idempotency-key": `mcp ${digest}` };
      const { seq: at } = await documents.ask(`${pathOf(id)}/edits`, { method: "POST", headers, body: Buffer.from(edited.update) });
      if (at !== undefined) written.note(id, at);
      return { room: id, seq: at, text: edited.text };
    }
    case "repeated":
      return { room: id, isRepeated: true, text: edited.text };
    case "no-such-text":
      throw new DocumentError(404, noSuchText(name, edited.types.filter(isText), edited.types));
    case "not-once":
      throw new DocumentError(
        409,
        `${JSON.stringify(edited.find)} occurs ${edited.times} times. Read the document, and give a passage that occurs exactly once`,
      );
  }
}

/** Undefined: the room has no edit yet. */
async function newestState(documents: DocumentsClient, id: string, minSeq: number): Promise<Uint8Array | undefined> {
  if (minSeq > 0) return (await documents.ask(`${pathOf(id)}/snapshot?minSeq=${minSeq}`)).bytes;
  try {
    return (await documents.ask(`${pathOf(id)}/diff`, { method: "POST", headers: BINARY, body: Buffer.from(EMPTY_VECTOR) })).bytes;
  } catch (error) {
    if (error instanceof DocumentError && error.status === 404) return undefined;
    throw error;
  }
}

/** `signal`: fires when the call is cancelled, or when the client is gone. */
async function watchDocument(documents: DocumentsClient, asked: z.output<typeof Watch>, signal: AbortSignal): Promise<object> {
  const { room: id, text: name, afterSeq, seconds } = asked;
  const until = performance.now() + seconds * 1_000;
  for (let etag = ""; ; await sleep(WATCH_MS, undefined, { signal })) {
    const headers: Record<string, string> = etag === "" ? {} : { "if-none-match": etag };
    const answer = await askText(documents, id, name, {}, headers);
    etag = answer.etag;
    const at = answer.seq ?? 0;
    if (answer.status === 200 && at > afterSeq) return { room: id, seq: at, text: decoded(answer.bytes) };
    if (performance.now() >= until) return { room: id, seq: at, hasChanged: false };
  }
}

async function answered(make: () => Promise<object>): Promise<CallToolResult> {
  try {
    return { content: [{ type: "text", text: JSON.stringify(await make()) }] };
  } catch (error) {
    if (!(error instanceof DocumentError) && !(error instanceof SettingError)) throw error;
    return { isError: true, content: [{ type: "text", text: error.message }] };
  }
}

function pathOf(id: string): string {
  return `/${encodeURIComponent(id)}`;
}

function decoded(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes);
}
