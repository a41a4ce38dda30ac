/** Each example works as its README describes, on a whole system. */

import { randomBytes } from "node:crypto";
import { connect } from "node:net";
import { resolve } from "node:path";

import type { Browser } from "playwright-core";
import { createServer, type ViteDevServer } from "vite";
import { afterAll, beforeAll, expect, test } from "vitest";
import * as Y from "yjs";

import { CoroomProvider } from "../client/index.ts";
import { claimPort } from "../engines/free-port.ts";
import { DemoSystem, FIRST_START_MS_MAX, openBrowser } from "../test/system/browser.ts";
import { eventually } from "../test/system/eventually.ts";
import { Program, READY_MS_MAX } from "./program.ts";

const secret = randomBytes(32).toString("hex");

let system: DemoSystem;
let tokens: Program;
let env: Record<string, string>;
beforeAll(async () => {
  system = await DemoSystem.start({ JWT_SECRET: secret });
  const port = await claimPort(0, "127.0.0.1", "port");
  env = { TOKEN_URL: `http://127.0.0.1:${port}/token`, SERVER_URL: system.url.replace("http", "ws"), SERVER_HTTP_URL: system.url };
  tokens = new Program("token-server.js", [], { COROOM_JWT_SECRET: secret, PORT: String(port) });
  await tokens.prints("tokens at");
}, FIRST_START_MS_MAX);
afterAll(async () => {
  tokens.stop();
  await tokens.exited();
  await system.stop();
});

test("[EXA1] a document that a backend creates and edits is read as it was written, and created once", async () => {
  const run = async (): Promise<string> => {
    const program = new Program("from-a-backend.js", [], env);
    expect(await program.exited()).toBe(0);
    return program.printed;
  };
  expect(await run()).toBe("the document is made\nFrom the backend\nAgenda\n\n");
  expect(await run()).toBe("the document is made\nFrom the backend\nFrom the backend\nAgenda\n\n");
});

test("[EXA4] no request ends the token server, and a request that it cannot serve receives no token", async () => {
  const { hostname, port } = new URL(env["TOKEN_URL"]!);
  const line = connect(Number(port), hostname);
  line.end("GET // HTTP/1.1\r\nHost: h\r\n\r\n");
  line.resume();
  await new Promise((closed) => line.once("close", closed));
  expect((await fetch(`${env["TOKEN_URL"]}?user=x`)).status).toBe(200);
  const lost = new Program("notes.js", ["fay"], { ...env, TOKEN_URL: `http://127.0.0.1:${port}/nothing` });
  await lost.prints("(waiting: the application's token function failed: cannot get a token: HTTP 404)");
  lost.stop();
  await lost.exited();
});

test("[EXA16] an agent without a token states why it waits", async () => {
  const agent = new Program("agent.js", ["muse"], { ...env, TOKEN_URL: `${env["TOKEN_URL"]}/nothing` });
  await agent.prints("waiting: the application's token function failed: cannot get a token: HTTP 404");
  agent.stop();
  await agent.exited();
});

test("[EXA2] two command-line clients see each other and each other's text", async () => {
  const [ada, ben] = [new Program("notes.js", ["ada"], env), new Program("notes.js", ["ben"], env)];
  await Promise.all([ada, ben].map((one) => one.prints("(connected)")));
  await ada.prints("ben");
  ada.type("first from ada");
  await ben.prints("first from ada");
  ben.type("then from ben");
  await ada.prints("then from ben");
  expect(await Promise.all([ada.end(), ben.end()])).toEqual([0, 0]);
});

