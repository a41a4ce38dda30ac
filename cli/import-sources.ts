/**
 * Reads the documents of other servers: a folder of files with Yjs updates, a SQLite database of Hocuspocus, or a
 * LevelDB folder of y-websocket. Each document is one Yjs update (version 1) with its complete content.
 */

import type { Dirent } from "node:fs";
import { open, readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import * as Y from "yjs";

import { isErrno } from "../shared/io/system-error.ts";
import { SettingError } from "../shared/settings/settings.ts";
import { isEmptyUpdate, isUpdate } from "../client/yjs/yjs-edits.ts";

type ImportSource = {
  readonly kind: string;
  readonly names: readonly string[];
  /** Folders beside the files. Their files are not read. */
  readonly skippedFolders?: readonly string[];
  /** Throws an error with its remedy if the document is damaged or cannot be read. */
  read(name: string): Promise<Uint8Array>;
  close(): Promise<void>;
};

/** The part of y-leveldb that is used. The declarations of the package cannot be imported. */
type YLeveldb = {
  readonly LeveldbPersistence: new (folder: string) => {
    /** Null: the folder or the document cannot be read. The reason is printed on stderr. */
    getAllDocNames(): Promise<string[] | null>;
    getYDoc(name: string): Promise<Y.Doc | null>;
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
  const source = await sourceAt(path).catch((cause: unknown) => {
    if (isErrno(cause, "ENOENT", "ENOTDIR")) throw new SettingError(`cannot read ${path}: there is no such file or folder`, { cause });
    const reason = unreadableReason(path, cause);
    throw reason === undefined ? cause : new SettingError(reason, { cause });
  });
  return { ...source, read: async (name) => checkedUpdate(await source.read(name)) };
}

async function sourceAt(path: string): Promise<ImportSource> {
  if (!(await stat(path)).isDirectory()) return (await isSqlite(path)) ? hocuspocusDatabase(path) : notReadable(path);
  const entries = await readdir(path, { withFileTypes: true });
  if (entries.some(({ name }) => name === LEVELDB_FILE)) return levelDb(path);
  return updateFiles(path, entries, await skippedIn(path, entries));
}

async function skippedIn(path: string, entries: readonly Dirent[]): Promise<readonly string[]> {
  const names: string[] = [];
  for (const entry of entries) {
    if (!UPDATE_FILE.test(entry.name) && (await isFolder(path, entry))) names.push(entry.name);
  }
  return names.toSorted();
}

/** Follows a symbolic link. A link to nothing is no folder. */
async function isFolder(path: string, entry: Dirent): Promise<boolean> {
  if (!entry.isSymbolicLink()) return entry.isDirectory();
  return stat(join(path, entry.name)).then(
    (target) => target.isDirectory(),
    (cause: unknown) => {
      if (unreadableReason(path, cause) === undefined) throw cause;
      return false;
    },
  );
}

/** Undefined: the error is not from the operating system. */
function unreadableReason(path: string, cause: unknown): string | undefined {
  if (!(cause instanceof Error && "syscall" in cause && "code" in cause)) return undefined;
  return `cannot read ${path} (${String(cause.code)}). Check that it is a file or folder that this user may read`;
}

/**
 * A truncated update cannot be decoded. An update of version 2 begins like an empty one of version 1, so Yjs would read
 * no content from it and report no error.
 */
function checkedUpdate(update: Uint8Array): Uint8Array {
  if (update.byteLength === 0) throw new Error("it is empty. Copy it from the source again");
  if (!isUpdate(update))
    throw new Error(
      "it is truncated, damaged or no Yjs update of version 1. Copy it from the source again, or write it with Y.encodeStateAsUpdate",
    );
  const { structs, ds } = Y.decodeUpdate(update);
  if (structs.length === 0 && ds.clients.size === 0 && !isEmptyUpdate(update))
    throw new Error("it is no Yjs update of version 1. Convert an update of version 2 with Y.convertUpdateFormatV2ToV1");
  return update;
}

/** The name of a file is the escaped name of its document: `team%2Fnotes.yjs`. */
function updateFiles(folder: string, entries: readonly Dirent[], skippedFolders: readonly string[]): ImportSource {
  const byName = new Map<string, string>();
  for (const { name: file } of entries) {
    if (!UPDATE_FILE.test(file)) continue;
    const name = unescaped(file.replace(UPDATE_FILE, ""));
    const other = byName.get(name);
    if (other !== undefined)
      throw new SettingError(`${folder}: ${other} and ${file} are both the document ${JSON.stringify(name)}. Move one of them away`);
    byName.set(name, file);
  }
  if (byName.size === 0) return notReadable(folder, skippedFolders);
  return {
    kind: "files of Yjs updates",
    skippedFolders,
    names: [...byName.keys()],
    read: async (name) => {
      const file = join(folder, byName.get(name)!);
      return readFile(file).catch((cause: unknown) => {
        throw new Error(unreadableReason(file, cause) ?? `cannot read ${file}`, { cause });
      });
    },
    close: async () => {},
  };
}

async function hocuspocusDatabase(path: string): Promise<ImportSource> {
  const { default: Sqlite } = await installed("libsql", () => import("libsql"));
  const db = new Sqlite(path, { readonly: true } as never);
  const reasonOf = (cause: unknown, otherwise: string): string => {
    if (!(cause instanceof Sqlite.SqliteError)) throw cause;
    const remedy = cause.code === "SQLITE_BUSY" ? "Stop the server that uses the database, and repeat the command" : otherwise;
    return `cannot read the documents in ${path} (${cause.message}). ${remedy}`;
  };
  try {
    const names = db.prepare('SELECT name FROM "documents" ORDER BY name').all() as { name: string }[];
    const select = db.prepare('SELECT data FROM "documents" WHERE name = ?');
    return {
      kind: "SQLite database of Hocuspocus",
      names: names.map(({ name }) => name),
      read: async (name) => {
        let row: unknown;
        try {
          row = select.get(name);
        } catch (cause) {
          throw new Error(reasonOf(cause, "Copy the database again while its server does not run"), { cause });
        }
        return bytesIn((row as { data: unknown }).data);
      },
      close: async () => void db.close(),
    };
  } catch (cause) {
    db.close();
    const reason = reasonOf(
      cause,
      'Hocuspocus stores them in the table "documents" with the columns "name" and "data". If the database is damaged, copy it again while its server does not run',
    );
    throw new SettingError(reason, { cause });
  }
}

function bytesIn(data: unknown): Uint8Array {
  if (!(data instanceof Uint8Array)) throw new Error('its column "data" holds no bytes. Hocuspocus stores a Yjs update in it');
  return new Uint8Array(data);
}

async function levelDb(folder: string): Promise<ImportSource> {
  const { LeveldbPersistence } = await installed("y-leveldb", (): Promise<YLeveldb> => import(Y_LEVELDB));
  const db = new LeveldbPersistence(folder);
  const names = await db.getAllDocNames();
  if (names === null) {
    await db.destroy();
    throw new SettingError(
      `cannot read the LevelDB folder ${folder}. Stop the server that uses it. If no server uses it, copy the whole folder from the source again`,
    );
  }
  return {
    kind: "LevelDB folder of y-websocket",
    names,
    read: async (name) => {
      const doc = await db.getYDoc(name);
      if (doc === null) throw new Error("its updates in LevelDB are damaged. Copy the whole folder from the source again");
      return Y.encodeStateAsUpdate(doc);
    },
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

function notReadable(path: string, skippedFolders: readonly string[] = []): never {
  const below = skippedFolders.length === 0 ? "" : `. Its folders are not read: ${skippedFolders.join(", ")}`;
  throw new SettingError(
    `${path} holds no documents. Give a folder of *.yjs, *.bin or *.update files, a SQLite database of Hocuspocus, or a LevelDB folder of y-websocket${below}`,
  );
}

function unescaped(name: string): string {
  try {
    return decodeURIComponent(name);
  } catch {
    return name; // A single %: the name is not escaped.
  }
}
