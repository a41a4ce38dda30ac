/** Large pastes over a real gateway with the limits everybody has: they arrive, and nobody is closed for them. */

import { afterAll, beforeAll, expect, test } from "vitest";
import * as Y from "yjs";

import { CoroomProvider } from "../../client/index.ts";
import { SystemCluster } from "./cluster.ts";
import { eventually } from "./eventually.ts";

const MIB = 1024 ** 2;

let cluster: SystemCluster;
beforeAll(async () => {
  cluster = await SystemCluster.start({ gateways: 1, roomServers: 1 });
});
afterAll(() => cluster.stop());

/** Somebody with an editor, and all that was told them besides that all is well. */
async function enter(room: string, name: string): Promise<{ provider: CoroomProvider; text: Y.Text; told: string[] }> {
  const doc = new Y.Doc();
  const provider = new CoroomProvider({ url: cluster.gateways[0]!.url, room, doc, token: await cluster.token(room, name) });
  const told: string[] = [];
  provider.on("status", ({ status }) => status === "connected" || told.push(status));
  provider.on("error", ({ kind }) => told.push(kind));
  provider.on("refused", ({ kind }) => told.push(kind));
  await eventually(`${name} is in the room`, () => provider.synced);
  return { provider, text: doc.getText("t"), told };
}

test("[PASTE1] a text of 5 MiB pasted at once reaches everybody, in pieces, while its author types on, and nobody is closed", async () => {
  const [ada, grace] = [await enter("pasted", "ada"), await enter("pasted", "grace")];
  ada.text.insert(0, "a line of a long text, and so on. ".repeat((5 * MIB) / 34));
  for (const letter of "and typed behind it") ada.text.insert(ada.text.length, letter);
  expect(ada.provider.saved).toBe(false);
  await eventually("it is saved", () => ada.provider.saved);
  await eventually("Grace has it", () => grace.text.length === ada.text.length);
  expect(grace.text.toString() === ada.text.toString()).toBe(true);
  expect(ada.provider.seq).toBeGreaterThan(5);
  expect([...ada.told, ...grace.told]).toEqual([]);
  ada.provider.destroy();
  grace.provider.destroy();
});

test("[PASTE2] one that cannot be cut is told once, does not loop, and goes no further; undone, all goes on", async () => {
  const [ada, grace] = [await enter("refused", "ada"), await enter("refused", "grace")];
  const pictures = ada.provider.doc.getArray<Uint8Array>("pictures");
  pictures.push([new Uint8Array(MIB)]);
  ada.text.insert(0, "behind it");
  await eventually("it is told", () => ada.told.length > 0);
  await new Promise((resolve) => setTimeout(resolve, 2_000)); // For what would loop.
  expect([ada.told, ada.provider.status, ada.provider.saved, grace.text.toString()]).toEqual([["edit-too-large"], "connected", false, ""]);
  pictures.delete(0);
  await eventually("it is saved", () => ada.provider.saved);
  await eventually("Grace has what was behind it", () => grace.text.toString() === "behind it");
  expect([ada.told, grace.told]).toEqual([["edit-too-large"], []]);
  ada.provider.destroy();
  grace.provider.destroy();
});
