/**
 * Two people use each editor example in Chromium, and CodeMirror and TipTap also in Firefox. Their texts converge. Each sees the other's caret with the name. Undo
 * removes only one's own edits. Text that was typed without a connection arrives after the reconnect.
 */

import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { resolve } from "node:path";

import vue from "@vitejs/plugin-vue";
import type { Browser, BrowserContext, Page } from "playwright-core";
import type { FunctionComponent } from "react";
import { createServer, type ViteDevServer } from "vite";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import * as Y from "yjs";

import { CoroomProvider } from "../client/index.ts";
import { EngineError } from "../engines/engine-error.ts";
import { claimPort } from "../engines/free-port.ts";
import { accessibilityViolations } from "../test/system/accessibility.ts";
import { Cable } from "../test/system/browser-cable.ts";
import { DemoSystem, FIRST_START_MS_MAX, openBrowser } from "../test/system/browser.ts";
import { eventually } from "../test/system/eventually.ts";
import { Firefox, type EditorPage } from "../test/system/firefox.ts";
import { Program, READY_MS_MAX } from "./program.ts";

type EditorExample = {
  readonly name: string;
  /** The element in which people type. */
  readonly input: string;
  /** The element that contains the text. */
  readonly text: string;
  /** The element that shows the name at another person's caret. */
  readonly caret: string;
};

const EXAMPLES: readonly EditorExample[] = [
  { name: "codemirror", input: ".cm-content", text: ".cm-line", caret: ".cm-ySelectionInfo" },
  { name: "tiptap", input: ".tiptap", text: ".tiptap p", caret: ".collaboration-carets__label" },
  { name: "vue", input: ".tiptap", text: ".tiptap p", caret: ".collaboration-carets__label" },
  { name: "prosemirror", input: ".ProseMirror", text: ".ProseMirror p", caret: ".ProseMirror-yjs-cursor > div" },
  { name: "blocknote", input: ".bn-editor", text: ".bn-inline-content", caret: ".bn-collaboration-cursor__label" },
  { name: "lexical", input: "[contenteditable]", text: "[contenteditable] p", caret: ".editor span" },
  { name: "quill", input: ".ql-editor", text: ".ql-editor p", caret: ".ql-cursor-name" },
  {
    name: "monaco",
    input: ".monaco-editor .inputarea, .monaco-editor .native-edit-context",
    text: ".view-line",
    caret: "[class*=yRemoteSelectionHead-]",
  },
  { name: "textarea", input: "textarea", text: "textarea", caret: "#carets" },
];

/** The examples that a second browser engine runs as well: one editor with its own input handling, and one on ProseMirror. */
const IN_FIREFOX: ReadonlySet<string> = new Set(["codemirror", "tiptap"]);

/** Not installed here: see `examples/README.md`. */
const NEXT_VERSION = "^16.4.6";

/** The number of letters that ada types. */
const UNDO_PRESSES = 10;

type PackageFile = {
  readonly version: string;
  readonly dependencies: Readonly<Record<string, string>>;
  readonly devDependencies: Readonly<Record<string, string>>;
};

/** The element into which Vue has mounted an application. */
type VueRoot = Element & { readonly __vue_app__: { unmount(): void } };

let system: DemoSystem;
let tokens: Program;
let pages: ViteDevServer;
let browser: Browser;

beforeAll(async () => {
  const secret = randomBytes(32).toString("hex");
  const port = await claimPort(0, "127.0.0.1", "port");
  tokens = new Program("token-server.js", [], { COROOM_JWT_SECRET: secret, PORT: String(port) });
  [system, browser] = await Promise.all([DemoSystem.start({ JWT_SECRET: secret }), openBrowser(), tokens.prints("tokens at")]);
  pages = await createServer({
    root: resolve("examples"),
    configFile: false,
    logLevel: "error",
    cacheDir: resolve(system.folder, "vite"),
    optimizeDeps: { entries: ["*/*.html", "nextjs/app/notes.jsx"] }, // A dependency that Vite finds later reloads all pages.
    server: { port: 0, host: "127.0.0.1", proxy: { "/token": `http://127.0.0.1:${port}` } },
    plugins: [
      vue(),
      {
        name: "next",
        configureServer: (server) =>
          void server.middlewares.use((request, response, next) => {
            const { pathname, searchParams } = new URL(request.originalUrl ?? "", "http://localhost");
            if (pathname === "/nextjs/")
              renderNext(server, searchParams).then((page) => response.setHeader("content-type", "text/html").end(page), next);
            else next();
          }),
      },
    ],
  });
  await pages.listen();
}, FIRST_START_MS_MAX);
afterAll(async () => {
  await browser?.close();
  await pages?.close();
  tokens?.stop();
  await tokens?.exited();
  await system?.stop();
});

