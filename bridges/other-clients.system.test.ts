/**
 * Unmodified clients of other servers, as applications use them: y-websocket 2, 3 and 4, and HocuspocusProvider 3 and
 * 4, over one bridge and real processes.
 */

import { HocuspocusProvider, HocuspocusProviderWebsocket } from "@hocuspocus/provider";
import * as Y14 from "@y/y";
import * as hocuspocus3 from "hocuspocus-provider-3";
import { Registry } from "prom-client";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { WebSocket } from "ws";
import { WebsocketProvider as Provider3 } from "y-websocket";
import { WebsocketProvider as Provider2 } from "y-websocket-2";
import { WebsocketProvider as Provider4 } from "y-websocket-4";
import * as Y from "yjs";

import { readSettings } from "../shared/settings/settings.ts";
import { SILENT_LOG } from "../shared/testing/silent-log.ts";
import { CoroomProvider } from "../client/index.ts";
import { SystemCluster } from "../test/system/cluster.ts";
import { eventually } from "../test/system/eventually.ts";
import { yWebsocketSettings } from "./config.ts";
import { type RunningYWebsocket, startBridges } from "./main.ts";

let cluster: SystemCluster;
let bridge: RunningYWebsocket;
let ends: (() => void)[] = [];

beforeAll(async () => {
  cluster = await SystemCluster.start({ gateways: 1, roomServers: 1 });
  const flags = { yPort: "0", yGatewayUrl: cluster.gateways[0]!.url };
  bridge = await startBridges(
    { ...readSettings(yWebsocketSettings, { flags, env: {} }), production: false, allowedOrigins: [], clientAddressHeader: "" },
    { log: SILENT_LOG, registry: new Registry() },
  );
});
afterEach(() => {
  for (const end of ends.splice(0)) end();
});
afterAll(async () => {
  await bridge.stop();
  await cluster.stop();
});

const url = (): string => `ws://127.0.0.1:${bridge.port}`;
/** Like a browser's socket, it may be closed before it is open. The socket of `ws` reports that as an error. */
class ClosableSocket extends WebSocket {
  constructor(address: string) {
    super(address);
    this.on("error", () => {});
  }
}
const polyfill = ClosableSocket as unknown as typeof globalThis.WebSocket;

/** One user of a document, with any of the supported clients. */
type Visitor = {
  readonly text: () => string;
  readonly write: (text: string) => void;
  readonly isSynced: () => boolean;
  readonly names: () => string;
};

type AnyText = { readonly length: number; insert(at: number, text: string): void; toString(): string };
type AnyAwareness = { getStates(): Map<number, Record<string, unknown>>; setLocalStateField(field: string, value: unknown): void };

function visitor(user: string, text: AnyText, awareness: AnyAwareness, isSynced: () => boolean): Visitor {
  awareness.setLocalStateField("name", user);
  return {
    text: () => text.toString(),
    write: (words) => text.insert(text.length, words),
    isSynced,
    names: () =>
      [...awareness.getStates().values()]
        .map((state) => String(state["name"]))
        .toSorted()
        .join(),
  };
}

async function yWebsocket(version: 2 | 3 | 4, room: string, user: string): Promise<Visitor> {
  const options = { params: { token: await cluster.token(room, user) }, WebSocketPolyfill: polyfill, disableBc: true, maxBackoffTime: 200 };
  if (version === 4) {
    const doc = new Y14.Doc();
    const provider = new Provider4(url(), room, doc, options);
    ends.push(() => provider.destroy());
    return visitor(user, doc.get("t") as unknown as AnyText, provider.awareness as unknown as AnyAwareness, () => provider.synced);
  }
  const doc = new Y.Doc();
  const Provider = version === 2 ? (Provider2 as unknown as typeof Provider3) : Provider3;
  const provider = new Provider(url(), room, doc, options);
  ends.push(() => provider.destroy());
  return visitor(user, doc.getText("t"), provider.awareness as unknown as AnyAwareness, () => provider.synced);
}

async function hocuspocus(version: 3 | 4, room: string, user: string): Promise<Visitor & { readonly provider: HocuspocusProvider }> {
  const [Socket, Provider] =
    version === 4
      ? [HocuspocusProviderWebsocket, HocuspocusProvider]
      : [
          hocuspocus3.HocuspocusProviderWebsocket as never as typeof HocuspocusProviderWebsocket,
          hocuspocus3.HocuspocusProvider as never as typeof HocuspocusProvider,
        ];
  const websocketProvider = new Socket({ url: url(), WebSocketPolyfill: polyfill });
  const document = new Y.Doc();
  const provider = new Provider({ websocketProvider, name: room, document, token: await cluster.token(room, user) });
  provider.attach();
  ends.push(() => {
    provider.destroy();
    websocketProvider.destroy();
  });
  return Object.assign(
    visitor(user, document.getText("t"), provider.awareness as unknown as AnyAwareness, () => provider.isSynced),
    { provider },
  );
}

async function sdk(room: string, user: string): Promise<Visitor> {
  const provider = new CoroomProvider({ url: cluster.gateways[0]!.url, room, doc: new Y.Doc(), token: await cluster.token(room, user) });
  ends.push(() => provider.destroy());
  return visitor(user, provider.doc.getText("t"), provider.awareness as unknown as AnyAwareness, () => provider.synced);
}

