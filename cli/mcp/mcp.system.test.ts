/** `coroom mcp` as a language model's program uses it: the protocol's own client over stdio, against a complete Coroom. */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { resolve } from "node:path";

import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { afterAll, beforeAll, expect, test } from "vitest";
import * as Y from "yjs";

import { SystemCluster } from "../../test/system/cluster.ts";
import { eventually } from "../../test/system/eventually.ts";
import { Person } from "../../test/system/person.ts";

let cluster: SystemCluster;
let client: Client;

beforeAll(async () => {
  cluster = await SystemCluster.start({ gateways: 1, roomServers: 1 });
  const token = await cluster.token("*", "muse", { rights: ["read", "write", "admin"] });
  client = new Client({ name: "test", version: "1" });
  const args = [resolve("dist/cli/main.js"), "mcp", "--url", cluster.gateways[0]!.httpUrl, "--token", token];
  await client.connect(new StdioClientTransport({ command: process.execPath, args }));
});
afterAll(async () => {
  await client?.close();
  await cluster?.stop();
});

type Answer = {
  readonly seq?: number;
  readonly text?: string;
  readonly rooms?: readonly { room: string }[];
  readonly [name: string]: unknown;
};

async function callTool(name: string, given: Record<string, unknown>): Promise<Answer | string> {
  const { content, isError } = await client.callTool({ name, arguments: given });
  const [first] = content as readonly { readonly type: string; readonly text: string }[];
  return isError === true ? first!.text : (JSON.parse(first!.text) as Answer);
}

test("[MCP4] the tools are described, and a model edits, reads, lists and watches a document together with people", async () => {
  const { tools } = await client.listTools();
  expect(tools.map(({ name }) => name).sort()).toEqual(["edit_document", "list_rooms", "read_document", "watch_document"]);
  const ann = await Person.enter(cluster, cluster.gateways[0]!, "story", "ann", { merging: false });
  try {
    const written = (await callTool("edit_document", { room: "story", append: "Once upon a time.", text: "text" })) as Answer;
    expect(written).toMatchObject({ room: "story", seq: 1, text: "Once upon a time." });
    await eventually("ann sees it", () => ann.doc.getText("text").toString() === "Once upon a time.");

    const watching = callTool("watch_document", { room: "story", afterSeq: 1, seconds: 60 });
    const replaced = await callTool("edit_document", { room: "story", replacements: [{ find: "a time", replace: "two times" }] });
    expect(replaced).toMatchObject({ seq: 2, text: "Once upon two times." });
    expect(await watching).toMatchObject({ room: "story", seq: 2, text: "Once upon two times." });
    expect(await callTool("watch_document", { room: "story", afterSeq: 2, seconds: 0 })).toMatchObject({ seq: 2, hasChanged: false });

    expect(await callTool("read_document", { room: "story", minSeq: 2 })).toEqual({ room: "story", seq: 2, text: "Once upon two times." });
    expect(await callTool("read_document", { room: "story", minSeq: 2, types: ["text:text"] })).toMatchObject({
      types: { text: { kind: "text", value: "Once upon two times." } },
    });
    expect(((await callTool("list_rooms", { prefix: "st" })) as Answer).rooms).toMatchObject([{ room: "story", seq: 2 }]);
  } finally {
    ann.leave();
  }
});

test("[MCP8] an edit begins at the edits of this program, however late the document service reads the log", async () => {
  expect(await callTool("edit_document", { room: "pairs", append: "Hello world" })).toMatchObject({ seq: 1 });
  const greeting = { room: "pairs", replacements: [{ find: "world", replace: "there" }] };
  expect(await callTool("edit_document", greeting)).toMatchObject({ seq: 2, text: "Hello there" });
  expect(await callTool("edit_document", greeting)).toMatch(/"world" occurs 0 times/);
  expect(await callTool("read_document", { room: "pairs" })).toMatchObject({ seq: 2, text: "Hello there" });
});