/** What Next.js does with the example's page: the server renders components, and the browser completes them. */
async function renderNext(server: ViteDevServer, search: URLSearchParams): Promise<string> {
  const props = { user: search.get("user"), url: search.get("coroom") };
  const [{ createElement }, { renderToString }, { Notes }] = await Promise.all([
    import("react"),
    import("react-dom/server"),
    server.ssrLoadModule("/nextjs/app/notes.jsx") as Promise<{ Notes: FunctionComponent<typeof props> }>,
  ]);
  const markup = renderToString(createElement(Notes, props));
  // The same for all users, because Vite keeps one script for an address, whatever its query.
  const script = `import { createElement } from "react";
    import { hydrateRoot } from "react-dom/client";
    import { Notes } from "/nextjs/app/notes.jsx";
    const search = new URLSearchParams(location.search);
    const props = { user: search.get("user"), url: search.get("coroom") };
    hydrateRoot(document.querySelector("#root"), createElement(Notes, props));`;
  const page = `<!doctype html><link rel="icon" href="data:," /><h1>Notes</h1><div id="root">${markup}</div><script type="module">${script}</script>`;
  return server.transformIndexHtml("/nextjs/", page);
}

const addressOf = (example: EditorExample, search: Readonly<Record<string, string>>): string =>
  `${pages.resolvedUrls!.local[0]!}${example.name}/?${new URLSearchParams(search)}`;

/** One context for each user, like a browser: its cache has the packages that several examples load. */
const contexts = new Map<string, Promise<BrowserContext>>();

async function newPage(user: string): Promise<Page> {
  const context = contexts.get(user) ?? browser.newContext();
  contexts.set(user, context);
  return (await context).newPage();
}

class Person<P extends EditorPage = Page> {
  readonly page: P;
  readonly #example: EditorExample;

  private constructor(page: P, example: EditorExample) {
    this.page = page;
    this.#example = example;
  }

  static async open(example: EditorExample, user: string, coroom: string, more: Readonly<Record<string, string>> = {}): Promise<Person> {
    return Person.inChromium(await newPage(user), example, user, addressOf(example, { user, coroom, ...more }));
  }

  static async inChromium(page: Page, example: EditorExample, user: string, url: string): Promise<Person> {
    page.setDefaultTimeout(READY_MS_MAX);
    const person = await Person.inPage(page, example, user, url);
    await page.waitForLoadState("networkidle"); // BlockNote replaces its plugins when its menus are loaded.
    return person;
  }

  static async inPage<P extends EditorPage>(page: P, example: EditorExample, user: string, url: string): Promise<Person<P>> {
    await page.goto(url);
    const person = new Person(page, example);
    await eventually(`${user} has joined`, async () => (await person.reads("#here")).includes(user), READY_MS_MAX);
    await eventually("the editor is shown", () => page.evaluate(isInPage, example.input), READY_MS_MAX);
    return person;
  }

