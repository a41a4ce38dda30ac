import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import Sqlite from "libsql";
import { expect, test } from "vitest";
import * as Y from "yjs";

import { openSource } from "./import-sources.ts";

const folder = (): string => mkdtempSync(join(tmpdir(), "coroom-import-"));
const updateOf = (text: string): Uint8Array => {
  const doc = new Y.Doc();
  doc.getText("t").insert(0, text);
  return Y.encodeStateAsUpdate(doc);
};

async function textsIn(path: string): Promise<Record<string, string>> {
  const source = await openSource(path);
  const texts: Record<string, string> = {};
  for (const name of source.names) {
    const doc = new Y.Doc();
    Y.applyUpdate(doc, await source.read(name));
    texts[name] = doc.getText("t").toJSON();
  }
  await source.close();
  return texts;
}

test("[IMP1] a folder of Yjs updates: the names of the files are the escaped names of the documents", async () => {
  const files = folder();
  writeFileSync(join(files, "team%2Fnotes.yjs"), updateOf("notes"));
  writeFileSync(join(files, "100%.bin"), updateOf("hundred"));
  writeFileSync(join(files, "README.md"), "no document");
  expect(await textsIn(files)).toEqual({ "team/notes": "notes", "100%": "hundred" });
});

test("[IMP2] a SQLite database as Hocuspocus writes it", async () => {
  const file = join(folder(), "db.sqlite");
  const db = new Sqlite(file);
  db.exec('CREATE TABLE "documents" ("name" varchar(255) NOT NULL, "data" blob NOT NULL, UNIQUE(name))');
  for (const name of ["b", "a/1"]) db.prepare('INSERT INTO "documents" VALUES (?, ?)').run(name, Buffer.from(updateOf(`text of ${name}`)));
  db.close();
  expect(await textsIn(file)).toEqual({ "a/1": "text of a/1", "b": "text of b" });
});

test("[IMP3] a LevelDB folder as y-websocket's server writes it", async () => {
  const { LeveldbPersistence } = (await import("y-leveldb" as string)) as {
    LeveldbPersistence: new (path: string) => { storeUpdate(name: string, update: Uint8Array): Promise<number>; destroy(): Promise<void> };
  };
  const path = folder();
  const db = new LeveldbPersistence(path);
  const doc = new Y.Doc();
  const updates: Uint8Array[] = [];
  doc.on("update", (update: Uint8Array) => void updates.push(update));
  for (const word of ["one ", "two"]) doc.getText("t").insert(doc.getText("t").length, word);
  for (const update of updates) await db.storeUpdate("notes", update);
  await db.storeUpdate("other", updateOf("another"));
  await db.destroy();
  expect(await textsIn(path)).toEqual({ notes: "one two", other: "another" });
});

test("[IMP4] a source without documents is refused, and the error names the accepted sources", async () => {
  const [empty, file] = [folder(), join(folder(), "text.txt")];
  writeFileSync(file, "a text");
  for (const path of [empty, file]) await expect(openSource(path)).rejects.toThrow("holds no documents");
  await expect(openSource(join(empty, "missing"))).rejects.toThrow("no such file or folder");
});
