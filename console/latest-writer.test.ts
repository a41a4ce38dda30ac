import type { RoomAwareness } from "@coroom/client";
import { expect, test } from "vitest";
import * as Y from "yjs";

import { LatestWriter } from "./latest-writer.ts";

test("[PAGE7] new text names its writer while that person is present; deletions and earlier text name no writer", () => {
  const [ada, grace] = [new Y.Doc(), new Y.Doc()];
  const states = new Map<number, object>([[ada.clientID, { user: { name: "Ada" } }]]);
  const latest = new LatestWriter(grace.getText("text"), { clientID: grace.clientID, getStates: () => states } as unknown as RoomAwareness);
  let changes = 0;
  latest.onChange(() => (changes += 1));
  ada.on("update", (update: Uint8Array) => Y.applyUpdate(grace, update));
  ada.getText("text").insert(0, "before");
  latest.beginNow();
  ada.getText("text").delete(0, 2);
  expect([latest.name, changes]).toEqual([undefined, 0]);
  ada.getText("text").insert(0, "now");
  ada.getText("text").insert(0, "more");
  expect([latest.name, latest.isSelf, changes]).toEqual(["Ada", false, 1]);
  grace.getText("text").insert(0, "mine");
  expect([latest.isSelf, changes]).toEqual([true, 2]);
  ada.getText("text").insert(0, "again");
  states.clear();
  expect(latest.name).toBeUndefined();
});