test("[YUC1] y-websocket 2, 3 and 4, HocuspocusProvider 3 and 4 and the SDK write in one room and see each other", async () => {
  const room = "all/clients";
  const all = [
    await yWebsocket(2, room, "two"),
    await yWebsocket(3, room, "three"),
    await yWebsocket(4, room, "four"),
    await hocuspocus(3, room, "hocus3"),
    await hocuspocus(4, room, "hocus4"),
    await sdk(room, "sdk"),
  ];
  await eventually("all are synced", () => all.every((one) => one.isSynced()));
  for (const [index, one] of all.entries()) {
    one.write(`${index} `);
    await eventually(`all have what ${index} wrote`, () => all.every((other) => other.text().endsWith(`${index} `)));
  }
  expect(all.map((one) => one.text())).toEqual(all.map(() => "0 1 2 3 4 5 "));
  await eventually("each sees all", () => all.every((one) => one.names() === "four,hocus3,hocus4,sdk,three,two"));
});

test("[YUC2] HocuspocusProvider counts its changes as synced once the log has them, in both major versions", async () => {
  for (const version of [3, 4] as const) {
    const ann = await hocuspocus(version, `counted${version}`, "ann");
    await eventually("nothing is unsynced", () => ann.isSynced() && ann.provider.unsyncedChanges === 0);
    for (let word = 0; word < 20; word++) ann.write("word ");
    expect(ann.provider.unsyncedChanges).toBe(20);
    await eventually("all is synced", () => ann.provider.unsyncedChanges === 0);
    const bob = await sdk(`counted${version}`, "bob");
    await eventually("the log has it", () => bob.text() === "word ".repeat(20));
    await cluster.gateways[0]!.process.kill();
    const counts: unknown[] = [];
    ann.provider.on("unsyncedChanges", ({ number }: { number: number }) => counts.push(number));
    ann.write("while the gateway is gone");
    counts.push("started");
    await cluster.gateways[0]!.process.startAgain();
    await eventually("it is saved later", () => ann.provider.unsyncedChanges === 0 && bob.text().endsWith("gone"));
    expect(counts).toEqual([1, "started", 0]);
  }
});

test("[YUC3] one Hocuspocus socket carries several documents, each with its own token, and the refusal of one does not affect the others", async () => {
  const websocketProvider = new HocuspocusProviderWebsocket({ url: url(), WebSocketPolyfill: polyfill });
  const failed: string[] = [];
  const scopes: string[] = [];
  const open = (name: string, token: string): HocuspocusProvider => {
    const provider = new HocuspocusProvider({
      websocketProvider,
      name,
      token,
      onAuthenticationFailed: ({ reason }) => void failed.push(`${name}: ${reason}`),
      onAuthenticated: ({ scope }) => void scopes.push(`${name}: ${scope}`),
    });
    provider.attach();
    ends.push(() => provider.destroy());
    return provider;
  };
  const [one, two] = [open("one", await cluster.token("one", "ann")), open("two", await cluster.token("two", "ann", { rights: ["read"] }))];
  open("three", await cluster.token("another", "ann"));
  await eventually("two are synced, one is refused", () => one.isSynced && two.isSynced && failed.length === 1);
  ends.push(() => websocketProvider.destroy());
  expect([failed, scopes.toSorted()]).toEqual([[expect.stringContaining("three: ")], ["one: read-write", "two: readonly"]]);
  const others = [await sdk("one", "bob"), await sdk("two", "bob")];
  one.document.getText("t").insert(0, "in one");
  two.document.getText("t").insert(0, "not allowed");
  others[1]!.write("in two. ");
  await eventually(
    "each document has its own text",
    () => others[0]!.text() === "in one" && two.document.getText("t").toString().includes("in two"),
  );
  expect([others[1]!.text(), two.hasUnsyncedChanges]).toEqual(["in two. ", true]);
});

test("[YUC4] a stateless message reaches the other clients of the document, also of another version", async () => {
  const [ann, bob, other] = [
    await hocuspocus(4, "stateless", "ann"),
    await hocuspocus(3, "stateless", "bob"),
    await hocuspocus(4, "elsewhere", "eve"),
  ];
  const received: string[] = [];
  for (const [name, one] of Object.entries({ ann, bob, other }))
    one.provider.on("stateless", ({ payload }: { payload: string }) => received.push(`${name}: ${payload}`));
  await eventually("all are synced", () => [ann, bob, other].every((one) => one.isSynced()));
  ann.provider.sendStateless("saved version 3");
  ann.write("after it");
  await eventually("Bob has what followed", () => bob.text() === "after it");
  expect(received).toEqual(["bob: saved version 3"]);
});

test("[YUC5] a y-websocket client receives its own update back only once the log has it", async () => {
  const room = "echoed";
  const ann = await yWebsocket(3, room, "ann");
  await eventually("synced", () => ann.isSynced());
  const doc = new Y.Doc();
  const provider = new Provider3(url(), room, doc, {
    params: { token: await cluster.token(room, "raw") },
    WebSocketPolyfill: polyfill,
    disableBc: true,
  });
  ends.push(() => provider.destroy());
  await eventually("synced", () => provider.synced);
  const echoes: Uint8Array[] = [];
  provider.ws!.addEventListener("message", ({ data }) => {
    const bytes = new Uint8Array(data as ArrayBuffer);
    if (bytes[0] === 0 && bytes[1] === 2) echoes.push(bytes);
  });
  await cluster.gateways[0]!.process.kill();
  doc.getText("t").insert(0, "mine");
  await eventually("the bridge has it", () => provider.ws!.bufferedAmount === 0);
  expect(echoes).toEqual([]);
  await cluster.gateways[0]!.process.startAgain();
  await eventually("it is echoed", () => echoes.length > 0);
  await eventually("others have it", () => ann.text() === "mine");
});
