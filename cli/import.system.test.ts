/** `coroom import` and `coroom export` against real processes. */

import { mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { afterAll, beforeAll, expect, test } from "vitest";
import * as Y from "yjs";

import { readSettings } from "../shared/settings/settings.ts";
import { RoomConnection } from "../client/index.ts";
import { SystemCluster } from "../test/system/cluster.ts";
import { exportSettings, importSettings } from "./command-settings.ts";
import { exportRoom, importDocuments } from "./import.ts";

let cluster: SystemCluster;
beforeAll(async () => {
  cluster = await SystemCluster.start({ gateways: 1, roomServers: 1 });
});
afterAll(() => cluster?.stop());

const textIn = (update: Uint8Array): string => {
  const doc = new Y.Doc();
  Y.applyUpdate(doc, update);
  return doc.getText("t").toJSON();
};

test("[IMP5] documents, even those with more than 512 KiB or with deletions, are imported once and exported unchanged", async () => {
  const [files, out] = [mkdtempSync(join(tmpdir(), "coroom-import-")), mkdtempSync(join(tmpdir(), "coroom-export-"))];
  const long = new Y.Doc();
  const text = long.getText("t");
  for (let paragraph = 0; paragraph < 400; paragraph++) text.insert(0, `paragraph ${paragraph} ${"words ".repeat(300)}\n`);
  text.delete(100, 5_000);
  const short = new Y.Doc();
  short.getText("t").insert(0, "short");
  expect(Y.encodeStateAsUpdate(long).byteLength).toBeGreaterThan(600 * 1024);
  writeFileSync(join(files, "team%2Flong.yjs"), Y.encodeStateAsUpdate(long));
  writeFileSync(join(files, "short.yjs"), Y.encodeStateAsUpdate(short));
  const token = await cluster.token("old/*", "importer");
  const url = cluster.gateways[0]!.url.replace("ws", "http");
  const run = async (): Promise<string[]> => {
    const printed: string[] = [];
    const flags = { from: files, prefix: "old/", token, url };
    await importDocuments(readSettings(importSettings, { flags, env: {} }), (line) => void printed.push(line));
    return printed;
  };
  expect((await run()).at(-1)).toBe("2 imported, 0 unchanged, 0 failed");
  short.getText("t").insert(5, " and longer");
  writeFileSync(join(files, "short.yjs"), Y.encodeStateAsUpdate(short));
  expect((await run()).at(-1)).toBe("1 imported, 1 unchanged, 0 failed");
  const room = ["old/team/long", "old/short"];
  await exportRoom(readSettings(exportSettings, { flags: { room, to: out, token, url }, env: {} }), () => {});
  expect(textIn(readFileSync(join(out, "old%2Fteam%2Flong.yjs")))).toBe(text.toJSON());
  expect(textIn(readFileSync(join(out, "old%2Fshort.yjs")))).toBe("short and longer");
});

test("[EXP3] a room is exported as the Markdown, HTML and JSON of its rich text, and one without rich text is named", async () => {
  const [files, out] = [mkdtempSync(join(tmpdir(), "coroom-import-")), mkdtempSync(join(tmpdir(), "coroom-export-"))];
  const doc = new Y.Doc();
  doc.clientID = 1; // A retry imports the same document again, and changes nothing.
  const paragraph = new Y.XmlElement("paragraph");
  paragraph.insert(0, [new Y.XmlText("Hello & *goodbye*")]);
  doc.getXmlFragment("default").insert(0, [paragraph]);
  writeFileSync(join(files, "rich.yjs"), Y.encodeStateAsUpdate(doc));
  const map = new Y.Doc();
  map.clientID = 1;
  map.getMap("meta").set("a", 1);
  writeFileSync(join(files, "map.yjs"), Y.encodeStateAsUpdate(map));
  const flags = { token: await cluster.token("*", "importer"), url: cluster.gateways[0]!.url.replace("ws", "http") };
  await importDocuments(readSettings(importSettings, { flags: { ...flags, from: files }, env: {} }), () => {});
  const printed: string[] = [];
  const run = (room: string, format: string): Promise<void> =>
    exportRoom(readSettings(exportSettings, { flags: { ...flags, room, to: out, format }, env: {} }), (line) => void printed.push(line));
  for (const format of ["markdown", "html", "prosemirror"]) await run("rich", format);
  expect(readFileSync(join(out, "rich.md"), "utf8")).toBe("Hello & \\*goodbye\\*\n");
  expect(readFileSync(join(out, "rich.html"), "utf8")).toBe("<p>Hello &amp; *goodbye*</p>\n");
  expect(JSON.parse(readFileSync(join(out, "rich.json"), "utf8"))).toEqual({
    type: "doc",
    content: [{ type: "paragraph", content: [{ type: "text", text: "Hello & *goodbye*" }] }],
  });
  await expect(run("map", "html")).rejects.toThrow("1 of 1 rooms were not exported");
  expect(printed.at(-1)).toContain("map: failed: there is no rich text in this document");

  const url = `${flags.url}/v1/rooms/rich/document?format=html`;
  const answer = await fetch(url, { headers: { authorization: `Bearer ${flags.token}` } });
  expect([answer.headers.get("content-type"), answer.headers.get("content-security-policy"), answer.headers.get("x-coroom-seq")]).toEqual([
    "text/html; charset=utf-8",
    "default-src 'none'; sandbox",
    "1",
  ]);
});

test("[IMP6] a document that cannot be imported is named, and the others are imported", async () => {
  const files = mkdtempSync(join(tmpdir(), "coroom-import-"));
  const doc = new Y.Doc();
  doc.getText("t").insert(0, "text");
  writeFileSync(join(files, "good.yjs"), Y.encodeStateAsUpdate(doc));
  writeFileSync(join(files, "bad.yjs"), "no update");
  const printed: string[] = [];
  const flags = { from: files, token: await cluster.token("*", "importer"), url: cluster.gateways[0]!.url.replace("ws", "http") };
  await expect(importDocuments(readSettings(importSettings, { flags, env: {} }), (line) => void printed.push(line))).rejects.toThrow(
    "some documents were not imported",
  );
  expect(printed.filter((line) => line.includes("bad: failed"))).toHaveLength(1);
  expect(printed.at(-1)).toBe("1 imported, 0 unchanged, 1 failed");
});

test("[IMP22] a value that fits an edit is imported, such as an embedded picture, and a longer one is refused with its remedy", async () => {
  const files = mkdtempSync(join(tmpdir(), "coroom-import-"));
  for (const [name, bytes] of Object.entries({ fits: 300_000, large: 600_000 })) {
    const doc = new Y.Doc();
    const image = new Y.XmlElement("image");
    image.setAttribute("src", `data:image/png;base64,${"A".repeat(bytes)}`);
    doc.getXmlFragment("default").insert(0, [image]);
    writeFileSync(join(files, `${name}.yjs`), Y.encodeStateAsUpdate(doc));
  }
  const printed: string[] = [];
  const flags = { from: files, prefix: "picture-", token: await cluster.token("*", "importer"), url: cluster.gateways[0]!.httpUrl };
  const run = importDocuments(readSettings(importSettings, { flags, env: {} }), (line) => void printed.push(line));
  await expect(run).rejects.toThrow("some documents were not imported");
  const line = (room: string): string => printed.find((one) => one.includes(`picture-${room}: `))!;
  expect(line("fits")).toMatch(/: imported$/);
  expect(line("large")).toMatch(/: failed: one of its values.* is longer than \d+ bytes.*Raise COROOM_EDIT_BYTES_MAX/);
});

// IMP7, IMP15 and IMP25 mostly wait for time limits of the commands, so these tests run at the same time.
test.concurrent("[IMP7] a missing room, a refused token and a gateway that does not answer are named, and no file is written", async () => {
  const out = mkdtempSync(join(tmpdir(), "coroom-export-"));
  const token = await cluster.token("old/*", "exporter");
  const printed: string[] = [];
  const run = (url: string, ...room: string[]): Promise<void> =>
    exportRoom(readSettings(exportSettings, { flags: { room, to: out, token, url }, env: {} }), (line) => void printed.push(line));
  await expect(run(cluster.gateways[0]!.url.replace("ws", "http"), "old/never", "others")).rejects.toThrow(
    "2 of 2 rooms were not exported",
  );
  expect(printed[0]).toMatch(/^old\/never: failed: it has no document.*coroom rooms/);
  expect(printed[1]).toMatch(/^others: failed: .*does not open/);
  await expect(run("http://127.0.0.1:1", "old/never")).rejects.toThrow(/no gateway at http:\/\/127.0.0.1:1 .*--url/);
  expect(readdirSync(out)).toEqual([]);
});

test.concurrent(
  "[IMP15] a room that cannot be opened is named with the reason, and the command ends",
  async () => {
    const without = await SystemCluster.start({ gateways: 1, roomServers: 0 });
    try {
      const files = mkdtempSync(join(tmpdir(), "coroom-import-"));
      const doc = new Y.Doc();
      doc.getText("t").insert(0, "text");
      writeFileSync(join(files, "notes.yjs"), Y.encodeStateAsUpdate(doc));
      const printed: string[] = [];
      const flags = { from: files, token: await without.token("*", "importer"), url: without.gateways[0]!.url.replace("ws", "http") };
      const run = importDocuments(readSettings(importSettings, { flags, env: {} }), (line) => void printed.push(line));
      await expect(run).rejects.toThrow(/some documents were not imported/);
      expect(printed[1]).toMatch(/^1\/1 notes: failed: cannot join the room now: .*\. Repeat the command once it can be opened$/);
    } finally {
      await without.stop();
    }
  },
  90_000,
);

test.concurrent(
  "[IMP25] an import whose edits are not saved ends with the reason, instead of waiting without end",
  async () => {
    const dying = await SystemCluster.start({ gateways: 1, roomServers: 1 });
    try {
      const files = mkdtempSync(join(tmpdir(), "coroom-import-"));
      const doc = new Y.Doc();
      for (let paragraph = 0; paragraph < 3_000; paragraph++) doc.getText("t").insert(0, `${paragraph} ${"words ".repeat(500)}\n`);
      for (const name of ["one", "two"]) writeFileSync(join(files, `${name}.yjs`), Y.encodeStateAsUpdate(doc));
      const [{ url: socket, httpUrl: url, process: gateway }] = [dying.gateways[0]!];
      const watchers = ["one", "two"].map(
        async (room) => new RoomConnection({ url: socket, token: await dying.token("*", "watcher"), room }),
      );
      for (const watcher of await Promise.all(watchers)) watcher.once("edits", () => void gateway.kill());
      const printed: string[] = [];
      const flags = { from: files, token: await dying.token("*", "importer"), url };
      const run = importDocuments(readSettings(importSettings, { flags, env: {} }), (line) => void printed.push(line));
      await expect(run).rejects.toThrow(/^no edit was saved for \d+ s: .*coroom doctor.*repeat the command/);
      expect(printed).toEqual(["files of Yjs updates: 2 documents"]);
      for (const watcher of await Promise.all(watchers)) watcher.destroy();
    } finally {
      await dying.stop();
    }
  },
  120_000,
);

test("[IMP12] a token that may only read is reported for each document, and the command ends", async () => {
  const files = mkdtempSync(join(tmpdir(), "coroom-import-"));
  const doc = new Y.Doc();
  doc.getText("t").insert(0, "not written");
  writeFileSync(join(files, "readonly.yjs"), Y.encodeStateAsUpdate(doc));
  const token = await cluster.token("*", "reader", { rights: ["read"] });
  const printed: string[] = [];
  const flags = { from: files, token, url: cluster.gateways[0]!.url.replace("ws", "http") };
  const run = importDocuments(readSettings(importSettings, { flags, env: {} }), (line) => void printed.push(line));
  await expect(run).rejects.toThrow(/some documents were not imported/);
  expect(printed[1]).toMatch(/^1\/1 readonly: failed: .*may only read/);
}, 20_000);

test("[IMP19] a token that is refused or has expired ends the command at the first document or room, and no file is written", async () => {
  const [files, out] = [mkdtempSync(join(tmpdir(), "coroom-import-")), mkdtempSync(join(tmpdir(), "coroom-export-"))];
  for (const name of ["one", "two"]) writeFileSync(join(files, `${name}.yjs`), Y.encodeStateAsUpdate(new Y.Doc()));
  const valid = await cluster.token("*", "importer");
  const tokens: [string, RegExp][] = [
    [`${valid.slice(0, valid.lastIndexOf("."))}.${"A".repeat(43)}`, /token.*refused.*\. Set --token .* to a valid token/],
    [await cluster.token("*", "importer", { ttl: -60 }), /^the token has expired.*\. Set --token .* to a valid token/],
  ];
  const url = cluster.gateways[0]!.httpUrl;
  for (const [token, message] of tokens) {
    const printed: string[] = [];
    const print = (line: string): void => void printed.push(line);
    for (const format of ["yjs", "markdown"]) {
      const flags = { token, url, to: out, room: "one,two", format };
      await expect(exportRoom(readSettings(exportSettings, { flags, env: {} }), print)).rejects.toThrow(message);
    }
    expect(printed).toEqual([]);
    const imported = importDocuments(readSettings(importSettings, { flags: { token, url, from: files }, env: {} }), print);
    await expect(imported).rejects.toThrow(message);
    expect(printed).toEqual(["files of Yjs updates: 2 documents"]);
  }
  expect(readdirSync(out)).toEqual([]);
});

test("[IMP21] a deleted room is named as deleted, without advice for applications", async () => {
  const [files, out] = [mkdtempSync(join(tmpdir(), "coroom-import-")), mkdtempSync(join(tmpdir(), "coroom-export-"))];
  const doc = new Y.Doc();
  doc.getText("t").insert(0, "text");
  writeFileSync(join(files, "gone.yjs"), Y.encodeStateAsUpdate(doc));
  const { httpUrl: url } = cluster.gateways[0]!;
  const flags = { token: await cluster.token("*", "exporter"), url };
  const printed: string[] = [];
  const print = (line: string): void => void printed.push(line);
  const imported = () => importDocuments(readSettings(importSettings, { flags: { ...flags, from: files }, env: {} }), print);
  await imported();
  const headers = { authorization: `Bearer ${cluster.operatorSecret}` };
  expect((await fetch(`${url}/v1/rooms/gone?tenant=default`, { method: "DELETE", headers })).status).toBeOneOf([200, 202]);

  printed.length = 0;
  const exported = exportRoom(readSettings(exportSettings, { flags: { ...flags, to: out, room: "gone" }, env: {} }), print);
  await expect(exported).rejects.toThrow("1 of 1 rooms were not exported");
  await expect(imported()).rejects.toThrow("some documents were not imported");
  const why = "failed: the room is deleted permanently";
  expect([printed[0], printed[2]]).toEqual([`gone: ${why}`, `1/1 gone: ${why}`]);
});

test("[IMP18] a user who is banned from the room, before or during an import, is reported at once with the reason", async () => {
  const [files, out] = [mkdtempSync(join(tmpdir(), "coroom-import-")), mkdtempSync(join(tmpdir(), "coroom-export-"))];
  const doc = new Y.Doc();
  for (let paragraph = 0; paragraph < 3_000; paragraph++) doc.getText("t").insert(0, `${paragraph} ${"words ".repeat(500)}\n`);
  writeFileSync(join(files, "banned.yjs"), Y.encodeStateAsUpdate(doc));
  const [{ url: socket, httpUrl: url }] = [cluster.gateways[0]!];
  const flags = { token: await cluster.token("*", "banned-importer"), url };
  const watcher = new RoomConnection({ url: socket, token: await cluster.token("*", "watcher"), room: "banned" });
  const banned = new Promise<Response>((resolve, reject) =>
    watcher.once("edits", () => {
      const asked = { tenant: "default", user: "banned-importer", room: "banned", seconds: 3_600, reason: "spam" };
      const headers = { authorization: `Bearer ${cluster.operatorSecret}` };
      fetch(`${url}/v1/admin/ban`, { method: "POST", headers, body: JSON.stringify(asked) }).then(resolve, reject);
    }),
  );
  const why = "cannot join the room now: banned from the room for a time: spam. Repeat the command when the ban has ended";
  const printed: string[] = [];
  const print = (line: string): void => void printed.push(line);
  const imported = importDocuments(readSettings(importSettings, { flags: { ...flags, from: files }, env: {} }), print);
  await expect(imported).rejects.toThrow("some documents were not imported");
  expect((await banned).status).toBe(200);
  watcher.destroy();
  const exported = exportRoom(readSettings(exportSettings, { flags: { ...flags, to: out, room: "banned" }, env: {} }), print);
  await expect(exported).rejects.toThrow("1 of 1 rooms were not exported");
  expect([printed[1], printed.at(-1)]).toEqual([`1/1 banned: failed: ${why}`, `banned: failed: ${why}`]);
});

test("[IMP20] a user who is banned from all rooms, before or during an import, ends the command with the reason", async () => {
  const [files, out] = [mkdtempSync(join(tmpdir(), "coroom-import-")), mkdtempSync(join(tmpdir(), "coroom-export-"))];
  const doc = new Y.Doc();
  for (let paragraph = 0; paragraph < 3_000; paragraph++) doc.getText("t").insert(0, `${paragraph} ${"words ".repeat(500)}\n`);
  writeFileSync(join(files, "all.yjs"), Y.encodeStateAsUpdate(doc));
  const [{ url: socket, httpUrl: url }] = [cluster.gateways[0]!];
  const flags = { token: await cluster.token("*", "banned-from-all"), url };
  const watcher = new RoomConnection({ url: socket, token: await cluster.token("*", "watcher"), room: "all" });
  const banned = new Promise<Response>((resolve, reject) =>
    watcher.once("edits", () => {
      const asked = { tenant: "default", user: "banned-from-all", seconds: 3_600, reason: "spam" };
      const headers = { authorization: `Bearer ${cluster.operatorSecret}` };
      fetch(`${url}/v1/admin/ban`, { method: "POST", headers, body: JSON.stringify(asked) }).then(resolve, reject);
    }),
  );
  const why = /spam.*Repeat the command when the ban has ended/;
  const imported = importDocuments(readSettings(importSettings, { flags: { ...flags, from: files }, env: {} }), () => {});
  await expect(imported).rejects.toThrow(why);
  expect((await banned).status).toBe(200);
  watcher.destroy();
  const exported = exportRoom(readSettings(exportSettings, { flags: { ...flags, to: out, room: "all" }, env: {} }), () => {});
  await expect(exported).rejects.toThrow(why);
});
