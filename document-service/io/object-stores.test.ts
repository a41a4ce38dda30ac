import { expect, test } from "vitest";

import type { ObjectStore } from "../ports.ts";
import { withSharedLists } from "./object-stores.ts";

test("[OBS1] calls that come while a store is listed share the list, and a later call lists the store again", async () => {
  const lists: { readonly resolve: (sizes: ReadonlyMap<string, number>) => void; readonly reject: (cause: Error) => void }[] = [];
  const list: ObjectStore["list"] = () => new Promise((resolve, reject) => lists.push({ resolve, reject }));
  const store = withSharedLists({ list } as Partial<ObjectStore> as ObjectStore);
  const both = [store.list(), store.list()];
  lists[0]!.resolve(new Map([["acme.a/1", 1]]));
  expect(await Promise.all(both)).toEqual([new Map([["acme.a/1", 1]]), new Map([["acme.a/1", 1]])]);
  const failing = store.list();
  lists[1]!.reject(new Error("away"));
  await expect(failing).rejects.toThrow("away");
  const last = store.list();
  lists[2]!.resolve(new Map());
  expect([await last, lists.length]).toEqual([new Map(), 3]);
});
