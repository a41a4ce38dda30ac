import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { expect, onTestFinished, test } from "vitest";

import { readSettings, SettingError, type SettingSources } from "../shared/settings/settings.ts";
import type { PrintLine } from "./command.ts";
import { exportSettings } from "./command-settings.ts";
import { exportFileOf, exportRoom } from "./import.ts";
import { openSource } from "./import-sources.ts";

const run = (to: string, given: SettingSources["flags"] = {}, print: PrintLine = () => {}): Promise<void> =>
  exportRoom(
    readSettings(exportSettings, { flags: { room: "notes", to, token: "t", url: "http://127.0.0.1:1", ...given }, env: {} }),
    print,
  );
const newFolder = (): string => mkdtempSync(join(tmpdir(), "coroom-export-"));

test.runIf(process.platform === "linux")("[EXP1] a folder below /proc is refused at once, before a gateway is asked", async () => {
  await expect(run("/proc/coroom")).rejects.toThrow(SettingError);
  await expect(run("/proc/coroom/below")).rejects.toThrow(
    "cannot write into the folder /proc/coroom/below (ENOENT). Make it writable for this user, or set --to to another folder",
  );
});

test("[EXP2] a folder below a file is refused", async () => {
  const file = join(newFolder(), "file");
  writeFileSync(file, "");
  await expect(run(join(file, "below"))).rejects.toThrow(/cannot write into the folder .*below \(ENOTDIR\)/);
});

test.each([
  ["team/notes 100%", "team%2Fnotes%20100%25.yjs"],
  ["汉".repeat(27), `${encodeURIComponent("汉".repeat(27))}.yjs`],
  [`a/${"汉".repeat(60)}%`, `a%2F${"汉".repeat(60)}%25.yjs`],
])("[EXP4] the file of %s has a name that a file system accepts, and that an import reads", async (room, file) => {
  expect(exportFileOf(room, "yjs")).toBe(file);
  const folder = newFolder();
  writeFileSync(join(folder, file), "");
  expect((await openSource(folder)).names).toEqual([room]);
});

test("[EXP4] a name that is too long for any file names the alternative", () => {
  expect(() => exportFileOf("汉".repeat(128), "yjs")).toThrow(/too long for a file.*GET \/v1\/rooms\/\{room\}\/snapshot/);
});

test("[EXP5] rooms whose names differ only in case are refused before anything is written, because file systems can keep only one", async () => {
  const folder = newFolder();
  await expect(run(folder, { room: ["plan", "team/Notes", "team/notes", "plan"] })).rejects.toThrow(
    `${join(folder, "team%2FNotes.yjs")} and team%2Fnotes.yjs differ only in upper and lower case, so some file systems keep only one of them. Export one of the rooms into another folder (--to)`,
  );
  expect(readdirSync(folder)).toEqual([]);
  for (const file of ["Notes.md", "other", "Other"]) writeFileSync(join(folder, file), "of an earlier export");
  await expect(run(folder, { format: "markdown" })).rejects.toThrow("notes.md and Notes.md differ only in");
  await expect(run(folder, { format: "markdown", room: "Notes" }), "exported again").rejects.toThrow("the request to");
});

test("[EXP7] a room that cannot be exported is named, the others are exported, and the command fails with their number", async () => {
  const server = createServer(({ url }, response) => {
    const found = !url!.includes("/gone/");
    response
      .writeHead(found ? 200 : 404)
      .end(found ? "# Notes" : JSON.stringify({ error: "no-such-room", message: "there is no such room" }));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  const [folder, printed]: [string, string[]] = [newFolder(), []];
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const exported = run(folder, { room: ["first", "gone", "last"], format: "markdown", url }, (line) => void printed.push(line));
  await expect(exported).rejects.toThrow("1 of 3 rooms were not exported. Fix the causes above and repeat the command");
  expect(printed).toEqual([
    `first: 7 bytes in ${join(folder, "first.md")}`,
    "gone: failed: there is no such room",
    `last: 7 bytes in ${join(folder, "last.md")}`,
  ]);
  expect(readdirSync(folder).toSorted()).toEqual(["first.md", "last.md"]);
});

test("[EXP10] a room whose name contains a comma is exported", async () => {
  const server = createServer((request, response) => void response.end(`# ${decodeURIComponent(request.url!.split("/")[3]!)}`));
  await once(server.listen(0, "127.0.0.1"), "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const folder = newFolder();
  await run(folder, { room: "Q1, Q2", format: "markdown", url }).finally(() => server.close());
  expect(readFileSync(join(folder, exportFileOf("Q1, Q2", "md")), "utf8")).toBe("# Q1, Q2");
});

test("[EXP8] an export of no room is refused", async () => {
  await expect(async () => run(newFolder(), { room: "" })).rejects.toThrow("--room is not set");
  await expect(async () => run(newFolder(), { room: ["notes", " "] })).rejects.toThrow("--room contains only spaces");
});

test("[EXP6] a shared type is refused without a format that uses it", async () => {
  await expect(run(newFolder(), { type: "body:text" })).rejects.toThrow(
    "--type=body:text has no effect on files of Yjs updates, which contain all types. Set --format to prosemirror, html or markdown, or leave it out",
  );
});
