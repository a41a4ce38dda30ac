/** Large pastes over a real gateway with the default limits. They arrive, and the gateway closes no connection because of them. */

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
afterAll(() => cluster?.stop());

/** A user with an editor, and every status except "connected", error and refusal that it reports. */
async function enter(room: string, name: string): Promise<{ provider: CoroomProvider; text: Y.Text; reports: string[] }> {
  const doc = new Y.Doc();
  const provider = new CoroomProvider({ url: cluster.gateways[0]!.url, room, doc, token: await cluster.token(room, name) });
  const reports: string[] = [];
  provider.on("status", ({ status }) => status === "connected" || reports.push(status));
  provider.on("error", ({ kind }) => reports.push(kind));
  provider.on("refused", ({ kind }) => reports.push(kind));
  await eventually(`${name} is in the room`, () => provider.synced);
  return { provider, text: doc.getText("t"), reports };
}

test("[PASTE1] a text of 5 MiB pasted at once reaches everybody in pieces while its author types on, and no connection is closed", async () => {
  const [ada, grace] = [await enter("pasted", "ada"), await enter("pasted", "grace")];
  ada.text.insert(0, "a line of a long text, and so on. ".repeat((5 * MIB) / 34));
  for (const letter of "and typed behind it") ada.text.insert(ada.text.length, letter);
  expect(ada.provider.saved).toBe(false);
  await eventually("it is saved", () => ada.provider.saved);
  await eventually("Grace has it", () => grace.text.length === ada.text.length);
  expect(grace.text.toString() === ada.text.toString()).toBe(true);
  expect(ada.provider.seq).toBeGreaterThan(5);
  expect([...ada.reports, ...grace.reports]).toEqual([]);
  ada.provider.destroy();
  grace.provider.destroy();
});

test("[PASTE2] an edit that cannot be split is reported once and not sent, and later edits are sent after its undo", async () => {
  const [ada, grace] = [await enter("refused", "ada"), await enter("refused", "grace")];
  const pictures = ada.provider.doc.getArray<Uint8Array>("pictures");
  pictures.push([new Uint8Array(MIB)]);
  ada.text.insert(0, "behind it");
  await eventually("the error is reported", () => ada.reports.length > 0);
  await new Promise((resolve) => setTimeout(resolve, 2_000)); // Time in which a loop would show.
  expect([ada.reports, ada.provider.status, ada.provider.saved, grace.text.toString()]).toEqual([
    ["edit-too-large"],
    "connected",
    false,
    "",
  ]);
  pictures.delete(0);
  await eventually("it is saved", () => ada.provider.saved);
  await eventually("Grace has the edits behind it", () => grace.text.toString() === "behind it");
  expect([ada.reports, grace.reports]).toEqual([["edit-too-large"], []]);
  ada.provider.destroy();
  grace.provider.destroy();
});
