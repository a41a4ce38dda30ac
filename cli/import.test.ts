import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { expect, onTestFinished, test } from "vitest";
import { WebSocketServer } from "ws";
import * as Y from "yjs";

import { CLOSE } from "../shared/wire/close-codes.ts";
import { readSettings } from "../shared/settings/settings.ts";
import { OUTBOX } from "../client/defaults.ts";
import { importSettings } from "./command-settings.ts";
import { importDocuments, sendPieces, UNSAVED_BYTES_MAX } from "./import.ts";

test("[IMP17] an import of a folder prints which folders in it are not imported, and how to import one", async () => {
  const from = mkdtempSync(join(tmpdir(), "coroom-import-"));
  mkdirSync(join(from, "team"));
  writeFileSync(join(from, "broken.yjs"), "");
  const printed: string[] = [];
  const flags = { from, token: "t", url: "http://127.0.0.1:1", prefix: "old/" };
  const imported = importDocuments(readSettings(importSettings, { flags, env: {} }), (line) => void printed.push(line));
  await expect(imported).rejects.toThrow("some documents were not imported");
  expect(printed).toContain(
    `not imported: the folders team in ${from}. Import each by itself, for example: coroom import ${join(from, "team")} --prefix old/team/`,
  );
});

test("[IMP17] the printed command quotes a folder whose name a shell would divide or change", async () => {
  const from = mkdtempSync(join(tmpdir(), "coroom-import-"));
  mkdirSync(join(from, "Ann's notes"));
  writeFileSync(join(from, "broken.yjs"), "");
  const printed: string[] = [];
  const flags = { from, token: "t", url: "http://127.0.0.1:1" };
  const imported = importDocuments(readSettings(importSettings, { flags, env: {} }), (line) => void printed.push(line));
  await expect(imported).rejects.toThrow("some documents were not imported");
  const command = printed[1]!.replace(/^.*: coroom import /, "");
  const words = execFileSync("sh", ["-c", `printf '%s\\n' ${command}`])
    .toString()
    .split("\n");
  expect(words).toEqual([join(from, "Ann's notes"), "--prefix", "Ann's notes/", ""]);
});

test("[IMP13] of a document that is larger than what may wait in a room, a part waits at a time, and all of it is saved in order", async () => {
  const piece = new Uint8Array(60_000);
  const pieces = Array.from({ length: Math.ceil((1.5 * OUTBOX.unsentBytesMax) / piece.byteLength) }, () => piece.slice());
  const sent: Uint8Array[] = [];
  let [waiting, most] = [0, 0];
  const send = (one: Uint8Array): void => {
    sent.push(one);
    waiting += one.byteLength;
    most = Math.max(most, waiting);
  };
  await sendPieces(pieces, send, async () => void (waiting = 0));
  expect([sent.length, waiting, sent.every((one, index) => one === pieces[index])]).toEqual([pieces.length, 0, true]);
  expect(most).toBeLessThan(UNSAVED_BYTES_MAX + piece.byteLength);
  expect(most).toBeLessThan(OUTBOX.unsentBytesMax);
});

test("[IMP24] a port that serves clients of another protocol, such as the bridge's, ends the import at the first document", async () => {
  const bridge = new WebSocketServer({ port: 0, host: "127.0.0.1" });
  onTestFinished(() => void bridge.close());
  bridge.on("connection", (socket) => socket.once("message", () => socket.close(CLOSE.badFrame.code, "use the gateway's URL")));
  await new Promise((resolve) => bridge.once("listening", resolve));
  const from = mkdtempSync(join(tmpdir(), "coroom-import-"));
  for (const name of ["one", "two"]) writeFileSync(join(from, `${name}.yjs`), Y.encodeStateAsUpdate(new Y.Doc()));
  const printed: string[] = [];
  const flags = { from, token: "t", url: `http://127.0.0.1:${(bridge.address() as { port: number }).port}` };
  const imported = importDocuments(readSettings(importSettings, { flags, env: {} }), (line) => void printed.push(line));
  await expect(imported).rejects.toThrow("use the gateway's URL");
  expect(printed).toEqual(["files of Yjs updates: 2 documents"]);
});