test("[EXA10] an agent streams text behind the others' with a caret that moves, and stops when somebody edits its text", async () => {
  const doc = new Y.Doc();
  const text = doc.getText("text");
  const token = await (await fetch(`${env["TOKEN_URL"]}?user=gus`)).text();
  const gus = new CoroomProvider({ url: env["SERVER_URL"]!, room: "notes", doc, token });
  const agent = new Program("agent.js", ["muse"], env);
  try {
    await eventually("gus has the text", () => gus.synced, READY_MS_MAX);
    text.insert(0, "My part. ");
    const caret = (): number | undefined => {
      const states = [...gus.awareness.getStates().values()] as { user?: { name: string }; cursor?: { head: unknown } }[];
      const head = states.find(({ user }) => user?.name === "muse")?.cursor?.head;
      return head === undefined
        ? undefined
        : Y.createAbsolutePositionFromRelativePosition(Y.createRelativePositionFromJSON(head), doc)?.index;
    };
    await eventually("its caret is at the end", () => caret() === text.length, READY_MS_MAX);
    for (const piece of ["Once upon ", "a time "]) {
      agent.write(piece);
      await eventually("gus reads it, with the caret behind it", () => text.toString().endsWith(piece) && caret() === text.length);
    }
    text.insert(0, "Before it. "); // Elsewhere in the text.
    agent.write("there was ");
    await eventually("it goes on", () => text.toString().endsWith("Once upon a time there was ") && caret() === text.length);
    text.insert(text.length - "was ".length, "really ");
    await eventually("the edit is saved", () => gus.saved);
    await eventually("it stops", () => (agent.write("a king "), agent.printed.includes("stopped")), READY_MS_MAX);
    expect(await agent.exited()).toBe(0);
    await eventually("its caret is gone", () => caret() === undefined);
    expect(text.toString()).toContain("Once upon a time there really was ");
  } finally {
    gus.destroy();
    await agent.end();
  }
});

test("[EXA3] the page and the command line show each other's text, with any line ending", async () => {
  let page: ViteDevServer | undefined;
  let browser: Browser | undefined;
  const cleo = new Program("notes.js", ["cleo"], env);
  try {
    const { TOKEN_URL } = env;
    page = await createServer({
      root: resolve("examples/codemirror"),
      configFile: false,
      logLevel: "error",
      cacheDir: resolve(system.folder, "vite"),
      server: { port: 0, host: "127.0.0.1", proxy: { "/token": new URL(TOKEN_URL!).origin } },
    });
    await page.listen();
    browser = await openBrowser();
    const tab = await browser.newPage();
    tab.setDefaultTimeout(READY_MS_MAX);
    await tab.goto(`${page.resolvedUrls!.local[0]!}?user=dan&coroom=${env["SERVER_URL"]}`);
    await eventually(
      "both are there",
      async () => /cleo/.test(await tab.innerText("#here")) && /dan/.test(await tab.innerText("#here")),
      READY_MS_MAX,
    );
    cleo.type("from the command line");
    await eventually("it is on the page", async () => (await tab.innerText(".cm-content")).includes("from the command line"), READY_MS_MAX);
    await tab.locator(".cm-content").pressSequentially("from the page ");
    await cleo.prints("from the page");
    const other = await browser.newPage();
    other.setDefaultTimeout(READY_MS_MAX);
    await other.goto(`${page.resolvedUrls!.local[0]!}?user=eve&coroom=${env["SERVER_URL"]}`);
    await tab.locator(".cm-content").focus();
    await eventually(
      "the other page shows whose caret it is",
      async () => (await other.locator(".cm-ySelectionInfo").allTextContents()).includes("dan"),
      READY_MS_MAX,
    );
    await eventually("it is saved", async () => (await tab.innerText("#status")) === "saved", READY_MS_MAX);
    const url = `${env["SERVER_HTTP_URL"]}/v1/rooms/notes`;
    const headers = { authorization: `Bearer ${await (await fetch(`${env["TOKEN_URL"]}?user=cleo`)).text()}` };
    const doc = new Y.Doc();
    doc.getText("text").insert(0, "\r\none\r\ntwo\r\n");
    const body = new Uint8Array(Y.encodeStateAsUpdate(doc));
    const post = { method: "POST", headers: { ...headers, "content-type": "application/octet-stream" }, body };
    await eventually("a backend's edit is taken", async () => (await fetch(`${url}/edits`, post)).ok, READY_MS_MAX);
    await tab.locator(".cm-line", { hasText: /^one/ }).click();
    for (const key of ["End", "!", "ArrowRight", "2"]) await tab.locator(".cm-content").press(key);
    const text = async (): Promise<string> => (await fetch(`${url}/text`, { headers })).text();
    await eventually("no caret came between the two", async () => (await text()).includes("\r\none!\r\n2two\r\n"), READY_MS_MAX);
  } finally {
    await browser?.close();
    await page?.close();
    await cleo.end();
  }
});
