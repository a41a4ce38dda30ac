/**
 * Pages in Debian's Firefox, by WebDriver BiDi (ADR 64). Each page has its own user context, like a user on another
 * computer. Each page is a window, because Firefox draws no frames in a tab of the background.
 */

import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { WebSocket } from "ws";

import { findFirefox } from "../../engines/browsers.ts";
import { type ChildProcessHandle, spawnChild } from "../../engines/child.ts";
import { PATIENCE_MS } from "./browser.ts";
import { eventually } from "./eventually.ts";

/** What the tests use of a page. A page of Playwright has the same methods. */
export type EditorPage = {
  goto(url: string): Promise<unknown>;
  /** Runs a function in the page. The function uses only `given` and the page, and both values are JSON. */
  evaluate<Given, Answer>(ask: (given: Given) => Answer | Promise<Answer>, given: Given): Promise<Answer>;
  readonly keyboard: {
    /** A key, or `Control+` and a key, as Playwright names them. */
    press(keys: string): Promise<void>;
    type(text: string, options?: { readonly delay?: number }): Promise<void>;
  };
  close(): Promise<void>;
};

const STOP_PATIENCE_MS = 15_000;
/** Firefox writes its port here when it is ready. */
const SERVER_FILE = "WebDriverBiDiServer.json";
const PREFERENCES: Readonly<Record<string, boolean | number | string>> = {
  "browser.shell.checkDefaultBrowser": false,
  "browser.startup.page": 0,
  "network.proxy.type": 0,
};
/** Keys of WebDriver that are no characters. */
const KEYS: Readonly<Record<string, string>> = { Control: "\uE009", End: "\uE010" };

export class Firefox {
  readonly #folder: string;
  readonly #child: ChildProcessHandle;
  readonly #session: BidiSession;

  private constructor(folder: string, child: ChildProcessHandle, session: BidiSession) {
    this.#folder = folder;
    this.#child = child;
    this.#session = session;
  }

  /** Throws an `EngineError` of kind `binary-missing` if the machine has no Firefox and cannot get one. */
  static async start(): Promise<Firefox> {
    const { path, env } = await findFirefox();
    const folder = mkdtempSync(join(tmpdir(), "coroom-firefox-"));
    const [profile, logFile] = [join(folder, "profile"), join(folder, "firefox.log")];
    mkdirSync(profile);
    writeFileSync(
      join(profile, "user.js"),
      Object.entries(PREFERENCES)
        .map(([name, value]) => `user_pref(${JSON.stringify(name)}, ${JSON.stringify(value)});\n`)
        .join(""),
    );
    const child = await spawnChild({
      path,
      args: ["--headless", "--no-remote", "--profile", profile, "--remote-debugging-port", "0", "about:blank"],
      env: { ...env, HOME: folder },
      cwd: folder,
      logFile,
    });
    try {
      let exited = false;
      void child.exited.then(() => (exited = true));
      const serverFile = join(profile, SERVER_FILE);
      await eventually("Firefox is ready", () => exited || isWritten(serverFile), PATIENCE_MS);
      if (exited) throw new Error(`Firefox ended before it was ready:\n${readFileSync(logFile, "utf8")}`);
      const { ws_port: port } = JSON.parse(readFileSync(serverFile, "utf8")) as { readonly ws_port: number };
      return new Firefox(folder, child, await BidiSession.open(`ws://127.0.0.1:${port}/session`));
    } catch (error) {
      await child.stop(STOP_PATIENCE_MS);
      rmSync(folder, { recursive: true, maxRetries: 10, retryDelay: 100 });
      throw error;
    }
  }

