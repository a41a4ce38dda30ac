/**
 * Checks the behaviour of an object store that the document service requires. The same suite runs on JetStream, a
 * folder and S3 (OpenStack Swift).
 */

import { createHash, randomUUID } from "node:crypto";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { folderObjects } from "../../document-service/io/folder-objects.ts";
import { s3Objects } from "../../document-service/io/s3-objects.ts";
import type { ObjectStore } from "../../document-service/ports.ts";
import { OBJECT_STORES, type ObjectStoreCase, s3Case, START_MS_MAX } from "./object-store-cases.ts";

/** More parallel writes than a service makes. One process of Swift accepts no more. */
const AT_ONCE = 16;
const bytesOf = (length: number, seed = 1) => Uint8Array.from({ length }, (_, index) => (index * 31 + seed * 17 + (index >> 8)) & 255);
const digest = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");
const nameIn = (room = "acme.notes") => `${room}/1-7-${randomUUID()}`;

describe.each(OBJECT_STORES)("objects in %s", (_, start) => {
  let running: ObjectStoreCase;
  let store: ObjectStore;
  beforeAll(async () => {
    running = await start();
    store = await running.open();
  }, START_MS_MAX);
  afterAll(() => running?.stop());

  test.each([0, 1, 3_000_000, 20_000_000])(
    "[OBJ1] a written object is read back, byte for byte, by other adapters too: %i bytes",
    async (length) => {
      const [name, bytes] = [nameIn(), bytesOf(length)];
      await store.write(name, bytes);
      for (const reader of [store, await running.open()]) {
        const read = await reader.read(name);
        expect([read?.byteLength, digest(read!)]).toEqual([length, digest(bytes)]);
      }
    },
  );

  test("[OBJ2] a missing object is reported as missing, and may be removed again", async () => {
    const name = nameIn();
    expect(await store.read(name)).toBeUndefined();
    await store.write(name, bytesOf(10));
    await store.remove(name);
    await store.remove(name);
    expect([await store.read(name), (await store.list()).has(name)]).toEqual([undefined, false]);
  });

  test("[OBJ3] versions of a room exist side by side until each is removed, and all are listed", async () => {
    const names = [nameIn("acme.one"), nameIn("acme.one"), nameIn("acme.a=20b"), nameIn("acme.two")];
    for (const [index, name] of names.entries()) await store.write(name, bytesOf(100, index));
    expect([...(await store.list()).keys()]).toEqual(expect.arrayContaining(names));
    await store.remove(names[0]!);
    expect([...(await store.list()).keys()]).not.toContain(names[0]);
    expect(digest((await store.read(names[1]!))!)).toBe(digest(bytesOf(100, 1)));
  });

  test("[OBJ4] an object name of the maximum length works", async () => {
    const name = nameIn(`acme.${"=e2=80=a6".repeat(128)}`);
    await store.write(name, bytesOf(10));
    expect([digest((await store.read(name))!), (await store.list()).has(name)]).toEqual([digest(bytesOf(10)), true]);
  });

  test("[OBJ5] damaged bytes are never returned as the written ones", async () => {
    const [name, bytes] = [nameIn(), bytesOf(1_000_000)];
    await store.write(name, bytes);
    await running.damage(name);
    const read = await store.read(name).catch(() => "refused" as const);
    expect(read === "refused" || read === undefined || digest(read) !== digest(bytes)).toBe(true);
  });

  test("[OBJ6] objects that are written at once, and read at once, are all stored", async () => {
    const names = Array.from({ length: AT_ONCE }, () => nameIn("acme.many"));
    await Promise.all(names.map((name, index) => store.write(name, bytesOf(2_000, index))));
    const read = await Promise.all(names.map((name) => store.read(name)));
    expect(read.map((bytes) => digest(bytes!))).toEqual(names.map((__, index) => digest(bytesOf(2_000, index))));
    expect([...(await store.list()).keys()].filter((name) => name.startsWith("acme.many/"))).toHaveLength(AT_ONCE);
  });
});

describe("properties of only one store", () => {
  test("[OBJ7] a listing longer than one answer of S3 is complete, and a wrong secret is refused", { timeout: START_MS_MAX }, async () => {
    const running = await s3Case();
    try {
      const store = await running.open();
      const names = Array.from({ length: 48 }, (_, index) => `acme.listed/${index}`); // 40 objects per answer.
      for (let start = 0; start < names.length; start += AT_ONCE)
        await Promise.all(names.slice(start, start + AT_ONCE).map((name) => store.write(name, bytesOf(1))));
      expect([...(await store.list()).keys()].toSorted()).toEqual(names.toSorted());
      await expect(s3Objects({ ...running.options, s3SecretAccessKey: "wrong" }, "snapshots/")).rejects.toThrow(
        "COROOM_S3_SECRET_ACCESS_KEY",
      );
    } finally {
      await running.stop();
    }
  });

  test("[OBJ8] a file whose writer died during the write is no object, and is removed when it is old", async () => {
    const root = mkdtempSync(join(tmpdir(), "coroom-objects-"));
    mkdirSync(join(root, ".unfinished"));
    writeFileSync(join(root, ".unfinished", "half"), "ha");
    const store = await folderObjects(root);
    expect([await store.sweep(), [...(await store.list()).keys()], readdirSync(join(root, ".unfinished"))]).toEqual([0, [], ["half"]]); // The writer of the file may only be slow.
    utimesSync(join(root, ".unfinished", "half"), 0, 0);
    expect([await store.sweep(), readdirSync(join(root, ".unfinished"))]).toEqual([1, []]);
    await store.write("acme.a/1", bytesOf(5));
    expect(new Uint8Array(readFileSync(join(root, "acme.a", "1")))).toEqual(bytesOf(5));
    rmSync(root, { recursive: true, force: true });
  });
});
