import { afterEach, expect, test, vi } from "vitest";

import { fetchSnapshot } from "./fetch-snapshot.ts";

afterEach(() => void vi.unstubAllGlobals());

test("[SNF1] the snapshot is complete where the platform's fetch has no streams, as in React Native", async () => {
  const headers = new Headers({ "x-coroom-epoch": "3", "x-coroom-seq": "7" });
  const arrayBuffer = async (): Promise<ArrayBuffer> => new Uint8Array([1, 2, 3]).buffer;
  vi.stubGlobal("fetch", async () => ({ ok: true, status: 200, headers, arrayBuffer }));
  expect(await fetchSnapshot("http://h/v1/rooms/notes/snapshot", "t", new AbortController().signal)).toEqual({
    kind: "snapshot",
    position: { epoch: 3, seq: 7 },
    last: undefined,
    payload: new Uint8Array([1, 2, 3]),
  });
});