  async typesAtEnd(text: string): Promise<void> {
    await this.page.evaluate(focusOn, this.#example.input);
    // An editor that draws another's change at the moment of the key puts the caret back to its former place.
    await eventually("the caret is at the end", async () => {
      await this.page.keyboard.press("Control+End");
      return this.page.evaluate(isCaretAtEnd, this.#example);
    });
    await this.page.keyboard.type(text, { delay: 20 });
  }

  /** Slow typing makes several undo steps. More presses than steps change nothing. */
  async undoesAll(): Promise<void> {
    await this.page.evaluate(focusOn, this.#example.input);
    for (let press = 0; press < UNDO_PRESSES; press++) await this.page.keyboard.press("Control+z");
  }

  /** The text of all blocks without carets, with simple spaces. BlockNote begins a new block at the end of the document. */
  async text(): Promise<string> {
    const lines = await this.page.evaluate(
      ({ text, caret }) =>
        [...document.querySelectorAll(text)].map((part) => {
          if (part instanceof HTMLTextAreaElement) return part.value;
          const copy = part.cloneNode(true) as Element;
          for (const drawn of copy.querySelectorAll(`${caret}, .cm-ySelectionCaret, .ProseMirror-widget`)) drawn.remove();
          return copy.textContent;
        }),
      this.#example,
    );
    return lines
      .join("")
      .replace(/[\u2060\uFEFF\u200B]/g, "")
      .replaceAll("\u00A0", " ")
      .trim();
  }

  /** The names at carets of other people, also those that a style adds. */
  caretNames(): Promise<string> {
    return this.page.evaluate(
      (carets) =>
        [...document.querySelectorAll(carets)]
          .map((caret) => `${caret.textContent} ${getComputedStyle(caret, "::after").content}`)
          .join(" "),
      this.#example.caret,
    );
  }

  /** The text of an element, and nothing before the element exists. */
  reads(selector: string): Promise<string> {
    return this.page.evaluate((found) => document.querySelector<HTMLElement>(found)?.innerText ?? "", selector);
  }

  async hasSaved(): Promise<void> {
    await eventually("it is saved", async () => (await this.reads("#status")) === "saved", READY_MS_MAX);
  }
}

const isInPage = (selector: string): boolean => document.querySelector(selector) !== null;
const focusOn = (selector: string): void => document.querySelector<HTMLElement>(selector)!.focus();

/** Runs in the page, after the editor has read the caret's new place. Monaco shows its text outside of its input. */
async function isCaretAtEnd({ input: selector, caret }: EditorExample): Promise<boolean> {
  const input = document.querySelector(selector)!;
  for (let frame = 0; frame < 2; frame++) await new Promise(requestAnimationFrame);
  if (input instanceof HTMLTextAreaElement) return input.selectionStart === input.value.length;
  const { focusNode, focusOffset } = getSelection()!;
  if (focusNode === null || !input.contains(focusNode)) return false;
  const rest = document.createRange();
  rest.selectNodeContents(input);
  rest.setStart(focusNode, focusOffset);
  const behind = rest.cloneContents();
  for (const drawn of behind.querySelectorAll(caret)) drawn.remove();
  return behind.textContent.replace(/[\u2060\uFEFF\u200B]/g, "").trim() === "";
}

test.each(EXAMPLES.map((example) => [example.name, example] as const))(
  "[EXA5] %s: two people converge, see each other's caret, undo their own edits, and type offline",
  (_name, example) => writeTogether(example, (user, coroom) => Person.open(example, user, coroom)),
);

describe("in Firefox", () => {
  /** Why there is none, as on a system without Debian's packages. */
  let firefox: Firefox | EngineError;

  beforeAll(async () => {
    firefox = await Firefox.start().catch((error: unknown) => {
      if (error instanceof EngineError && error.kind === "binary-missing") return error;
      throw error;
    });
  }, FIRST_START_MS_MAX);
  afterAll(() => (firefox instanceof Firefox ? firefox.close() : undefined));

  test.for(EXAMPLES.filter(({ name }) => IN_FIREFOX.has(name)).map((example) => [example.name, example] as const))(
    "[EXA13] %s: two people converge, see each other's caret, undo their own edits, and type offline",
    async ([, example], { skip }) => {
      if (firefox instanceof EngineError) return skip(firefox.message);
      const running = firefox;
      await writeTogether(example, async (user, coroom) =>
        Person.inPage(await running.newPage(), example, user, addressOf(example, { user, coroom })),
      );
    },
  );
});

/** The text that an earlier test left in the room of an example. */
const leftTexts = new Map<string, string>();

/** `open` opens the page of a user that connects to the given address. */
async function writeTogether<P extends EditorPage>(
  example: EditorExample,
  open: (user: string, coroom: string) => Promise<Person<P>>,
): Promise<void> {
  const before = leftTexts.get(example.name) ?? "";
  const { cable, url } = await Cable.to(system.url);
  const [ada, ben] = [await open("ada", url.replace("http", "ws")), await open("ben", system.url.replace("http", "ws"))];
  try {
    const show = async (added: string, people: readonly Person<P>[]): Promise<void> => {
      const text = `${before}${added}`;
      const shown = async (): Promise<readonly string[]> => Promise.all(people.map((person) => person.text()));
      await eventually(`all show "${text}"`, async () => (await shown()).every((one) => one === text), READY_MS_MAX).catch(
        async (cause: unknown) => {
          throw new Error(`not all show "${text}", but ${JSON.stringify(await shown())}`, { cause });
        },
      );
    };
    await show("", [ada, ben]);
    await ben.typesAtEnd("Notes:"); // Undo of a paragraph's first text may remove the paragraph, with the text of others.
    await show("Notes:", [ada, ben]);
    await ada.typesAtEnd(" from ada,"); // No space at its end: `text` does not show whether it has arrived.
    await show("Notes: from ada,", [ada, ben]);
    await eventually("ben sees ada's caret", async () => (await ben.caretNames()).includes("ada"), READY_MS_MAX);
    await ben.typesAtEnd(" from ben");
    await show("Notes: from ada, from ben", [ada, ben]);
    await ada.undoesAll();
    await show("Notes: from ben", [ada, ben]);

    cable.pull();
    await eventually("ada is offline", async () => !/saved|saving/.test(await ada.reads("#status")), READY_MS_MAX);
    await ada.typesAtEnd(", offline");
    expect(await ben.text()).toBe(`${before}Notes: from ben`);
    cable.plug();
    await show("Notes: from ben, offline", [ada, ben]);
    await ada.hasSaved();
  } finally {
    leftTexts.set(example.name, await ben.text());
    await Promise.all([ada.page.close(), ben.page.close()]);
    await cable.stop();
  }
}

test("[EXA6] canvas: two people see each other's notes and pointers, and undo their own notes", async () => {
  const example: EditorExample = { name: "canvas", input: "#canvas", text: ".note", caret: ".pointer" };
  const coroom = system.url.replace("http", "ws");
  const [ada, ben] = [await Person.open(example, "ada", coroom), await Person.open(example, "ben", coroom)];
  try {
    await ada.page.locator("#canvas").dblclick({ position: { x: 100, y: 100 } });
    await eventually("ben sees ada's note", async () => (await ben.text()) === "ada's note", READY_MS_MAX);
    await eventually("ben sees ada's pointer", async () => (await ben.caretNames()).includes("ada"), READY_MS_MAX);
    await ben.page.locator("#canvas").dblclick({ position: { x: 300, y: 200 } });
    await eventually("ada sees both", async () => (await ada.page.locator(".note").count()) === 2, READY_MS_MAX);
    await ben.page.locator(".note", { hasText: "ada" }).dragTo(ben.page.locator("#canvas"), { targetPosition: { x: 200, y: 300 } });
    const placeSeenByAda = (): Promise<string> =>
      ada.page.locator(".note", { hasText: "ada" }).evaluate(({ style }) => `${style.left} ${style.top}`);
    await eventually("ada sees the note where ben dropped it", async () => (await placeSeenByAda()) === "200px 300px", READY_MS_MAX);
    const box = (await ben.page.locator("#canvas").boundingBox())!;
    await ben.page.mouse.move(box.x + 300, box.y + 200);
    await ben.page.mouse.down();
    await ben.page.mouse.move(box.x + 300, box.y - 10);
    await ben.page.mouse.up();
    await ben.page.mouse.move(box.x + 400, box.y + 100);
    const own = ben.page.locator(".note", { hasText: "ben" });
    await eventually("a note that is dropped outside is not held any more", async () =>
      /^300px -\d+px$/.test(await own.evaluate(({ style }) => `${style.left} ${style.top}`)),
    );
    await ben.page.locator("#undo").click();
    await ben.page.locator("#undo").click();
    await eventually("the note is back in its place", async () => (await placeSeenByAda()) === "100px 100px", READY_MS_MAX);
    await ada.hasSaved();
  } finally {
    await Promise.all([ada.page.close(), ben.page.close()]);
  }
});

test("[EXA14] textarea: an emoji replaces another one, also one that ends or begins with the same half", async () => {
  const example = EXAMPLES.find(({ name }) => name === "textarea")!;
  const coroom = system.url.replace("http", "ws");
  const [ada, ben] = [await Person.open(example, "ada", coroom), await Person.open(example, "ben", coroom)];
  const before = await ada.text();
  try {
    await ada.page.locator("textarea").focus();
    await ada.page.keyboard.press("Control+End");
    for (const emoji of ["😀", "😁", "🨁"]) {
      await ada.page.keyboard.insertText(emoji);
      await eventually(`ben sees ${emoji}`, async () => (await ben.text()) === `${before}${emoji}`, READY_MS_MAX);
      await ada.page.keyboard.press("Shift+ArrowLeft");
    }
    await ada.page.keyboard.press("Delete");
    await eventually("it is gone", async () => (await ben.text()) === before, READY_MS_MAX);
  } finally {
    await Promise.all([ada.page.close(), ben.page.close()]);
  }
});

test("[EXA15] textarea: people write at the visible place in a text with all kinds of line ends, and keep them", async () => {
  const example = EXAMPLES.find(({ name }) => name === "textarea")!;
  const coroom = system.url.replace("http", "ws");
  const ada = await Person.open(example, "ada", coroom);
  const token = async () => (await fetch(`${pages.resolvedUrls!.local[0]!}token?user=ben`)).text();
  const ben = new CoroomProvider({ url: coroom, room: "notes-textarea", doc: new Y.Doc(), token });
  const text = ben.doc.getText("textarea");
  try {
    await eventually("ben has the text", () => ben.synced, READY_MS_MAX);
    const before = text.toString();
    ben.doc.transact(() => {
      text.delete(0, text.length);
      text.insert(0, "one\r\ntwo\rthree\nfour");
    });
    const becomes = (whole: string): Promise<void> =>
      eventually(`the text is ${JSON.stringify(whole)}`, () => text.toString() === whole, READY_MS_MAX);
    await eventually("ada has it", async () => (await ada.text()) === "one\ntwo\nthree\nfour", READY_MS_MAX);
    await ada.page.locator("textarea").focus();
    await ada.page.keyboard.press("Control+End");
    await ada.page.keyboard.type("!");
    await becomes("one\r\ntwo\rthree\nfour!");
    await ada.page.keyboard.press("Control+Home");
    for (const key of ["ArrowDown", "End", "2"]) await ada.page.keyboard.press(key);
    await becomes("one\r\ntwo2\rthree\nfour!");
    text.insert(0, "zero\r\n");
    await eventually("ada has the new line", async () => (await ada.text()).startsWith("zero"), READY_MS_MAX);
    await ada.page.keyboard.type("3");
    await becomes("zero\r\none\r\ntwo23\rthree\nfour!");
    for (const key of ["Home", "Backspace"]) await ada.page.keyboard.press(key);
    await becomes("zero\r\nonetwo23\rthree\nfour!");
    ben.doc.transact(() => {
      text.delete(0, text.length);
      text.insert(0, before);
    });
    await eventually("all is saved", () => ben.saved, READY_MS_MAX);
  } finally {
    ben.destroy();
    await ada.page.close();
  }
});

const CODE_MIRROR = { input: ".cm-content", text: "#editor .cm-line", caret: ".cm-ySelectionInfo" } as const;

test("[EXA11] history: a version is saved, compared with the text, and restored for everybody", async () => {
  const [example, coroom] = [{ name: "history", ...CODE_MIRROR }, system.url.replace("http", "ws")];
  const [ada, ben] = [await Person.open(example, "ada", coroom), await Person.open(example, "ben", coroom)];
  try {
    await ada.typesAtEnd("first draft");
    await ada.hasSaved();
    await ada.page.getByLabel("Name of the version").fill("draft");
    await ada.page.locator("#save").click();
    const version = ada.page.locator("#versions button", { hasText: "draft" });
    await version.waitFor();
    await ben.typesAtEnd(" with changes");
    await eventually("ada sees ben's text", async () => (await ada.text()) === "first draft with changes", READY_MS_MAX);
    await version.click();
    const compared = ada.page.locator("#comparison .cm-content");
    await eventually(
      "both states are shown",
      async () => (await compared.allInnerTexts()).join("|") === "first draft|first draft with changes",
      READY_MS_MAX,
    );
    await ada.page.locator("#restore").click();
    for (const person of [ada, ben])
      await eventually("the version is back", async () => (await person.text()) === "first draft", READY_MS_MAX);
  } finally {
    await Promise.all([ada.page.close(), ben.page.close()]);
  }
});

test("[EXA12] comments: a thread stays at its words while others type, and is answered and resolved", async () => {
  const [example, coroom] = [{ name: "comments", ...CODE_MIRROR }, system.url.replace("http", "ws")];
  const [ada, ben] = [await Person.open(example, "ada", coroom), await Person.open(example, "ben", coroom)];
  try {
    await ada.typesAtEnd("one two");
    await eventually("ben sees it", async () => (await ben.text()) === "one two", READY_MS_MAX);
    for (let letter = 0; letter < "two".length; letter++) await ada.page.keyboard.press("Shift+ArrowLeft");
    await ada.page.locator("#new input").fill("why two?");
    await ada.page.locator("#new button").click();
    const thread = (person: Person) => person.page.locator(".thread");
    await eventually(
      "ben reads the comment",
      async () => /two[^]*ada[^]*why two\?/.test((await thread(ben).allInnerTexts()).join()),
      READY_MS_MAX,
    );
    await thread(ada).getByLabel("Reply").fill("half a reply");
    await ben.page.locator(example.input).focus();
    await ben.page.keyboard.press("Control+Home");
    await ben.page.keyboard.type("zero ");
    await thread(ben).getByLabel("Reply").fill("because");
    await thread(ben).getByRole("button", { name: "Reply" }).click();
    await eventually("ada reads the reply", async () => (await thread(ada).innerText()).includes("because"), READY_MS_MAX);
    expect(await thread(ada).getByLabel("Reply").inputValue()).toBe("half a reply");
    for (const person of [ada, ben]) {
      await eventually("the text is zero one two", async () => (await person.text()) === "zero one two", READY_MS_MAX);
      expect(await person.page.locator(".commented").allInnerTexts()).toEqual(["two"]);
    }
    const resolve = thread(ben).getByRole("button", { name: "Resolve" });
    await resolve.click();
    await eventually("it is resolved", async () => (await thread(ben).count()) === 0, READY_MS_MAX);
    await ben.page.locator(example.input).focus();
    await ben.page.keyboard.press("Control+z");
    await thread(ben).getByLabel("Reply").fill("not yet");
    await thread(ben).getByRole("button", { name: "Reply" }).click();
    await eventually(
      "ada reads the reply to the thread that is back",
      async () => (await thread(ada).allInnerTexts()).join().includes("not yet"),
      READY_MS_MAX,
    );
    await resolve.click();
    await eventually(
      "the thread is gone",
      async () => (await thread(ada).count()) + (await ada.page.locator(".commented").count()) === 0,
      READY_MS_MAX,
    );
    await ada.hasSaved();
  } finally {
    await Promise.all([ada.page.close(), ben.page.close()]);
  }
});

test("[EXA8] the developer panel shows connection, edits, participants and frames, and follows them", async () => {
  const [example, coroom] = [EXAMPLES[0]!, system.url.replace("http", "ws")];
  const ada = await Person.open(example, "ada", coroom, { devtools: "" });
  const ben = await Person.open(example, "ben", coroom);
  try {
    const panel = ada.page.locator("coroom-devtools");
    const shows = (what: RegExp): Promise<void> =>
      eventually(`the panel shows ${what}`, async () => what.test(await panel.locator("section").innerText()), READY_MS_MAX);
    await shows(/ada \(you\)/);
    await shows(/ben/);
    await shows(/Participants: 2, flat/);
    expect(await accessibilityViolations(ada.page, { within: "coroom-devtools" })).toEqual([]);
    // A text that a developer selects there stays selected.
    await panel
      .locator("table")
      .first()
      .evaluate((table) => void (table.id = "not-replaced"));
    const seq = Number(/seq\s+(\d+)/.exec(await panel.locator("section").innerText())![1]);
    await ada.typesAtEnd("a");
    await shows(new RegExp(`ack of edit \\d+: seq ${seq + 1}`));
    await ben.typesAtEnd("b");
    await shows(new RegExp(`committed ${seq + 2}`));
    await shows(/unacked\s+0/);
    expect(await panel.locator("table").first().getAttribute("id")).toBe("not-replaced");
    expect(await panel.locator("summary").innerText()).toBe("notes: connected, saved");
    await panel.locator("summary").click();
    await eventually("the panel is closed", async () => !(await panel.locator("section").isVisible()), READY_MS_MAX);
  } finally {
    await Promise.all([ada.page.close(), ben.page.close()]);
  }
});

test("[EXA9] nextjs: a server renders the page without a connection, and the browser completes it and joins the room", async () => {
  const example: EditorExample = { name: "nextjs", input: ".tiptap", text: ".tiptap p", caret: ".collaboration-carets__label" };
  const coroom = system.url.replace("http", "ws");
  const errors: string[] = [];
  const people = await Promise.all(
    ["ada", "ben"].map(async (user) => {
      const page = await newPage(user);
      page.on("pageerror", (error) => errors.push(String(error)));
      page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
      return Person.inChromium(page, example, user, addressOf(example, { user, coroom }));
    }),
  );
  try {
    const [ada, ben] = people as [Person, Person];
    await ada.typesAtEnd("from a server");
    await eventually("ben sees the text", async () => (await ben.text()) === "from a server", READY_MS_MAX);
    await eventually("ben sees ada's caret", async () => (await ben.caretNames()).includes("ada"), READY_MS_MAX);
    await ada.hasSaved();
    const served = await (await fetch(addressOf(example, { user: "ada", coroom }))).text();
    expect(served).toContain(`<span id="status">disconnected</span>`);
    expect(errors).toEqual([]);
  } finally {
    await Promise.all(people.map(({ page }) => page.close()));
  }
});

test("[EXA17] vue: a component that is unmounted leaves the room, and the reloaded page has the text", async () => {
  const example = EXAMPLES.find(({ name }) => name === "vue")!;
  const coroom = system.url.replace("http", "ws");
  const [ada, ben] = [await Person.open(example, "ada", coroom), await Person.open(example, "ben", coroom)];
  try {
    const before = await ben.text();
    await ada.typesAtEnd(" kept");
    await ada.hasSaved();
    await ada.page.evaluate(() => (document.querySelector("#app") as VueRoot).__vue_app__.unmount());
    await eventually("ben sees ada leave", async () => (await ben.reads("#here")) === "ben", READY_MS_MAX);
    await ada.page.reload();
    await eventually("ada has the text again", async () => (await ada.text()) === `${before} kept`.trim(), READY_MS_MAX);
  } finally {
    await Promise.all([ada.page.close(), ben.page.close()]);
  }
});

test("[EXA7] an example declares the versions that the tests use", () => {
  const read = (folder: string) => JSON.parse(readFileSync(resolve(folder, "package.json"), "utf8")) as PackageFile;
  const { dependencies, devDependencies } = read(".");
  const known: Readonly<Record<string, string>> = {
    ...dependencies,
    ...devDependencies,
    "@coroom/client": `^${read("client").version}`,
    "@coroom/react": `^${read("react").version}`,
    "next": NEXT_VERSION,
    // Optional dependencies of @tiptap/react. npm installs their newest versions, which warn of other versions of TipTap.
    "@tiptap/extension-bubble-menu": devDependencies["@tiptap/react"]!,
    "@tiptap/extension-floating-menu": devDependencies["@tiptap/react"]!,
  };
  for (const name of [...EXAMPLES.map((example) => example.name), "canvas", "comments", "history", "nextjs"]) {
    const declared = read(`examples/${name}`).dependencies;
    expect(Object.fromEntries(Object.keys(declared).map((dependency) => [dependency, known[dependency]])), name).toEqual(declared);
  }
});
