import { mkdirSync, mkdtempSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import Sqlite from "libsql";
import { expect, onTestFinished, test, vi } from "vitest";
import * as Y from "yjs";

import { openSource } from "./import-sources.ts";

const folder = (): string => mkdtempSync(join(tmpdir(), "coroom-import-"));
const updateOf = (text: string): Uint8Array => {
  const doc = new Y.Doc();
  doc.getText("t").insert(0, text);
  return Y.encodeStateAsUpdate(doc);
};

const textOf = (update: Uint8Array): string => {
  const doc = new Y.Doc();
  Y.applyUpdate(doc, update);
  return doc.getText("t").toJSON();
};

async function textsIn(path: string): Promise<Record<string, string>> {
  const source = await openSource(path);
  const texts: Record<string, string> = {};
  for (const name of source.names) texts[name] = textOf(await source.read(name));
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

test("[IMP16] folders in a folder of Yjs updates, also linked ones, are named, because their files are not imported", async () => {
  const files = folder();
  for (const below of ["team", "old notes"]) mkdirSync(join(files, below));
  writeFileSync(join(files, "team", "plan.yjs"), updateOf("plan"));
  symlinkSync(join(files, "team"), join(files, "linked"));
  symlinkSync(join(files, "missing"), join(files, "to nothing"));
  await expect(openSource(files)).rejects.toThrow(/holds no documents.*\. Its folders are not read: linked, old notes, team$/);
  writeFileSync(join(files, "notes.yjs"), updateOf("notes"));
  const source = await openSource(files);
  expect([source.names, source.skippedFolders]).toEqual([["notes"], ["linked", "old notes", "team"]]);
});

test("[IMP14] two files of one document are refused by their names, so that none is left out silently", async () => {
  const files = folder();
  for (const file of ["notes.yjs", "other.yjs", "n%6ftes.bin"]) writeFileSync(join(files, file), updateOf(file));
  await expect(openSource(files)).rejects.toThrow(
    /: (?:notes\.yjs and n%6ftes\.bin|n%6ftes\.bin and notes\.yjs) are both the document "notes"/,
  );
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

test.each<[string, Uint8Array, RegExp]>([
  ["an empty file", new Uint8Array(), /^it is empty\. Copy it/],
  ["a truncated update", updateOf("some words").slice(0, -4), /^it is truncated, damaged or no Yjs update of version 1\. Copy it/],
  ["another file", Buffer.from('{"hello":"world"}'), /^it is truncated, damaged or no Yjs update of version 1\. Copy it/],
  ["an update of version 2", Y.convertUpdateFormatV1ToV2(updateOf("some words")), /^it is no Yjs update of version 1\. Convert/],
  ["zeros", new Uint8Array(100), /^it is no Yjs update of version 1\. Convert/],
])("[IMP8] %s is refused with its cause and a remedy, and the document beside it can be read", async (_, bytes, message) => {
  const files = folder();
  writeFileSync(join(files, "bad.yjs"), bytes);
  writeFileSync(join(files, "good.yjs"), updateOf("good"));
  writeFileSync(join(files, "nothing.yjs"), Y.encodeStateAsUpdate(new Y.Doc()));
  const source = await openSource(files);
  await expect(source.read("bad")).rejects.toThrow(message);
  expect(textOf(await source.read("good"))).toBe("good");
  await source.read("nothing");
});

test("[IMP9] a file that cannot be read is reported with the operating system's code", async () => {
  const files = folder();
  mkdirSync(join(files, "folder.yjs"));
  await expect((await openSource(files)).read("folder")).rejects.toThrow(/^cannot read .*folder\.yjs \(EISDIR\)\. Check that/);
});

test("[IMP10] a SQLite database that is damaged or not of Hocuspocus is refused with the reason", async () => {
  const path = folder();
  const [other, truncated, mixed] = ["other.db", "truncated.db", "mixed.db"].map((name) => join(path, name)) as [string, string, string];
  const notes = new Sqlite(other);
  notes.exec("CREATE TABLE notes (id)");
  notes.close();
  await expect(openSource(other)).rejects.toThrow(
    /other\.db \(no such table: documents\)\. Hocuspocus stores them in the table "documents"/,
  );
  const db = new Sqlite(mixed);
  db.exec('CREATE TABLE "documents" ("name" varchar(255) NOT NULL, "data" blob, UNIQUE(name))');
  for (const [name, data] of [
    ["null", null],
    ["text", "text"],
    ["good", Buffer.from(updateOf("good"))],
  ])
    db.prepare('INSERT INTO "documents" VALUES (?, ?)').run(name, data);
  db.close();
  const source = await openSource(mixed);
  for (const name of ["null", "text"]) await expect(source.read(name)).rejects.toThrow(/^its column "data" holds no bytes/);
  expect(textOf(await source.read("good"))).toBe("good");
  await source.close();
  writeFileSync(truncated, readFileSync(mixed).subarray(0, 4_096));
  await expect(openSource(truncated)).rejects.toThrow(
    /cannot read the documents in .*truncated\.db .*copy it again while its server does not run/,
  );
});

test("[IMP23] a SQLite database that another process locks, at the start or later, is reported with its remedy", async () => {
  const file = join(folder(), "db.sqlite");
  const server = new Sqlite(file);
  server.exec('CREATE TABLE "documents" ("name" varchar(255) NOT NULL, "data" blob NOT NULL, UNIQUE(name))');
  server.prepare('INSERT INTO "documents" VALUES (?, ?)').run("notes", Buffer.from(updateOf("text")));
  const source = await openSource(file);
  server.exec("BEGIN EXCLUSIVE");
  const message = /db\.sqlite \(database is locked\)\. Stop the server that uses the database, and repeat the command$/;
  await expect(openSource(file)).rejects.toThrow(message);
  await expect(source.read("notes")).rejects.toThrow(message);
  server.exec("COMMIT");
  expect(textOf(await source.read("notes"))).toBe("text");
  await source.close();
  server.close();
});

test("[IMP11] a LevelDB folder that cannot be opened is refused with a remedy", async () => {
  vi.spyOn(console, "warn").mockImplementation(() => {}); // y-leveldb prints the reason.
  onTestFinished(() => void vi.restoreAllMocks());
  const path = folder();
  writeFileSync(join(path, "CURRENT"), "MANIFEST-000001");
  await expect(openSource(path)).rejects.toThrow(/cannot read the LevelDB folder .*Stop the server that uses it/);
});