test("[MCP9] the rich text of an editor is read, never edited as a text", async () => {
  const ann = await Person.enter(cluster, cluster.gateways[0]!, "rich", "ann", { merging: false });
  try {
    const paragraph = new Y.XmlElement("paragraph");
    paragraph.insert(0, [new Y.XmlText("Agenda")]);
    const page = new Y.Doc();
    page.getXmlFragment("default").insert(0, [paragraph]);
    ann.type(Y.encodeStateAsUpdate(page));
    await ann.untilSaved();
    expect(await callTool("read_document", { room: "rich", minSeq: 1 })).toMatch(/no text "text".*Set `text` to one of: default/);
    expect(await callTool("edit_document", { room: "rich", append: "x" })).toMatch(/no text "text".*\["default:xml"\]/);
    expect(await callTool("edit_document", { room: "rich", text: "default", append: "x" })).toMatch(/no text "default"/);
    expect(await callTool("read_document", { room: "rich", text: "default" })).toMatchObject({
      seq: 1,
      text: "<paragraph>Agenda</paragraph>",
    });
  } finally {
    ann.leave();
  }
});

test("[MCP5] a repeated call with one key makes its edit once, and each failure states what to do", async () => {
  const call = { room: "letter", append: "Dear Ada", key: "première ligne 一" };
  expect(await callTool("edit_document", call)).toMatchObject({ seq: 1, text: "Dear Ada" });
  expect(await callTool("edit_document", call)).toMatchObject({ room: "letter", text: "Dear Ada" });
  expect(await callTool("read_document", { room: "letter", minSeq: 1 })).toMatchObject({ seq: 1, text: "Dear Ada" });
  expect(await callTool("edit_document", { room: "letter", replacements: [{ find: "Bob", replace: "Eve" }] })).toMatch(
    /occurs 0 times. Read the/,
  );
  expect(await callTool("edit_document", { room: "letter", text: "body", append: "x" })).toMatch(/no text "body".*one of: text/);
  expect(await callTool("edit_document", { room: "letter" })).toMatch(/nothing to edit/);
  expect(await callTool("read_document", { room: "nothing" })).toMatch(/never had an edit/);
});

test("[MCP13] a watch ends when its client is gone, and so does the program", async () => {
  const token = await cluster.token("*", "muse");
  const args = [resolve("dist/cli/main.js"), "mcp", "--url", cluster.gateways[0]!.httpUrl, "--token", token];
  const program = spawn(process.execPath, args, { stdio: ["pipe", "pipe", "inherit"] });
  const call = (id: number, method: string, params: object): boolean =>
    program.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id, method, params })}\n`);
  expect(await callTool("edit_document", { room: "left", append: "x" })).toMatchObject({ seq: 1 });
  call(1, "initialize", { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "test", version: "1" } });
  await once(program.stdout, "data");
  call(2, "tools/call", { name: "watch_document", arguments: { room: "left", afterSeq: 1, seconds: 60 } });
  call(3, "ping", {});
  await once(program.stdout, "data");
  program.stdin.end();
  const halfAsLong = callTool("watch_document", { room: "left", afterSeq: 1, seconds: 30 });
  expect(await Promise.race([once(program, "exit"), halfAsLong])).toEqual([0, null]);
});

test("[MCP11] a key that named another edit is refused, so that no edit is dropped under the answer of another one", async () => {
  const call = { room: "reused", append: "first", key: "k" };
  expect(await callTool("edit_document", call)).toMatchObject({ text: "first" });
  expect(await callTool("edit_document", { ...call, append: " second" })).toMatch(/another request was sent with this Idempotency-Key/);
  expect(await callTool("read_document", { room: "reused" })).toMatchObject({ text: "first" });
});

test("[MCP12] an argument that would change another text than the one meant is refused", async () => {
  expect(await callTool("edit_document", { room: "strict", append: "x", type: "title" })).toMatch(/Unrecognized key.*type/);
  expect(await callTool("read_document", { room: ".." })).toMatch(/no room ids/);
  expect(await callTool("edit_document", { room: "strict", append: "😀".slice(0, 1) })).toMatch(/half of a surrogate pair/);
  expect(await callTool("edit_document", { room: "strict", append: "😀" })).toMatchObject({ seq: 1, text: "😀" });
  expect(await callTool("edit_document", { room: "strict", replacements: [{ find: "😀".slice(1), replace: "" }] })).toMatch(/half of a/);
});

test("[MCP10] the program succeeds when its input ends, also if the input is a file, as for a service", async () => {
  const program = spawn(process.execPath, [resolve("dist/cli/main.js"), "mcp", "--token", "t"], { stdio: ["ignore", "ignore", "inherit"] });
  expect(await once(program, "exit")).toEqual([0, null]);
});
