/**
 * `coroom import` and `coroom export`: documents of other servers into rooms, and rooms into files. An import is an
 * ordinary client: it writes the content that the room lacks, waits until the log has it, and verifies it over a new
 * connection. So it may be interrupted and repeated, may run while clients use the room, and works for documents of any
 * size.
 */

import { readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import * as Y from "yjs";

import { parseRoomId, ROOM_ID_RULE } from "../shared/ids.ts";
import { makeFolder } from "../shared/io/make-folder.ts";
import { folderAdvice } from "../shared/io/system-error.ts";
import { SettingError, type Values } from "../shared/settings/settings.ts";
import { checkUpdate } from "../shared/yjs/checked-update.ts";
import { mergedEdits } from "../shared/yjs/merged-edits.ts";
import { CLOSE } from "../shared/wire/close-codes.ts";
import { type Refusal, RoomConnection } from "../client/index.ts";
import { serverAddressOf } from "../client/options.ts";
import { splitEdit, yjsEdits } from "../client/yjs/yjs-edits.ts";
import type { exportSettings, importSettings } from "./command-settings.ts";
import type { PrintLine } from "./command.ts";
import { DocumentError, DocumentsClient } from "./documents-client.ts";
import { openSource } from "./import-sources.ts";
import { gatewayFor } from "./local-addresses.ts";
import { localToken } from "./token.ts";

/** Small enough for the number of structs that a document accepts in one edit. */
const PIECE_BYTES_MAX = 64 * 1024;
/** Less than a room accepts while nothing is saved, so a document may be larger. */
export const UNSAVED_BYTES_MAX = 16 * 1024 ** 2;
/** A gateway that does not accept a connection in this time is reported as unreachable. */
const CONNECT_MS_MAX = 10_000;
/** A room that cannot be opened for this time fails, although the client would try again without end. */
const UNAVAILABLE_MS_MAX = 30_000;
/** An import fails if the room acknowledges none of its edits for this time, although the client would send them again without end. */
const UNSAVED_MS_MAX = 30_000;
const UNAVAILABLE: ReadonlySet<string> = new Set(["room-unavailable", "snapshot-unavailable"]);
/** HTTP status for a token that is refused or has expired. */
const UNAUTHORIZED = 401;
const ROOM_DELETED = "the room is deleted permanently"; // The message of the SDK is for applications.
const TOKEN_ADVICE = "Set --token (COROOM_TOKEN) to a valid token, or leave it out and set --jwt-secret to the gateways' secret";
/** Errors after which edits are not saved. */
const UNWRITABLE: ReadonlySet<string> = new Set(["edit-too-large", "read-only", "outbox-full"]);
/** A Yjs update without structs and deletions. */
const EMPTY_UPDATE = Uint8Array.of(0, 0);

type Target = Omit<Values<typeof importSettings>, "from" | "prefix">;
type Outcome = "imported" | "unchanged";

/** Reports each document that cannot be imported and continues. Throws at the end if there were such documents. */
export async function importDocuments({ from, prefix, ...target }: Values<typeof importSettings>, print: PrintLine): Promise<void> {
  const source = await openSource(from);
  const counts = { imported: 0, unchanged: 0, failed: 0 };
  print(`${source.kind}: ${source.names.length} documents`);
  const skippedFolders = source.skippedFolders ?? [];
  if (skippedFolders[0] !== undefined)
    print(
      `not imported: the folders ${skippedFolders.join(", ")} in ${from}. Import each by itself, for example: coroom import ${shellWord(join(from, skippedFolders[0]))} --prefix ${shellWord(`${prefix}${skippedFolders[0]}/`)}`,
    );
  try {
    for (const [index, name] of source.names.entries()) {
      const outcome = await importOne(target, `${prefix}${name}`, () => source.read(name)).catch((error: Error) => {
        if (error instanceof SettingError) throw error; // No document can be imported.
        return error;
      });
      counts[typeof outcome === "string" ? outcome : "failed"] += 1;
      print(
        `${index + 1}/${source.names.length} ${prefix}${name}: ${typeof outcome === "string" ? outcome : `failed: ${outcome.message}`}`,
      );
    }
  } finally {
    await source.close();
  }
  print(`${counts.imported} imported, ${counts.unchanged} unchanged, ${counts.failed} failed`);
  if (counts.failed > 0) throw new SettingError("some documents were not imported. Fix the causes above and repeat the command");
}

/** Quoted if a shell would read it as anything but one word. */
function shellWord(text: string): string {
  return /^[\w./:@%+=-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

/** Ends of the names of files, by format. */
const FILE_ENDINGS = { yjs: "yjs", prosemirror: "json", html: "html", markdown: "md" } as const;

/**
 * Writes each room's content to a file: a Yjs update that `coroom import` reads, or the rich text in another format. Reports
 * each room that cannot be exported and continues. Throws at the end if there were such rooms.
 */
export async function exportRoom({ room, to, format, type, ...target }: Values<typeof exportSettings>, print: PrintLine): Promise<void> {
  if (format === "yjs" && type !== "")
    throw new SettingError(
      `--type=${type} has no effect on files of Yjs updates, which contain all types. Set --format to prosemirror, html or markdown, or leave it out`,
    );
  const files = room.map((name) => exportFileOf(name, FILE_ENDINGS[format]));
  writing(to, () => {
    makeFolder(to);
    refuseTwins(to, files);
  });
  let failedCount = 0;
  for (const [index, name] of room.entries()) {
    const read = format === "yjs" ? storedRoom(target, name) : renderedRoom(target, name, { format, type });
    const content = await read.catch((error: Error) => {
      if (error instanceof SettingError) throw error; // No room can be exported.
      return error;
    });
    if (content instanceof Error) {
      failedCount += 1;
      print(`${name}: failed: ${content.message}`);
      continue;
    }
    const file = join(to, files[index]!);
    writing(to, () => replaceFile(file, content));
    print(`${name}: ${content.byteLength} bytes in ${file}`);
  }
  if (failedCount > 0)
    throw new SettingError(`${failedCount} of ${room.length} rooms were not exported. Fix the causes above and repeat the command`);
}

/** A file of an earlier export stays until the new one is complete, also on a full disk. */
function replaceFile(file: string, content: Uint8Array): void {
  const part = join(dirname(file), `.coroom-export-${process.pid}.part`); // Short: the name of the file may be as long as possible.
  try {
    writeFileSync(part, content);
    renameSync(part, file);
  } catch (cause) {
    rmSync(part, { force: true });
    throw cause;
  }
}

async function storedRoom(target: Target, room: string): Promise<Uint8Array> {
  const content = await withRoom(target, room, async (opened) => opened.content());
  if (content.byteLength <= EMPTY_UPDATE.byteLength)
    throw new Error('it has no document. "coroom rooms" lists the rooms that have one. No file was written for it');
  return content;
}

/** Bytes of a file's name on all common file systems. */
const FILE_NAME_BYTES_MAX = 255;

/** The escaped name of the room. Escaped letters of most scripts are nine characters each, so a long name keeps its letters. */
export function exportFileOf(room: string, ending: string): string {
  const names = [encodeURIComponent(room), room.replace(/[%/\\:*?"<>|]/g, encodeURIComponent)].map((name) => `${name}.${ending}`);
  const file = names.find((name) => Buffer.byteLength(name) <= FILE_NAME_BYTES_MAX);
  if (file === undefined) throw new SettingError(`${room} is too long for a file's name. Read it with GET /v1/rooms/{room}/snapshot`);
  return file;
}

/** File systems of macOS and Windows ignore case: the file of one room would replace that of another. */
function refuseTwins(folder: string, files: readonly string[]): void {
  const known = new Map<string, Set<string>>();
  for (const file of [...readdirSync(folder), ...files]) {
    const folded = file.toLowerCase();
    known.set(folded, (known.get(folded) ?? new Set()).add(file));
  }
  for (const file of files) {
    const other = [...known.get(file.toLowerCase())!].find((one) => one !== file);
    if (other === undefined) continue;
    throw new SettingError(
      `${join(folder, file)} and ${other} differ only in upper and lower case, so some file systems keep only one of them. Export one of the rooms into another folder (--to)`,
    );
  }
}

/** The document service converts it, within its limits. */
async function renderedRoom(target: Target, room: string, { format, type }: { format: string; type: string }): Promise<Uint8Array> {
  const token = target.token || (await localToken({ ...target, room: [room], user: "import", name: "", rights: ["read"], ttl: 86_400 }));
  const client = new DocumentsClient(serverAddressOf(gatewayFor(target)).http, () => Promise.resolve(token));
  const wanted = new URLSearchParams({ format, ...(type === "" ? {} : { type }) });
  const answer = await client.ask(`/${encodeURIComponent(room)}/document?${wanted}`).catch((cause: unknown) => {
    if (!(cause instanceof DocumentError && cause.status === UNAUTHORIZED)) throw cause;
    throw new SettingError(`${cause.message}. ${TOKEN_ADVICE}`, { cause }); // The other rooms would be refused too.
  });
  return answer.bytes;
}

/** Throws SettingError if the operating system refuses a folder or a file in it. */
function writing(folder: string, write: () => void): void {
  try {
    write();
  } catch (cause) {
    if (!(cause instanceof Error && "syscall" in cause && "code" in cause)) throw cause;
    throw new SettingError(
      `cannot write into the folder ${folder} (${String(cause.code)}). ${folderAdvice(cause)}, or set --to to another folder`,
      { cause },
    );
  }
}

async function importOne(target: Target, room: string, read: () => Promise<Uint8Array>): Promise<Outcome> {
  if (parseRoomId(room) === undefined) throw new Error(`its name is no room id: ${ROOM_ID_RULE}`);
  const update = await read();
  const outcome = await withRoom<Outcome>(target, room, async ({ connection, content, saved }) => {
    if (contains(content(), update)) return "unchanged";
    const valueBytesMax = connection.editBytesMax!; // Known since the join.
    const pieces = splitEdit(update, PIECE_BYTES_MAX, valueBytesMax);
    if (pieces === undefined)
      throw new Error(
        `one of its values, such as an embedded picture, is longer than ${valueBytesMax} bytes, the most in one edit. Raise COROOM_EDIT_BYTES_MAX as docs/operations/limits.md explains, and repeat the command`,
      );
    await sendPieces(pieces, (piece) => connection.send(piece), saved);
    return "imported";
  });
  if (outcome === "unchanged") return outcome;
  const isThere = await withRoom(target, room, async ({ content }) => contains(content(), update));
  if (!isThere) throw new Error("the room does not have all of it afterwards. Repeat the command");
  return outcome;
}

/** Resolves when all pieces are saved. Only a part of a large document waits in the room at a time. */
export async function sendPieces(
  pieces: readonly Uint8Array[],
  send: (piece: Uint8Array) => void,
  saved: () => Promise<void>,
): Promise<void> {
  let unsavedBytes = 0;
  for (const piece of pieces) {
    send(piece);
    unsavedBytes += piece.byteLength;
    if (unsavedBytes < UNSAVED_BYTES_MAX) continue;
    await saved();
    unsavedBytes = 0;
  }
  await saved();
}

/** Compares state vector and deletions. */
function contains(content: Uint8Array, update: Uint8Array): boolean {
  const doc = new Y.Doc();
  Y.applyUpdate(doc, content);
  const isContained = Y.snapshotContainsUpdate(Y.snapshot(doc), update);
  doc.destroy();
  return isContained;
}

type OpenRoom = {
  readonly connection: RoomConnection;
  /** The room's content at the time of the join, and the edits since then. */
  readonly content: () => Uint8Array;
  readonly saved: () => Promise<void>;
};

function unreachable(url: string): SettingError {
  const seconds = CONNECT_MS_MAX / 1_000;
  return new SettingError(`no gateway at ${url} accepted a connection in ${seconds} s. Start Coroom, or set --url to a gateway's address`);
}

/**
 * Close codes with which the other rooms would be refused too. Others may be due to one document, or to a kick. The port
 * of the bridge answers with `badFrame`; no document causes it.
 */
const REFUSED_FOR_ALL: readonly number[] = [
  CLOSE.unauthorized.code,
  CLOSE.badFrame.code,
  CLOSE.versionUnsupported.code,
  CLOSE.otherProtocol.code,
];

/** SettingError: the other rooms would be refused too. */
function refusedBecause(refusal: Refusal): Error {
  switch (refusal.kind) {
    case "room-refused":
      return new Error(refusal.reason === "deleted" ? ROOM_DELETED : refusal.message);
    case "token-expired":
      return new SettingError(`the token has expired. ${TOKEN_ADVICE}`);
    case "connection-refused":
      if (refusal.code === CLOSE.unauthorized.code) return new SettingError(`${refusal.message}. ${TOKEN_ADVICE}`);
      return REFUSED_FOR_ALL.includes(refusal.code) ? new SettingError(refusal.message) : new Error(refusal.message);
  }
}

/** Rejects once the room has acknowledged no edit for `UNSAVED_MS_MAX`. The other rooms would wait as long. */
async function stalled(connection: RoomConnection, signal: AbortSignal): Promise<never> {
  for (let unsaved = Infinity; ;) {
    const before = unsaved;
    unsaved = connection.unsavedEdits;
    if (unsaved >= before) break;
    await sleep(UNSAVED_MS_MAX, undefined, { signal });
  }
  const seconds = UNSAVED_MS_MAX / 1_000;
  const why = connection.outage?.why ?? (connection.saving === "refusing" ? "the log stores no edits" : "the log does not answer");
  throw new SettingError(
    `no edit was saved for ${seconds} s: ${why}. Run "coroom doctor" and fix the cause, then repeat the command: it continues with what the rooms lack`,
  );
}

async function withRoom<T>(target: Target, room: string, use: (room: OpenRoom) => Promise<T>): Promise<T> {
  const token =
    target.token || (await localToken({ ...target, room: [room], user: "import", name: "", rights: ["read", "write"], ttl: 86_400 }));
  const url = gatewayFor(target);
  const connection = new RoomConnection({ url, token, room, format: yjsEdits });
  let [base, edits]: [Uint8Array, Uint8Array[]] = [EMPTY_UPDATE, []];
  connection.on("snapshot", ({ payload }) => ([base, edits] = [payload, []]));
  connection.on("rolled-back", () => ([base, edits] = [EMPTY_UPDATE, []]));
  connection.on("edits", (received) => {
    for (const { payload } of received) if (checkUpdate(payload).kind === "fit") edits.push(payload); // Documents leave out the others.
  });
  let connecting: NodeJS.Timeout | undefined;
  let opening: NodeJS.Timeout | undefined;
  let unavailable: string | undefined;
  /** The first reason why there is nothing to wait for. An error comes once, perhaps while pieces are sent. */
  const failed = new Promise<never>((_, reject) => {
    connecting = setTimeout(() => {
      const { outage } = connection;
      if (outage !== undefined && outage.reason === undefined) reject(unreachable(url));
    }, CONNECT_MS_MAX);
    opening = setTimeout(() => {
      if (unavailable !== undefined) reject(new Error(`${unavailable}. Repeat the command once it can be opened`));
      else if (connection.status !== "connected") reject(unreachable(url));
    }, UNAVAILABLE_MS_MAX);
    connection.on("refused", (refusal) => reject(refusedBecause(refusal)));
    connection.on("connection-close", (close) => {
      if (close?.code !== CLOSE.banned.code) return;
      // A ban from all rooms, which may last for days. The client waits for its end.
      reject(new SettingError(`${connection.outage?.why ?? close.reason}. Repeat the command when the ban has ended`));
    });
    connection.on("error", (problem) => {
      if (UNWRITABLE.has(problem.kind)) reject(new Error(problem.message));
      if (!UNAVAILABLE.has(problem.kind)) return;
      unavailable = problem.message.replace(", will retry", "");
      // A ban from the room may last for days.
      if (problem.kind === "room-unavailable" && problem.reason === "not-allowed")
        reject(new Error(`${unavailable}. Repeat the command when the ban has ended`));
    });
  });
  failed.catch(() => {}); // Nobody may wait when it happens.
  const until = (event: "synced" | "saved"): Promise<void> => {
    const happened = new Promise<void>((resolve) => (connection[event] ? resolve() : connection.on(event, (is) => is && resolve())));
    return Promise.race([failed, happened]);
  };
  const closed = new AbortController();
  const saved = (): Promise<void> => Promise.race([until("saved"), stalled(connection, closed.signal)]);
  try {
    await until("synced");
    clearTimeout(connecting);
    clearTimeout(opening);
    return await use({ connection, content: () => mergedEdits(base, edits), saved });
  } finally {
    clearTimeout(connecting);
    clearTimeout(opening);
    closed.abort();
    connection.destroy();
  }
}
