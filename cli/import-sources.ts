/**
 * Reads the documents of other servers: a folder of files with Yjs updates, a SQLite database of Hocuspocus, or a
 * LevelDB folder of y-websocket. Each document is one Yjs update (version 1) with its complete content.
 */

import { open, readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";

import * as Y from "yjs";

import { SettingError } from "../shared/settings/settings.ts";

export type ImportSource = {
  readonly kind: string;
  readonly names: readonly string[];
  read(name: string): Promise<Uint8Array>;
  close(): Promise<void>;
};

/** Its declarations cannot be imported. */
type YLeveldb = {
  readonly LeveldbPersistence: new (folder: string) => {
    getAllDocNames(): Promise<string[]>;
    getYDoc(name: string): Promise<Y.Doc>;
    destroy(): Promise<void>;
  };
};
const Y_LEVELDB: string = "y-leveldb";

const SQLITE_MAGIC = "SQLite format 3\0";
/** Present in every folder of LevelDB. */
const LEVELDB_FILE = "CURRENT";
const UPDATE_FILE = /\.(?:yjs|bin|update)$/;

/** Throws SettingError if the path holds no documents that can be read. */
export async function openSource(path: string): Promise<ImportSource> {
  const found = await stat(path).catch(() => undefined);
  if (found === undefined) throw new SettingError(`cannot read ${path}: there is no such file or folder`);
  if (!found.isDirectory()) return (await isSqlite(path)) ? hocuspocusDatabase(path) : notReadable(path);
  const files = await readdir(path);
  return files.includes(LEVELDB_FILE) ? levelDb(path) : updateFiles(path, files);
}

/** The name of a file is the escaped name of its document: `team%2Fnotes.yjs`. */
function updateFiles(folder: string, files: readonly string[]): ImportSource {
  const byName = new Map(files.filter((file) => UPDATE_FILE.test(file)).map((file) => [unescaped(file.replace(UPDATE_FILE, "")), file]));
  if (byName.size === 0) return notReadable(folder);
  return {
    kind: "files of Yjs updates",
    names: [...byName.keys()],
    read: (name) => readFile(join(folder, byName.get(name)!)),
    close: async () => {},
  };
}

async function hocuspocusDatabase(path: string): Promise<ImportSource> {
  const { default: Sqlite } = await installed("libsql", () => import("libsql"));
  const db = new Sqlite(path, { readonly: true } as never);
  const names = db.prepare('SELECT name FROM "documents" ORDER BY name').all() as { name: string }[];
  const select = db.prepare('SELECT data FROM "documents" WHERE name = ?');
  return {
    kind: "SQLite database of Hocuspocus",
    names: names.map(({ name }) => name),
    read: async (name) => new Uint8Array((select.get(name) as { data: Uint8Array }).data),
    close: async () => void db.close(),
  };
}

async function levelDb(folder: string): Promise<ImportSource> {
  const { LeveldbPersistence } = await installed("y-leveldb", (): Promise<YLeveldb> => import(Y_LEVELDB));
  const db = new LeveldbPersistence(folder);
  return {
    kind: "LevelDB folder of y-websocket",
    names: await db.getAllDocNames(),
    read: async (name) => Y.encodeStateAsUpdate(await db.getYDoc(name)),
    close: () => db.destroy(),
  };
}

/** Packages that only an import needs are not installed with Coroom. */
async function installed<T>(name: string, load: () => Promise<T>): Promise<T> {
  return load().catch((cause: unknown) => {
    throw new SettingError(`this import needs the package ${name}. Install it beside coroom: npm install ${name}`, { cause });
  });
}

async function isSqlite(path: string): Promise<boolean> {
  const file = await open(path);
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(SQLITE_MAGIC.length), 0, SQLITE_MAGIC.length, 0);
    return buffer.toString("latin1", 0, bytesRead) === SQLITE_MAGIC;
  } finally {
    await file.close();
  }
}

function notReadable(path: string): never {
  throw new SettingError(
    `${path} holds no documents. Give a folder of *.yjs, *.bin or *.update files, a SQLite database of Hocuspocus, or a LevelDB folder of y-websocket`,
  );
}

function unescaped(name: string): string {
  try {
    return decodeURIComponent(name);
  } catch {
    return name; // A single %: the name is not escaped.
  }
}
