/**
 * The bridge with many y-websocket clients in one room. Measures memory and CPU until all have a long document, and CPU
 * for each edit that one of them types. `--build` runs another build's bridge with this build's servers, for
 * comparisons.
 */

import { spawn } from "node:child_process";
import type { Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { WebSocket } from "ws";
import { WebsocketProvider } from "y-websocket";
import * as Y from "yjs";

import { positiveInteger, text } from "../shared/settings/settings.ts";
import { CoroomProvider } from "../client/index.ts";
import { SystemCluster } from "../test/system/cluster.ts";
import { eventually } from "../test/system/eventually.ts";
import { defineExperiment } from "./experiment.ts";
import { cpuByRole, memoryByRole } from "./server-usage.ts";

const ROOM = "long/document";
const MS_MAX = 120_000;
const WORDS_AT_ONCE = 1_000;
const MEBIBYTE = 1024 ** 2;

export const bridgeRoom = defineExperiment({
  name: "bridge-room",
  summary: "y-websocket clients in one room: memory and CPU of the bridge. One minute.",
  settings: {
    clients: { parse: positiveInteger, fallback: 50, meaning: "Number of y-websocket clients in the room." },
    documentWords: { parse: positiveInteger, fallback: 20_000, meaning: "Words of the document, each one struct." },
    edits: { parse: positiveInteger, fallback: 400, meaning: "Number of edits that one client types, 20 each second." },
    build: { parse: text, fallback: "dist", meaning: "Folder of the build whose bridge is measured." },
  },
  async run({ clients, documentWords, edits, build }, print) {
    const cluster = await SystemCluster.start({ gateways: 1, roomServers: 1 });
    const flags = ["--roles", "y-websocket", "--y-port", "0", "--y-gateway-url", cluster.gateways[0]!.url, "--health-port", "0"];
    const bridge = spawn(process.execPath, [`${build}/cli/main.js`, "start", ...flags], { stdio: ["ignore", "ignore", "pipe"] });
    const providers: WebsocketProvider[] = [];
    try {
      const port = await portIn(bridge.stderr);
      const usage = () => {
        const of = [{ role: "bridge", pid: bridge.pid! }];
        return { cpu: cpuByRole(of)["bridge"]!, memory: memoryByRole(of)["bridge"]! / MEBIBYTE };
      };
      await writeDocument(cluster, documentWords);
      const idle = usage();
      for (let client = 0; client < clients; client++) {
        const params = { token: await cluster.token(ROOM, `user${client}`) };
        const polyfill = WebSocket as unknown as typeof globalThis.WebSocket;
        const options = { params, WebSocketPolyfill: polyfill, disableBc: true };
        providers.push(new WebsocketProvider(`ws://127.0.0.1:${port}`, ROOM, new Y.Doc(), options));
      }
      const texts = providers.map(({ doc }) => doc.getText("t"));
      await eventually("all clients are synced", () => providers.every(({ synced }) => synced), MS_MAX);
      await sleep(5_000);
      const joined = usage();
      const length = texts[0]!.length;
      for (let edit = 0; edit < edits; edit++) {
        texts[edit % clients]!.insert(texts[edit % clients]!.length, "x");
        await sleep(50);
      }
      await eventually("all clients have all edits", () => texts.every((words) => words.length === length + edits), MS_MAX);
      const typed = usage();
      print(`bridge of ${build}, ${clients} clients, ${length} characters`);
      print(
        `memory: ${idle.memory.toFixed(0)} MiB idle, ${joined.memory.toFixed(0)} MiB with all clients, ${typed.memory.toFixed(0)} MiB after ${edits} edits`,
      );
      print(
        `CPU: ${(joined.cpu - idle.cpu).toFixed(2)} s until all were joined, ${(((typed.cpu - joined.cpu) / edits) * 1_000).toFixed(2)} ms for each edit`,
      );
    } finally {
      for (const provider of providers) provider.destroy();
      bridge.kill();
      await cluster.stop();
    }
  },
});

/** Each word is inserted before the others, so the document has as many structs as words. */
async function writeDocument(cluster: SystemCluster, words: number): Promise<void> {
  const doc = new Y.Doc();
  const provider = new CoroomProvider({ url: cluster.gateways[0]!.url, room: ROOM, doc, token: await cluster.token(ROOM, "author") });
  await eventually("the author is synced", () => provider.synced);
  for (let word = 0; word < words; word += WORDS_AT_ONCE) {
    doc.transact(() => {
      for (let one = 0; one < WORDS_AT_ONCE; one++) doc.getText("t").insert(0, "word ");
    });
  }
  await eventually("the document is saved", () => provider.saved, MS_MAX);
  provider.destroy();
}

/** The log entry of a bridge that serves clients. */
function portIn(output: Readable): Promise<string> {
  let printed = "";
  return new Promise((resolve) =>
    output.on("data", (data) => {
      printed += String(data);
      const port = /^.*"port":(\d+).*serving.*$/m.exec(printed)?.[1];
      if (port !== undefined) resolve(port);
    }),
  );
}