  async newPage(): Promise<FirefoxPage> {
    const { userContext } = await this.#session.ask<{ userContext: string }>("browser.createUserContext", {});
    const { context } = await this.#session.ask<{ context: string }>("browsingContext.create", { type: "window", userContext });
    return new FirefoxPage(this.#session, context);
  }

  async close(): Promise<void> {
    this.#session.close();
    await this.#child.stop(STOP_PATIENCE_MS);
    rmSync(this.#folder, { recursive: true, maxRetries: 10, retryDelay: 100 }); // Content processes of Firefox may end a little later.
  }
}

/** Firefox writes the file in place, so it can be empty at first. */
function isWritten(file: string): boolean {
  return existsSync(file) && readFileSync(file, "utf8").trimEnd().endsWith("}");
}

class FirefoxPage implements EditorPage {
  readonly keyboard: EditorPage["keyboard"] = {
    press: (keys) => this.#presses(keys.split("+").map((key) => KEYS[key] ?? key)),
    type: async (text, { delay = 0 } = {}) => {
      await this.#activate();
      await this.#performs([...text].flatMap((key) => [down(key), up(key), { type: "pause", duration: delay }]));
    },
  };
  readonly #session: BidiSession;
  readonly #context: string;

  constructor(session: BidiSession, context: string) {
    this.#session = session;
    this.#context = context;
  }

  goto(url: string): Promise<unknown> {
    return this.#session.ask("browsingContext.navigate", { context: this.#context, url, wait: "complete" });
  }

  async evaluate<Given, Answer>(ask: (given: Given) => Answer | Promise<Answer>, given: Given): Promise<Answer> {
    const { type, result, exceptionDetails } = await this.#session.ask<ScriptResult>("script.callFunction", {
      functionDeclaration: `async (given) => JSON.stringify([await (${ask})(...JSON.parse(given))])`,
      arguments: [{ type: "string", value: JSON.stringify([given]) }],
      awaitPromise: true,
      target: { context: this.#context },
    });
    if (type === "exception") throw new Error(`the function failed in the page: ${exceptionDetails.text}`);
    return (JSON.parse(result.value) as [Answer])[0];
  }

  async close(): Promise<void> {
    await this.#session.ask("browsingContext.close", { context: this.#context });
  }

  async #presses(keys: readonly string[]): Promise<void> {
    await this.#activate();
    await this.#performs([...keys.map(down), ...keys.toReversed().map(up)]);
  }

  /** An editor announces its caret only while its window has the focus. A window that opens slowly takes the focus later. */
  #activate(): Promise<void> {
    return eventually("the window has the focus", async () => {
      await this.#session.ask("browsingContext.activate", { context: this.#context });
      return this.evaluate(() => document.hasFocus(), undefined);
    });
  }

  async #performs(actions: readonly KeyAction[]): Promise<void> {
    await this.#session.ask("input.performActions", { context: this.#context, actions: [{ type: "key", id: "keyboard", actions }] });
  }
}

type KeyAction = { readonly type: "keyDown" | "keyUp"; readonly value: string } | { readonly type: "pause"; readonly duration: number };
type ScriptResult =
  | { readonly type: "success"; readonly result: { readonly value: string }; readonly exceptionDetails?: undefined }
  | { readonly type: "exception"; readonly result?: undefined; readonly exceptionDetails: { readonly text: string } };
type BidiMessage = { readonly id?: number; readonly result?: unknown; readonly error?: string; readonly message?: string };

const down = (value: string): KeyAction => ({ type: "keyDown", value });
const up = (value: string): KeyAction => ({ type: "keyUp", value });

/** Commands and their answers. Events are not subscribed. */
class BidiSession {
  readonly #socket: WebSocket;
  readonly #asked = new Map<number, (answer: BidiMessage) => void>();
  #lastId = 0;

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.on("message", (data: Buffer) => {
      const answer = JSON.parse(data.toString()) as BidiMessage;
      this.#asked.get(answer.id ?? 0)?.(answer);
    });
    socket.on("close", () => {
      for (const settle of this.#asked.values()) settle({ error: "the connection to Firefox closed" });
    });
  }

  static async open(url: string): Promise<BidiSession> {
    const socket = new WebSocket(url);
    await new Promise((resolve, reject) => socket.once("open", resolve).once("error", reject));
    const session = new BidiSession(socket);
    await session.ask("session.new", { capabilities: {} });
    return session;
  }

  ask<Answer>(method: string, params: object): Promise<Answer> {
    const id = ++this.#lastId;
    return new Promise((resolve, reject) => {
      const settle = ({ result, error, message = "" }: BidiMessage): void => {
        this.#asked.delete(id);
        if (error === undefined) resolve(result as Answer);
        else reject(new Error(`Firefox refused ${method}: ${error} ${message}`));
      };
      this.#asked.set(id, settle);
      this.#socket.send(JSON.stringify({ id, method, params }), (failure) => failure && settle({ error: failure.message }));
    });
  }

  close(): void {
    this.#socket.close();
  }
}
