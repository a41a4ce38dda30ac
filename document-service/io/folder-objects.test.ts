import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { expect, test } from "vitest";

import { folderObjects } from "./folder-objects.ts";

test("[FOB1] a folder in which two rooms could share files is refused, with the remedy", async () => {
  const folder = mkdtempSync(join(tmpdir(), "coroom-folder-"));
  try {
    await expect(folderObjects(folder)).resolves.toBeDefined();
    symlinkSync(join(folder, ".unfinished"), join(folder, ".UNFINISHED")); // A file system that ignores case.
    await expect(folderObjects(folder)).rejects.toMatchObject({
      name: "StartError",
      message: expect.stringContaining("set COROOM_SNAPSHOTS_FOLDER"),
    });
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("[FOB3] while some rooms are removed all others are listed, even with names of the maximum length", async () => {
  const folder = mkdtempSync(join(tmpdir(), "coroom-folder-"));
  try {
    const store = await folderObjects(folder);
    const kept = ["acme.kept/1-1-a", `acme.${"=e4".repeat(100)}kept/1-1-b`];
    for (const name of kept) await store.write(name, Uint8Array.of(1));
    const passing = Array.from({ length: 200 }, (_, index) =>
      index % 2 === 0 ? `acme.room${index}/1-1-a` : `acme.${"=e4".repeat(100)}${index}/1-1-a`,
    );
    for (let round = 0; round < 3; round++) {
      await Promise.all(passing.map((name) => store.write(name, Uint8Array.of(1))));
      let isRemoving = true;
      const removing = (async () => {
        for (const name of passing) await store.remove(name);
      })().finally(() => (isRemoving = false));
      while (isRemoving) expect([...(await store.list()).keys()]).toEqual(expect.arrayContaining(kept));
      await removing;
    }
    expect([...(await store.list()).keys()].toSorted()).toEqual(kept.toSorted());
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("[FOB2] when a room's last object is removed its folder goes too, and a concurrent write of another object succeeds", async () => {
  const folder = mkdtempSync(join(tmpdir(), "coroom-folder-"));
  try {
    const store = await folderObjects(folder);
    const long = `acme.${"=e4".repeat(100)}`;
    const names = ["acme.notes/1-1-a", "acme.notes/1-2-b", `${long}/1-1-c`];
    for (const name of names) await store.write(name, Uint8Array.of(1));
    await store.remove(names[0]!);
    expect([...(await store.list()).keys()].toSorted()).toEqual(names.slice(1).toSorted());
    await Promise.all(names.map((name) => store.remove(name)));
    expect(readdirSync(folder)).toEqual([".unfinished"]);
    const one = (round: number) => `acme.notes/1-1-${round}`;
    await store.write(one(0), Uint8Array.of(1));
    for (let round = 0; round < 50; round++) {
      await Promise.all([store.remove(one(round)), store.write(one(round + 1), Uint8Array.of(1)), store.list()]);
      expect([...(await store.list()).keys()]).toEqual([one(round + 1)]);
    }
    expect(readdirSync(join(folder, ".unfinished"))).toEqual([]);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("[FOB4] other files in the folder are no objects and are not opened", async () => {
  const folder = mkdtempSync(join(tmpdir(), "coroom-folder-"));
  try {
    const store = await folderObjects(folder);
    const names = ["acme.notes/1-1-a", `acme.${"=e4".repeat(70)}/1-1-b`, `acme.${"=e4".repeat(100)}/1-1-c`];
    for (const name of names) await store.write(name, Uint8Array.of(1));
    mkdirSync(join(folder, "lost+found"));
    writeFileSync(join(folder, "lost+found", "#12"), "");
    writeFileSync(join(folder, ".DS_Store"), "");
    expect([...(await store.list()).keys()].toSorted()).toEqual(names.toSorted());
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("[FOB5] a write that fails leaves no unfinished file behind", async () => {
  const folder = mkdtempSync(join(tmpdir(), "coroom-folder-"));
  try {
    const store = await folderObjects(folder);
    writeFileSync(join(folder, "acme.notes"), "a file in place of the room's folder");
    await expect(store.write("acme.notes/1-1-a", Uint8Array.of(1))).rejects.toThrow(/EEXIST|ENOTDIR/);
    expect(readdirSync(join(folder, ".unfinished"))).toEqual([]);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
