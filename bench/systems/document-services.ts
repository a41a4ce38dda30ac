/** Document services, each in its own process, that can be started, ended and asked for their memory. */

import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

import type { RoomKey } from "../../shared/ids.ts";
import { type ChildProcessHandle, spawnChild } from "../../engines/child.ts";
import { claimFreePorts } from "../../engines/free-port.ts";
import { residentBytesOf } from "../server-usage.ts";

/** `rooms`: rooms in memory. `live`: bytes of the heap and its buffers after a garbage collection. */
export type ServiceMemory = { readonly rooms: number; readonly live: number; readonly resident: number };
type DocumentServicesOptions = {
  readonly natsUrl: string;
  readonly environment: string;
  readonly dataDir: string;
  readonly settings: Readonly<Record<string, string>>;
};
type DocumentService = { rooms(): Promise<number>; measureMemory(): Promise<ServiceMemory> };

const SECRET = "a secret of the bench, 32 characters";
const MEMORY_MS_MAX = 30_000;

export class DocumentServices {
  readonly #options: DocumentServicesOptions;
  readonly #running = new Map<string, ChildProcessHandle>();
  #started = 0;

  constructor(options: DocumentServicesOptions) {
    this.#options = options;
  }

  get started(): number {
    return this.#started;
  }

  get running(): number {
    return this.#running.size;
  }

  /** `more`: settings of this service only. */
  async start(more: Readonly<Record<string, string>> = {}): Promise<DocumentService> {
    const { natsUrl, environment, dataDir, settings } = this.#options;
    const [port = 0] = await claimFreePorts(1, "127.0.0.1");
    const logFile = join(dataDir, `${environment}-${++this.#started}.log`);
    const script = scriptOf({ ...settings, ...more, environment, natsUrl, internalSecret: SECRET, documentsPort: String(port) });
    const child = await spawnChild({
      path: process.execPath,
      args: ["--expose-gc", "--input-type=module", "-e", script],
      env: {},
      cwd: resolve("."),
      logFile,
    });
    const url = `http://127.0.0.1:${port}`;
    this.#running.set(url, child);
    const rooms = () => roomsKnown(url);
    return {
      rooms,
      measureMemory: async () => ({ rooms: await rooms(), live: await liveBytes(child, logFile), resident: residentBytesOf(child.pid) }),
    };
  }

  /** Ends one of the services with this signal. */
  async end(index: number, signal: "SIGKILL" | "SIGTERM"): Promise<void> {
    const [url, child] = [...this.#running][index % this.#running.size]!;
    this.#running.delete(url);
    child.kill(signal);
    await child.exited;
  }

  async stopAll(): Promise<void> {
    while (this.#running.size > 0) await this.end(0, "SIGKILL");
  }

  /**
   * The snapshot from the service that owns the room; undefined when none answers now. `tenant` and `room` of the key
   * have no dots.
   */
  async snapshot(key: RoomKey): Promise<{ readonly seq: number; readonly state: Uint8Array } | undefined> {
    const [tenant = "", room = ""] = key.split(".");
    for (const url of this.#running.keys()) {
      try {
        const response = await fetch(`${url}/v1/rooms/${room}/snapshot`, {
          headers: { "x-coroom-internal": SECRET, "x-coroom-tenant": tenant },
        });
        const state = new Uint8Array(await response.arrayBuffer());
        if (response.status === 200) return { seq: Number(response.headers.get("x-coroom-seq")), state };
      } catch (error) {
        if (!(error instanceof TypeError)) throw error; // fetch throws a TypeError when the service has just ended.
      }
    }
    return undefined;
  }
}

function scriptOf(flags: Readonly<Record<string, string>>): string {
  return `
    import { Registry } from "prom-client";
    import { documentServiceSettings } from "./dist/document-service/config.js";
    import { startDocumentService } from "./dist/document-service/main.js";
    import { readSettings } from "./dist/shared/settings/settings.js";
    import { pinoLog } from "./dist/shared/io/pino-log.js";
    import { sharedSettings } from "./dist/shared/settings/common-settings.js";
    const service = await startDocumentService(readSettings({ ...sharedSettings, ...documentServiceSettings }, { flags: ${JSON.stringify(flags)}, env: {} }), { log: pinoLog({}, "warn"), registry: new Registry() });
    process.once("SIGTERM", () => service.stop().then(() => process.exit(0)));
    process.on("SIGUSR2", () => {
      gc();
      const { heapUsed, external } = process.memoryUsage();
      console.log("live " + (heapUsed + external));
    });`;
}

async function roomsKnown(url: string): Promise<number> {
  const metrics = await (await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${SECRET}` } })).text();
  return [...metrics.matchAll(/^coroom_documents_rooms\{.*\} (\d+)$/gm)].reduce((sum, [, rooms]) => sum + Number(rooms), 0);
}

async function liveBytes(child: ChildProcessHandle, logFile: string): Promise<number> {
  const answers = (): RegExpMatchArray[] => [...readFileSync(logFile, "latin1").matchAll(/^live (\d+)$/gm)];
  const before = answers().length;
  child.kill("SIGUSR2");
  for (const deadline = performance.now() + MEMORY_MS_MAX; performance.now() < deadline; await sleep(50)) {
    const live = answers()[before]?.[1];
    if (live !== undefined) return Number(live);
  }
  throw new Error(`a document service did not report its memory within ${MEMORY_MS_MAX} ms`);
}
